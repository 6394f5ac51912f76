// SPDX-License-Identifier: Apache-2.0
// Page-aligned host memory for results. Use it as the destination of large copies to the host.
//
//   isthmus::result_memory pixels(buffer.size());
//   isthmus::copy(pixels.span(), buffer);
//
// Cost: the first access to a page costs more than copying the page. Freed large blocks are
// therefore cached (up to 1/16 of the memory that the process may use, and 2 GiB at most) and
// reused; the first copy into a fresh block faults in all its pages at once. Thread-safe.
#pragma once

#include <isthmus/error.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace isthmus {
inline namespace v1 {

// Owns a block of result memory. Movable, not copyable.
class result_memory {
 public:
  result_memory() noexcept = default;
  // `nbytes` bytes of undefined contents. Throws out_of_memory.
  explicit result_memory(std::size_t nbytes) : bytes_(allocate(nbytes)), nbytes_(nbytes) {}

  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data(), size()}; }
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_ ? nbytes_ : 0; }

 private:
  struct deleter {
    void operator()(std::byte* pointer) const noexcept { isthmus_result_free(pointer); }
  };
  static std::byte* allocate(std::size_t nbytes) {
    void* pointer = nullptr;
    detail::check(isthmus_result_allocate(nbytes, &pointer));
    return static_cast<std::byte*>(pointer);
  }

  std::unique_ptr<std::byte[], deleter> bytes_;
  std::size_t nbytes_ = 0;
};

}  // namespace v1
}  // namespace isthmus
