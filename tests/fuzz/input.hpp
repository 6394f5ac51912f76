// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decodes the bytes of a fuzzer, and checks what holds for every call of the C interface.

#include <isthmus/experimental.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace fuzz {

inline void require(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold\n", file, line);
  std::abort();
}

inline void expect_documented(isthmus_status_t code) {
  require(code <= ISTHMUS_PENDING && code >= ISTHMUS_ERROR_DEADLOCK);
  require(code != ISTHMUS_ERROR_INTERNAL);
  require(code >= ISTHMUS_OK || *isthmus_error_message() != '\0');
}

// Returns zeros after its end.
class input {
 public:
  input(const unsigned char* data, std::size_t size) : data_(data), left_(size) {}
  [[nodiscard]] bool more() const { return left_ != 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  // Mostly small, and sometimes at the limits of size_t.
  std::size_t size() {
    switch (const std::uint8_t low = byte(); low) {
      case 255: return SIZE_MAX;
      case 254: return std::size_t{1} << 63;
      case 253: return std::size_t{1} << 62;
      default: return low + (std::size_t{byte()} & 7) * 256;
    }
  }
  // One of the objects, or NULL.
  template <class T>
  T* any(const std::vector<T*>& all) {
    const std::size_t index = byte();
    return all.empty() || index == 255 ? nullptr : all[index % all.size()];
  }
  // Stores a new object. Once there are `most` objects it replaces, and releases, one of them.
  template <class T>
  void keep(std::vector<T*>& all, std::size_t max_count, T* object, void (*release)(T*) noexcept) {
    if (all.size() < max_count) return all.push_back(object);
    std::swap(all[byte() % max_count], object);
    release(object);
  }

 private:
  const unsigned char* data_;
  std::size_t left_;
};

}  // namespace fuzz
