// SPDX-License-Identifier: Apache-2.0
#include "core/sycl_objects.hpp"

#include <cstring>
#include <string>

#include "core/device_search.hpp"
#include "core/errors.hpp"
#include "core/waiting.hpp"

namespace isthmus::python {
namespace {

constexpr const char* k_queue = "SyclQueueRef";
constexpr const char* k_context = "SyclContextRef";
constexpr const char* k_event = "SyclEventRef";

// A capsule of that name: the object itself, or the result of its `_get_capsule`; otherwise not
// valid.
nb::object capsule_of(nb::handle argument, const char* name) {
  if (PyCapsule_CheckExact(argument.ptr()) != 0) {
    return PyCapsule_IsValid(argument.ptr(), name) != 0 ? nb::borrow(argument) : nb::object{};
  }
  const bool is_isthmus_object = queue_of(argument) != nullptr || context_of(argument) != nullptr ||
                                 event_of(argument) != nullptr;
  if (is_isthmus_object || !nb::hasattr(argument, "_get_capsule")) {
    return {};
  }
  nb::object capsule = argument.attr("_get_capsule")();
  return PyCapsule_IsValid(capsule.ptr(), name) != 0 ? capsule : nb::object{};
}

// Calls adopt(device, result) for the SYCL device that the object belongs to.
template <class Handle, class Adopt>
DeviceHandle adopt_on_matching_device(nb::handle argument, Handle& adopted, Adopt adopt) {
  DeviceHandle device;
  check(try_find_device("sycl:0", device));
  for (int number = 1;; ++number) {
    const auto status = adopt(device.get(), adopted.out());
    if (status != ISTHMUS_ERROR_WRONG_CONTEXT) {
      check(status);
      return device;
    }
    if (try_find_device(("sycl:" + std::to_string(number)).c_str(), device) != ISTHMUS_OK) {
      raise_python(PyExc_ValueError,
                   "%R is on a sub-device or on a device without USM: Isthmus supports only whole "
                   "devices with USM",
                   argument.ptr());
    }
  }
}

ContextHandle adopted_context(nb::handle argument, nb::handle capsule, DeviceHandle* device) {
  ContextHandle adopted;
  auto found = adopt_on_matching_device(
      argument, adopted, [&](isthmus_device_t* candidate, isthmus_context_t** context) {
        return isthmus_context_adopt(candidate, PyCapsule_GetPointer(capsule.ptr(), k_context), {},
                                     context);
      });
  if (device != nullptr) {
    *device = std::move(found);
  }
  return adopted;
}

// Releases the reference that a capsule of this module holds.
template <class Handle>
void release_capsule(PyObject* capsule) noexcept {
  using Raw = typename Handle::raw_type;
  static_cast<void>(Handle::take(static_cast<Raw*>(PyCapsule_GetContext(capsule))));
}

template <class Handle>
nb::object capsule_for(const Handle& handle, void* native, const char* name) {
  nb::object capsule = steal_or_raise(PyCapsule_New(native, name, &release_capsule<Handle>));
  PyCapsule_SetContext(capsule.ptr(), Handle(handle).detach());
  return capsule;
}

void require_sycl(isthmus_device_t* device, const char* name) {
  const auto info = info_of(device);
  if (std::strcmp(info.backend, "sycl") != 0) {
    raise_python(PyExc_TypeError,
                 "a %s of %s is not a SYCL object: use one of the backend \"sycl\"", name,
                 info.filter);
  }
}

}  // namespace

nb::object loaded_dpctl() {
  return nb::module_::import_("sys").attr("modules").attr("get")("dpctl");
}

nb::object find_sycl_queue(nb::handle argument) {
  const nb::object capsule = capsule_of(argument, k_queue);
  if (!capsule.is_valid()) {
    return {};
  }
  QueueHandle adopted;
  static_cast<void>(adopt_on_matching_device(
      argument, adopted, [&](isthmus_device_t* candidate, isthmus_queue_t** queue) {
        return isthmus_queue_adopt(candidate, PyCapsule_GetPointer(capsule.ptr(), k_queue), {},
                                   queue);
      }));
  return wrap(std::move(adopted));
}

nb::object find_sycl_context(nb::handle argument) {
  const nb::object capsule = capsule_of(argument, k_context);
  return capsule.is_valid() ? wrap(adopted_context(argument, capsule, nullptr)) : nb::object{};
}

// dpctl has no capsules of devices, so this uses a context, which lists its devices.
nb::object find_sycl_device(nb::handle argument) {
  const nb::object loaded = loaded_dpctl();
  if (loaded.is_none() || !nb::isinstance(argument, loaded.attr("SyclDevice"))) {
    return {};
  }
  const nb::object context_object = loaded.attr("SyclContext")(argument);
  DeviceHandle found;
  static_cast<void>(adopted_context(argument, capsule_of(context_object, k_context), &found));
  return wrap(std::move(found));
}

// SYCL does not expose the context of an event, and orders queues of all contexts after it.
nb::object find_sycl_event(nb::handle argument) {
  const nb::object capsule = capsule_of(argument, k_event);
  if (!capsule.is_valid()) {
    return {};
  }
  const auto device = find_device("sycl:0");
  const auto context = make_handle<ContextHandle>(isthmus_context_default, device.get());
  return wrap(make_handle<EventHandle>(isthmus_event_adopt, context.get(),
                                       PyCapsule_GetPointer(capsule.ptr(), k_event),
                                       isthmus_owner_t{}));
}

nb::object from_sycl(nb::handle argument, nb::object (*find)(nb::handle), const char* noun) {
  nb::object found = find(argument);
  if (!found.is_valid()) {
    raise_python(PyExc_TypeError, "%s.from_sycl() takes dpctl's Sycl%s or a capsule of one, not %R",
                 noun, noun, argument.ptr());
  }
  return found;
}

nb::object sycl_capsule(const Queue& self) {
  require_sycl(device_of(self.device_object)->raw.get(), "queue");
  return capsule_for<QueueHandle>(self.raw, export_handle(self), k_queue);
}

nb::object sycl_capsule(const Context& self) {
  const auto first =
      make_handle<DeviceHandle>(isthmus_context_device, self.raw.get(), std::size_t{0});
  require_sycl(first.get(), "context");
  return capsule_for<ContextHandle>(self.raw, info_of(self).native, k_context);
}

nb::object sycl_capsule(const Event& self) {
  auto info = info_of(self);
  if (std::strcmp(info.backend, "sycl") != 0) {
    raise_python(PyExc_TypeError, "an event of the backend \"%s\" is not a SYCL event",
                 info.backend);
  }
  if (info.native == nullptr) {  // not submitted to the driver yet
    check(wait_for_event(self.raw.get(), -1));
    info = info_of(self);
  }
  return capsule_for<EventHandle>(self.raw, info.native, k_event);
}

}  // namespace isthmus::python
