// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocations and operations on the backend interface directly, without pools or records, for
// tests.

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "backend/queue.hpp"

namespace isthmus::backend_test {

// An allocation of one kind, freed by the destructor.
class block {
 public:
  block(Context& home, Device& where, std::size_t nbytes, UsmKind kind = ISTHMUS_KIND_DEVICE,
        std::size_t alignment = 0)
      : home_{home}, kind_{kind}, nbytes_{nbytes} {
    auto made = home.allocate(where, {kind, nbytes, alignment});
    EXPECT_TRUE(made) << made.failure().message();
    pointer_ = made ? *made : nullptr;
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block() {
    if (pointer_ != nullptr) {
      home_.deallocate(pointer_, kind_, nbytes_);
    }
  }
  [[nodiscard]] std::byte* at(std::size_t offset = 0) const {
    return static_cast<std::byte*>(pointer_) + offset;
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  Context& home_;
  UsmKind kind_;
  std::size_t nbytes_;
  void* pointer_ = nullptr;
};

inline std::vector<std::byte> numbered(std::size_t nbytes, unsigned salt = 0) {
  std::vector<std::byte> made(nbytes);
  for (std::size_t at = 0; at < nbytes; ++at) {
    made[at] = static_cast<std::byte>((at * 31 + at / 251 + salt) & 0xFF);
  }
  return made;
}

// Waits for a submission that must succeed.
template <class Submitted>
void finish(Submitted&& submitted) {
  ASSERT_TRUE(submitted) << submitted.failure().message();
  const auto ended = (*submitted)->wait(std::nullopt);
  ASSERT_TRUE(ended) << ended.failure().message();
}

inline std::vector<std::byte> read(Queue& line, const void* from, std::size_t nbytes) {
  std::vector<std::byte> made(nbytes);
  finish(line.copy(made.data(), from, nbytes, {}));
  return made;
}

}  // namespace isthmus::backend_test
