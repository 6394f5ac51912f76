// SPDX-License-Identifier: Apache-2.0
#pragma once
// The C++ side of the classes of memory resources, and the map from the library's resources to
// their Python objects. Guarded by the interpreter's lock.

#include "core/common.hpp"
#include "core/owned_handle.hpp"

namespace isthmus::python {

// The entry of a resource in the table that maps handles to objects. Removed with this object.
class RegisteredResource {
 public:
  RegisteredResource() noexcept = default;
  explicit RegisteredResource(isthmus_resource_t* raw) noexcept : raw_{raw} {}
  RegisteredResource(RegisteredResource&& other) noexcept
      : raw_{std::exchange(other.raw_, nullptr)} {}
  RegisteredResource& operator=(RegisteredResource&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ISTHMUS_EXPORTED ~RegisteredResource();

 private:
  isthmus_resource_t* raw_ = nullptr;
};

struct Resource {
  OwnedHandle<ResourceHandle> raw;
  isthmus_kind_t kind = ISTHMUS_KIND_DEVICE;
  nb::object queue_object;    // used if no queue is named
  bool has_upstream = false;  // the memory may be of another kind than `kind`
  bool is_pool = false;
  bool is_pool_over = false;  // a pool whose upstream may be a Python object
  RegisteredResource
      registration{};  // removed here, before `raw` can be reused for another resource
};
struct ProviderResource : Resource {};
struct PoolResource : Resource {
  std::uint64_t limit_bytes = 0;  // 0: no limit, as in the options
  std::uint64_t soft_limit_bytes = 0;
  nb::object budget_object;  // None if there is no budget
  nb::object decay;          // in seconds, as passed
  nb::object wait;           // the same
  nb::object upstream;       // None: the driver
};
struct CustomResource : Resource {
  nb::object allocator;
};
struct AdaptorResource : Resource {
  nb::object upstream;
};
struct FailureCallbackResource : AdaptorResource {};

// The Python object that created the library's resource; not valid once that object is destroyed.
[[nodiscard]] ISTHMUS_EXPORTED nb::object find_resource(isthmus_resource_t* raw);
ISTHMUS_EXPORTED void register_resource(Resource& resource, nb::handle object);
// Moves `resource` into the storage that nanobind allocated for `self`, and registers it.
template <class Resource>
void construct_resource(Resource* self, Resource resource) {
  new (self) Resource(std::move(resource));
  register_resource(*self, nb::find(self));
}

}  // namespace isthmus::python
