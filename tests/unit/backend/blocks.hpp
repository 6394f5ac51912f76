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
  block(Context& test_context, Device& test_device, std::size_t nbytes,
        UsmKind kind = ISTHMUS_KIND_DEVICE, std::size_t alignment = 0)
      : context_{test_context}, kind_{kind}, nbytes_{nbytes} {
    auto allocated = test_context.allocate(test_device, {kind, nbytes, alignment});
    EXPECT_TRUE(allocated) << allocated.failure().message();
    pointer_ = allocated ? *allocated : nullptr;
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  ~block() {
    if (pointer_ != nullptr) {
      context_.deallocate(pointer_, kind_, nbytes_);
    }
  }
  [[nodiscard]] std::byte* at(std::size_t offset = 0) const {
    return static_cast<std::byte*>(pointer_) + offset;
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  Context& context_;
  UsmKind kind_;
  std::size_t nbytes_;
  void* pointer_ = nullptr;
};

inline std::vector<std::byte> numbered(std::size_t nbytes, unsigned salt = 0) {
  std::vector<std::byte> result(nbytes);
  for (std::size_t at = 0; at < nbytes; ++at) {
    result[at] = static_cast<std::byte>((at * 31 + at / 251 + salt) & 0xFF);
  }
  return result;
}

// Waits for a submission that must succeed.
template <class Submitted>
void finish(Submitted&& submitted) {
  ASSERT_TRUE(submitted) << submitted.failure().message();
  const auto ended = (*submitted)->wait(std::nullopt);
  ASSERT_TRUE(ended) << ended.failure().message();
}

inline std::vector<std::byte> read(Queue& test_queue, const void* from, std::size_t nbytes) {
  std::vector<std::byte> result(nbytes);
  finish(test_queue.copy(result.data(), from, nbytes, {}));
  return result;
}

}  // namespace isthmus::backend_test
