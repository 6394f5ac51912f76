// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_streams.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "core/arguments.hpp"
#include "core/current.hpp"
#include "core/device_search.hpp"
#include "core/errors.hpp"
#include "core/owners.hpp"

namespace isthmus::python {
namespace {

constexpr std::uintptr_t k_legacy = 1;      // CU_STREAM_LEGACY
constexpr std::uintptr_t k_per_thread = 2;  // CU_STREAM_PER_THREAD

struct NamedStream {
  std::uintptr_t number;
  std::optional<int> device;
};

std::optional<int> number_in(nb::handle object, const char* attribute) {
  if (!nb::hasattr(object, attribute)) {
    return {};
  }
  const nb::object value = object.attr(attribute);
  if (value.is_none() || value.equal(nb::int_(-1))) {
    return {};  // -1 in CuPy: the current device
  }
  return static_cast<int>(std::min<std::size_t>(to_size(value, attribute), INT_MAX));
}

std::uintptr_t to_number(nb::handle handle) {
  return reinterpret_cast<std::uintptr_t>(to_pointer(handle, "stream"));
}

// __cuda_stream__ is a method in the protocol, and was a tuple in early drafts.
NamedStream read_protocol(nb::handle stream) {
  nb::object result = stream.attr("__cuda_stream__");
  if (PyCallable_Check(result.ptr()) != 0) {
    result = result();
  }
  if (PySequence_Check(result.ptr()) == 0 || nb::len(result) != 2 ||
      !result[0].equal(nb::int_(0))) {
    raise_python(PyExc_ValueError, "__cuda_stream__ must return (0, handle), not %R", result.ptr());
  }
  return {to_number(result[1]), number_in(stream, "device_index")};
}

bool is_from_package(nb::handle object, const char* package) {
  const nb::object module = nb::getattr(object.type(), "__module__", nb::str(""));
  const char* name = PyUnicode_Check(module.ptr()) != 0 ? PyUnicode_AsUTF8(module.ptr()) : "";
  return name != nullptr && std::strncmp(name, package, std::strlen(package)) == 0;
}

NamedStream read_stream(nb::handle stream) {
  if (nb::hasattr(stream, "__cuda_stream__")) {
    return read_protocol(stream);
  }
  if (nb::hasattr(stream, "cuda_stream")) {  // PyTorch
    return {to_number(stream.attr("cuda_stream")), number_in(stream, "device_index")};
  }
  if (is_from_package(stream, "cupy") && nb::hasattr(stream, "ptr")) {
    return {to_number(stream.attr("ptr")), number_in(stream, "device_id")};
  }
  raise_python(PyExc_TypeError,
               "stream must have __cuda_stream__, or be a stream of PyTorch or CuPy, not %.100s: "
               "for a handle use Queue.from_handle",
               Py_TYPE(stream.ptr())->tp_name);
}

// The current device if it is a CUDA device, else the first one.
DeviceHandle likely_device() {
  const nb::object current = current_device();
  const auto& device = *device_of(current);
  const bool is_cuda = std::strcmp(info_of(device).backend, "cuda") == 0;
  return is_cuda ? DeviceHandle::share(device.raw.get()) : find_cuda_device(0);
}

QueueHandle find_queue_of_stream(std::uintptr_t number, nb::handle owner) {
  if (number <= k_per_thread) {
    return queue_of_number(likely_device(), number, owner);
  }
  DeviceHandle device = find_cuda_device(0);
  for (int next = 1;; ++next) {
    const std::string filter = "cuda:" + std::to_string(next);
    DeviceHandle another;
    const bool is_last = try_find_device(filter.c_str(), another) != ISTHMUS_OK;
    QueueHandle queue;
    const auto status = isthmus_queue_adopt(device.get(), reinterpret_cast<void*>(number),
                                            keep_alive(owner), queue.out());
    if (status != ISTHMUS_ERROR_WRONG_CONTEXT || is_last) {
      check(status);
      return queue;
    }
    device = std::move(another);
  }
}

}  // namespace

int number_of_cuda_device(const isthmus_device_t* device) noexcept {
  auto info = sized<isthmus_device_info_t>();
  if (device == nullptr || isthmus_device_info(device, &info) != ISTHMUS_OK ||
      std::strcmp(info.backend, "cuda") != 0) {
    return -1;
  }
  return std::atoi(std::strrchr(info.filter, ':') + 1);
}

int cuda_number_of(const Queue& queue) {
  return number_of_cuda_device(device_of(queue.device_object)->raw.get());
}

DeviceHandle find_cuda_device(int number) {
  return find_device(("cuda:" + std::to_string(number)).c_str());
}

std::uintptr_t export_stream(const Queue& queue) {
  return reinterpret_cast<std::uintptr_t>(export_handle(queue));
}

std::uintptr_t stream_to_wait(const Queue& queue) {
  const nb::object default_queue = default_queue_of(*device_of(queue.device_object));
  return queue_of(default_queue) == &queue ? k_legacy : export_stream(queue);
}

QueueHandle queue_of_number(const DeviceHandle& device, std::uintptr_t number, nb::handle owner) {
  return make_handle<QueueHandle>(isthmus_queue_adopt, device.get(),
                                  reinterpret_cast<void*>(std::max(number, k_legacy)),
                                  keep_alive(owner));
}

QueueHandle queue_of_stream(nb::handle stream, nb::handle device) {
  const auto named = read_stream(stream);
  if (!device.is_none()) {
    const nb::object device_object = to_device(device);
    return queue_of_number(DeviceHandle::share(device_of(device_object)->raw.get()), named.number,
                           stream);
  }
  return named.device ? queue_of_number(find_cuda_device(*named.device), named.number, stream)
                      : find_queue_of_stream(named.number, stream);
}

nb::object cuda_stream_of(const Queue& self) {
  if (cuda_number_of(self) < 0) {
    raise_python(PyExc_TypeError, "__cuda_stream__: a queue of %s is not a CUDA stream",
                 describe(*device_of(self.device_object)).c_str());
  }
  return nb::make_tuple(0, export_stream(self));
}

}  // namespace isthmus::python
