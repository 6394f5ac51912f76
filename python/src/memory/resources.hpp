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

// The object of the library's resource of that kind. If its original object was destroyed, or never
// existed, an object of the common base class, with `queue` as its queue.
[[nodiscard]] nb::object wrap_resource(ResourceHandle raw, isthmus_kind_t kind, nb::handle queue);

// The counter of isthmus_current_resource_watch.
extern const std::uint32_t* const current_resource_users;
// Whether any code of the process may have set a current resource, in any language.
[[nodiscard]] inline bool resources_in_use() noexcept {
  return __atomic_load_n(current_resource_users, __ATOMIC_RELAXED) != 0;
}
// The current resource for buffers of that kind on that queue; not valid for the default pool.
[[nodiscard]] ISTHMUS_EXPORTED nb::object current_resource(isthmus_kind_t kind, const Queue& queue);
// Restores the default pools in place of the resources that Python set for the process.
void clear_resources() noexcept;

// While an object of this class exists, the library's `using` block of this thread is that of the
// calling Python context. A thread or task without such a block stays in the library's block.
// Construction needs the interpreter's lock, destruction does not.
class WithinUsing {
 public:
  WithinUsing();
  WithinUsing(const WithinUsing&) = delete;
  WithinUsing& operator=(const WithinUsing&) = delete;
  ~WithinUsing() {
    if (block_) {
      isthmus_using_swap(outer_);
    }
  }

 private:
  // Holds a reference, because another thread may leave the block without the interpreter's lock.
  const UsingHandle block_;
  isthmus_using_t* outer_ = nullptr;
};

// For calls of Python functions by the library, which has removed the thread's current resource:
// while an object of this class exists, the Python context is in no `using` block either. The
// driver serves buffers in an allocation function, the default pools in other callbacks.
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
  nb::object previous_stack_;  // not valid if the context was in no block
};

}  // namespace isthmus::python
