#pragma once
// What the classes of memory resources have in common.

#include "objects.hpp"

namespace isthmus::python {

// What a resource is for, from the arguments kind, device and context.
struct purpose {
  isthmus_kind_t kind;
  nb::object where;
  context_handle usual;  // where none is named
  isthmus_context_t* within = nullptr;
  nb::object queue;

  // The exceptions of bad arguments, DeviceNotFoundError.
  purpose(nb::handle of_kind, nb::handle on, nb::handle in);
  [[nodiscard]] isthmus_device_t* device_raw() const noexcept {
    return device_of(where)->raw.get();
  }
};

// TypeError for what is no resource.
[[nodiscard]] const resource& require_resource(nb::handle given, const char* what);

// Null for None and for what was not given. TypeError for what is no resource.
[[nodiscard]] const resource* resource_or_none(nb::handle named);

// The device that it allocates for.
[[nodiscard]] nb::handle device_under(const resource& of);

// What the library tells of it; raises what a function of Python's ended with that was asked.
[[nodiscard]] isthmus_resource_info_t info_of(const resource& of);
[[nodiscard]] nb::object resource_repr(nb::handle object);

// The constructor of classes that are only what others have in common.
[[noreturn]] void refuse_to_make(nb::handle self, const nb::args&, const nb::kwargs&);

// What stands on `upstream`.
[[nodiscard]] inline adaptor_resource over(nb::handle upstream, resource_handle made) {
  const auto& under = *nb::inst_ptr<resource>(upstream);
  return {{std::move(made), under.kind, under.queue_object, true}, nb::borrow(upstream)};
}

// Whether `using` or `set_resource` was ever called.
extern bool resources_in_use;
// The resource that buffers of that kind on that queue come from where none is named; not valid for
// the default pool.
[[nodiscard]] nb::object current_resource(isthmus_kind_t kind, const queue& on);
void forget_resources() noexcept;
// While it lives, that is the driver's, in this context.
class using_the_driver {
 public:
  using_the_driver();
  using_the_driver(const using_the_driver&) = delete;
  using_the_driver& operator=(const using_the_driver&) = delete;
  ~using_the_driver();
  // Whether the calling thread is in one.
  [[nodiscard]] static bool is_on() noexcept { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
  nb::object before_;
};

void bind_pool(nb::module_& module);
void bind_current_resource(nb::module_& module);
void bind_request_adaptors(nb::module_& module);
void bind_custom(nb::module_& module);
void bind_tracking(nb::module_& module);
void bind_cutting(nb::module_& module);
void bind_debug(nb::module_& module);
void bind_adaptors(nb::module_& module);
void bind_torch(nb::module_& module);
void bind_bare_block(nb::module_& module);

}  // namespace isthmus::python
