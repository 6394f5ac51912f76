// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common parts of the classes of memory resources. Needs the interpreter's lock.

#include "core/errors.hpp"
#include "core/objects.hpp"
#include "core/resource_objects.hpp"

namespace isthmus::python {

// The kind, device and context of a new resource, from the constructor's arguments.
struct ResourceTarget {
  isthmus_kind_t kind;
  nb::object device_object;
  ContextHandle default_context;  // used if no context is named
  isthmus_context_t* context = nullptr;
  nb::object queue;

  // Throws the exceptions of bad arguments, and DeviceNotFoundError.
  ResourceTarget(nb::handle kind_argument, nb::handle queue, nb::handle context_argument);
  [[nodiscard]] isthmus_device_t* device_raw() const noexcept {
    return device_of(device_object)->raw.get();
  }
};

// TypeError if it is not a resource.
[[nodiscard]] ISTHMUS_EXPORTED const Resource& require_resource(nb::handle argument,
                                                                const char* name);

// Null for None and if the argument was not passed. TypeError if it is not a resource.
[[nodiscard]] ISTHMUS_EXPORTED const Resource* resource_or_none(nb::handle argument);

// The device that the resource allocates for.
[[nodiscard]] nb::handle device_of_resource(const Resource& resource);

// The library's information about the resource. Throws the exception of a Python function that the
// query called.
[[nodiscard]] ISTHMUS_EXPORTED isthmus_resource_info_t info_of(const Resource& resource);

// The constructor of classes that exist only as a base.
[[noreturn]] void raise_abstract(nb::handle self, const nb::args&, const nb::kwargs&);

// The adaptor that create(upstream, arguments..., result), a function of the library, creates.
// TypeError if `upstream` is not a resource.
template <class Create, class... Arguments>
[[nodiscard]] AdaptorResource make_adaptor(nb::handle upstream, Create create,
                                           Arguments... arguments) {
  const auto& source = require_resource(upstream, "upstream");
  return {{make_handle<ResourceHandle>(create, source.raw.get(), arguments...), source.kind,
           source.queue_object, true},
          nb::borrow(upstream)};
}

// Whether `using` or `set_resource` was ever called.
extern bool resources_in_use;
// The current resource for buffers of that kind on that queue; not valid for the default pool.
[[nodiscard]] ISTHMUS_EXPORTED nb::object current_resource(isthmus_kind_t kind, const Queue& queue);
void clear_resources() noexcept;
// While an object of this class exists, this thread has no current resource: buffers created
// without a resource are allocated by the driver, and arrays from the default pool.
class DriverAllocationScope {
 public:
  DriverAllocationScope();
  DriverAllocationScope(const DriverAllocationScope&) = delete;
  DriverAllocationScope& operator=(const DriverAllocationScope&) = delete;
  ~DriverAllocationScope();
  // Whether an object of this class exists on the calling thread.
  [[nodiscard]] static bool is_active() noexcept { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
  nb::object previous_stack_;
};

}  // namespace isthmus::python
