// Memory of yours that is pinned: a device copies it as fast as the bus goes, and on its own while
// the host does something else. Choose it for what is copied several times and was allocated by
// others; buffers of host kind are pinned from the start.
//
//   std::vector<float> values(1 << 28);
//   const isthmus::pin pinned(std::span(values), queue.device());
//   auto done = isthmus::copy_async(there, std::span(values));
//
// Cost: with CUDA 25 to 115 ms a GiB to pin and as much to undo; nothing where a device needs no
// pinned memory. Threads: any; a pin as any plain object.
#pragma once

#include <isthmus/device.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v1 {

class pin {
 public:
  pin() noexcept = default;
  // The memory must stay where it is while the pin lives. Of constants it is only read, and may lie
  // where the process may not write. An empty `where`: the default device.
  template <class T>
  explicit pin(std::span<T> memory, const device& where = device()) {
    const auto bytes = std::as_bytes(memory);
    detail::check(isthmus_pin_add(where.get(), bytes.data(), bytes.size(),
                                  std::is_const_v<T> ? 1 : 0, isthmus_owner_t{}, &raw_));
  }
  pin(pin&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  pin& operator=(pin&& other) noexcept {
    pin(std::move(other)).swap(*this);
    return *this;
  }
  pin(const pin&) = delete;
  pin& operator=(const pin&) = delete;
  // Waits for the copies of the memory that are in flight, unless others pin it too.
  ~pin() { release(); }

  void release() noexcept { isthmus_pin_remove(std::exchange(raw_, nullptr), 1); }
  // Waits for those copies alone.
  void wait() const { detail::check(isthmus_pin_wait(raw_, -1)); }

  [[nodiscard]] std::size_t size() const { return info().nbytes; }
  // False where nothing had to be done: the device copies the memory as well as it is.
  [[nodiscard]] bool is_registered() const { return info().is_registered != 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != nullptr; }
  [[nodiscard]] isthmus_pin_t* get() const noexcept { return raw_; }

 private:
  void swap(pin& other) noexcept { std::swap(raw_, other.raw_); }
  [[nodiscard]] isthmus_pin_info_t info() const {
    isthmus_pin_info_t info{};
    info.struct_size = sizeof info;
    detail::check(isthmus_pin_info(raw_, &info));
    return info;
  }

  isthmus_pin_t* raw_ = nullptr;
};

static_assert(std::movable<pin> && !std::copyable<pin>);

}  // namespace v1
}  // namespace isthmus
