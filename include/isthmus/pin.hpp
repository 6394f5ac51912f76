// SPDX-License-Identifier: Apache-2.0
// Pins host memory of the caller. A device then copies it at bus speed while the host continues.
// Use it for memory that is copied several times and that another library allocated; buffers of
// host kind are pinned from the start.
//
//   std::vector<float> values(1 << 28);
//   const isthmus::pin pinned(std::span(values), queue.device());
//   auto done = isthmus::copy_async(buffer, std::span(values));
//
// Cost: with CUDA pinning takes 25 to 115 ms per GiB, and unpinning as much. No cost for a device
// that needs no pinned memory. Thread safety: different pins may be used from any threads; one pin
// is like any plain object.
#pragma once

#include <isthmus/device.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v1 {

// Pins memory during its lifetime. Movable, not copyable.
class pin {
 public:
  pin() noexcept = default;
  // Pins `memory` for the platform of a device; an empty `device` is the default device. The memory
  // must stay mapped while the pin lives. If T is const the memory is only read, and may be
  // write-protected. Throws invalid_argument for device memory, unmapped memory, or memory of which
  // a part is already registered; out_of_memory if the driver cannot pin more; unsupported for
  // write-protected memory that the device cannot pin.
  template <class T>
  explicit pin(std::span<T> memory, const isthmus::device& device = isthmus::device()) {
    const auto bytes = std::as_bytes(memory);
    detail::check(isthmus_pin_add(device.get(), bytes.data(), bytes.size(),
                                  std::is_const_v<T> ? 1 : 0, isthmus_owner_t{}, &raw_));
  }
  pin(pin&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  pin& operator=(pin&& other) noexcept {
    pin(std::move(other)).swap(*this);
    return *this;
  }
  pin(const pin&) = delete;
  pin& operator=(const pin&) = delete;
  // Waits for the pending copies of the memory, then unpins it unless other pins overlap. The
  // caller's own driver work on the memory must have completed.
  ~pin() { release(); }

  // Unpins early, as the destructor does.
  void release() noexcept { isthmus_pin_remove(std::exchange(raw_, nullptr), 1); }
  // Waits for the pending copies, without unpinning.
  void wait() const { detail::check(isthmus_pin_wait(raw_, -1)); }

  // The size in bytes.
  [[nodiscard]] std::size_t size() const { return info().nbytes; }
  // False if no pinning was needed: the device copies the memory equally well without it.
  [[nodiscard]] bool is_registered() const { return info().is_registered != 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != nullptr; }
  [[nodiscard]] isthmus_pin_t* get() const noexcept { return raw_; }

 private:
  void swap(pin& other) noexcept { std::swap(raw_, other.raw_); }
  [[nodiscard]] isthmus_pin_info_t info() const {
    return detail::read<isthmus_pin_info_t>(isthmus_pin_info, raw_);
  }

  isthmus_pin_t* raw_ = nullptr;
};

}  // namespace v1
}  // namespace isthmus
