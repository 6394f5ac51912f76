// SPDX-License-Identifier: Apache-2.0
// A context, which USM memory belongs to. Most programs need not create one, because queues use the
// default context of their device. Create one to keep memory separate, or adopt a driver's context
// to share memory with its owner.
//
// Cost: creating one takes a driver call. Thread-safe.
#pragma once

#include <isthmus/device.hpp>

#include <initializer_list>
#include <span>

namespace isthmus {
inline namespace v1 {

template <>
inline constexpr const char* detail::class_name<isthmus_context_t> = "context";

// A counted reference to a context.
class context : public detail::handle<context, isthmus_context_t, isthmus_context_retain,
                                      isthmus_context_release> {
 public:
  context() noexcept = default;
  // A new context of devices of one platform.
  explicit context(std::span<const device> devices) : handle(create(devices)) {}
  context(std::initializer_list<device> devices)
      : context(std::span<const device>(devices.begin(), devices.size())) {}

  // The default context of the device's platform, shared by its devices. Every call returns the
  // same context.
  [[nodiscard]] static context of(const device& device) {
    return detail::make<context>(isthmus_context_default, device.require());
  }
  // Adopts a driver's context (OpenCL: cl_context; SYCL: sycl::context, as dpctl's reference; CUDA:
  // the primary CUcontext of `device`). The driver's reference count keeps the driver's context
  // alive.
  [[nodiscard]] static context adopt(const device& device, void* native) {
    return detail::make<context>(isthmus_context_adopt, device.get(), native, isthmus_owner_t{});
  }
  // The same, but `owner` (any object) keeps the driver's context alive. `owner` is destroyed when
  // the context is no longer needed.
  template <class Owner>
  [[nodiscard]] static context adopt(const device& device, void* native, Owner&& owner) {
    return detail::make<context>(isthmus_context_adopt, device.get(), native,
                                 detail::make_owner(std::forward<Owner>(owner)));
  }

  // One driver context in two backends: returns this context, a SYCL context on OpenCL, as an
  // OpenCL context of `device`, an OpenCL device. Throws unsupported for other backends, and if the
  // SYCL library does not expose native handles; wrong_context if `device` is not one of this
  // context's.
  [[nodiscard]] context share_with(const device& device) const {
    return detail::make<context>(isthmus_context_share, require(), device.get());
  }

  [[nodiscard]] std::vector<device> devices() const {
    const std::size_t count = raw_info().device_count;
    std::vector<device> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back(detail::make<device>(isthmus_context_device, require(), i));
    }
    return result;
  }
  // The driver's handle (OpenCL: cl_context), or NULL where there is none. Valid while this context
  // lives.
  [[nodiscard]] void* native() const { return raw_info().native; }

  // Two contexts are equal if they refer to the same driver context.
  friend bool operator==(const context& a, const context& b) noexcept {
    return a.get() == b.get() ||
           (a && b && isthmus_context_key(a.get()) == isthmus_context_key(b.get()));
  }

 private:
  friend class queue;
  explicit context(isthmus_context_t* raw) noexcept : handle(raw) {}

  static isthmus_context_t* create(std::span<const device> devices) {
    std::vector<isthmus_device_t*> raw;
    for (const device& member : devices) raw.push_back(member.require());
    isthmus_context_t* result = nullptr;
    detail::check(isthmus_context_create(raw.data(), raw.size(), &result));
    return result;
  }
  isthmus_context_info_t raw_info() const {
    return detail::read<isthmus_context_info_t>(isthmus_context_info, require());
  }
};

}  // namespace v1
}  // namespace isthmus
