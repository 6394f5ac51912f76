// Host memory for results: page-aligned, and kept warm after its end, since first touches cost more
// than a copy. Choose it as the destination of large copies to the host.
//
//   isthmus::result_memory pixels(buffer.size());
//   isthmus::copy(pixels.span(), buffer);
//
// Cost: large blocks are kept warm when freed (1/16 of the process' memory and 2 GiB at most) and
// handed out again; the first copy into a fresh one faults its pages in. Threads: any.
#pragma once

#include <isthmus/error.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace isthmus {
inline namespace v1 {

class result_memory {
 public:
  result_memory() noexcept = default;
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

static_assert(std::movable<result_memory> && !std::copyable<result_memory>);

}  // namespace v1
}  // namespace isthmus
