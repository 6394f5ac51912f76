// A context: what USM belongs to. Most programs never name one: queues stand on the default context
// of their device. Make one to keep memory apart, or adopt a driver's to share memory with its
// owner.
//
// Cost: a driver call to make one. Threads: any.
#pragma once

#include <isthmus/device.hpp>

#include <initializer_list>
#include <span>

namespace isthmus {
inline namespace v1 {

class context : public detail::handle<context, isthmus_context_t, isthmus_context_retain,
                                      isthmus_context_release> {
 public:
  context() noexcept = default;
  // Of devices of one platform.
  explicit context(std::span<const device> devices) : handle(create(devices)) {}
  context(std::initializer_list<device> devices)
      : context(std::span<const device>(devices.begin(), devices.size())) {}

  // The one that the devices of a platform share; always the same.
  [[nodiscard]] static context of(const device& device) {
    return detail::make<context>(isthmus_context_default, device.get());
  }
  // A driver's own context (OpenCL: cl_context), kept alive by the driver's reference count.
  [[nodiscard]] static context adopt(const device& device, void* native) {
    return detail::make<context>(isthmus_context_adopt, device.get(), native, isthmus_owner_t{});
  }
  // The same, kept alive by `owner`, any object, which dies when it is no longer needed.
  template <class Owner>
  [[nodiscard]] static context adopt(const device& device, void* native, Owner&& owner) {
    return detail::make<context>(isthmus_context_adopt, device.get(), native,
                                 detail::make_owner(std::forward<Owner>(owner)));
  }

  // One driver context in two back-ends: this one, of SYCL on OpenCL, as one of `device`'s, an
  // OpenCL device. Throws unsupported for others, and where SYCL's library gives no native handles.
  [[nodiscard]] context share_with(const device& device) const {
    return detail::make<context>(isthmus_context_share, get(), device.get());
  }

  [[nodiscard]] std::vector<device> devices() const {
    std::size_t count = 0;
    detail::check(isthmus_context_device_count(get(), &count));
    std::vector<device> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back(detail::make<device>(isthmus_context_device, get(), i));
    }
    return result;
  }
  // OpenCL: cl_context; valid while this context lives.
  [[nodiscard]] void* native() const noexcept { return isthmus_context_native(get()); }

  // Equal when they stand for the same driver context.
  friend bool operator==(const context& a, const context& b) noexcept {
    return a.get() == b.get() ||
           (a && b && isthmus_context_key(a.get()) == isthmus_context_key(b.get()));
  }

 private:
  friend class queue;
  explicit context(isthmus_context_t* raw) noexcept : handle(raw) {}

  static isthmus_context_t* create(std::span<const device> devices) {
    std::vector<isthmus_device_t*> raw;
    for (const device& one : devices) raw.push_back(one.get());
    isthmus_context_t* result = nullptr;
    detail::check(isthmus_context_create(raw.data(), raw.size(), &result));
    return result;
  }
};

static_assert(std::copyable<context> && std::equality_comparable<context>);
static_assert(std::is_nothrow_move_constructible_v<context>);
static_assert(sizeof(context) == sizeof(void*));

}  // namespace v1
}  // namespace isthmus
