// SPDX-License-Identifier: Apache-2.0
#include "core/resource_objects.hpp"

#include "core/identity_map.hpp"

namespace isthmus::python {
namespace {

// Never destroyed: objects may be destroyed after static destructors ran.
auto& resources = *new IdentityMap<RegisteredResource, isthmus_resource_t>;

}  // namespace

RegisteredResource::~RegisteredResource() {
  if (raw_ != nullptr) {
    resources.erase(raw_, this);
  }
}

void register_resource(Resource& resource, nb::handle object) {
  resource.registration = RegisteredResource{resource.raw.get()};
  resources.insert(resource.raw.get(), object, &resource.registration);
}

nb::object find_resource(isthmus_resource_t* raw) { return resources.find(raw); }

}  // namespace isthmus::python
