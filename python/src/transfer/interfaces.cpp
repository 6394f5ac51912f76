// SPDX-License-Identifier: Apache-2.0
#include "transfer/interfaces.hpp"

#include <vector>

#include "core/arguments.hpp"
#include "core/cuda_streams.hpp"
#include "core/current.hpp"
#include "core/device_search.hpp"
#include "core/sycl_objects.hpp"
#include "transfer/read_only.hpp"

namespace isthmus::python {

isthmus_kind_t query_kind(const Queue& queue, const void* pointer) {
  return read_info<isthmus_pointer_info_t>(isthmus_pointer_info,
                                           context_of(queue.context_object)->raw.get(), pointer)
      .kind;
}

namespace {

constexpr const char* k_sycl_protocol = "__sycl_usm_array_interface__";
constexpr const char* k_cuda_protocol = "__cuda_array_interface__";

// A queue of this context, on the pointer's device.
nb::object queue_for_pointer(const Context& context, const void* pointer) {
  const auto info =
      read_info<isthmus_pointer_info_t>(isthmus_pointer_info, context.raw.get(), pointer);
  const nb::object device =
      info.device != nullptr ? wrap(DeviceHandle::share(info.device)) : first_device_of(context);
  return queue_in_context(*device_of(device), context);
}

// The queue of a dpctl filter; not valid if dpctl is not imported or does not know the filter. Uses
// the queue that dpctl caches for the device: memory records every queue that it was exported to,
// and would otherwise record a new one per call.
nb::object queue_by_dpctl(nb::handle filter) {
  const nb::object loaded = loaded_dpctl();
  if (loaded.is_none()) {
    return {};
  }
  const nb::object manager = nb::getattr(loaded, "_sycl_queue_manager", nb::none());
  nb::object queue =
      nb::steal(PyObject_CallMethod(manager.ptr(), "get_device_cached_queue", "O", filter.ptr()));
  if (!queue.is_valid()) {
    PyErr_Clear();
  }
  return queue;
}

// Resolves the filter as one of Isthmus, or as one of dpctl if only a device of SYCL's default
// context knows the pointer.
nb::object queue_of_filter(nb::handle filter, const void* pointer) {
  DeviceHandle device;
  if (try_find_device(nb::cast<const char*>(filter), device) == ISTHMUS_OK) {
    nb::object queue = to_queue(nb::handle{}, filter);
    if (query_kind(*queue_of(queue), pointer) != ISTHMUS_KIND_UNKNOWN) {
      return queue;
    }
  }
  const nb::object dpctl_queue = queue_by_dpctl(filter);
  return dpctl_queue.is_valid() ? find_sycl_queue(dpctl_queue) : to_queue(nb::handle{}, filter);
}

// Reads the interface dictionary of an object, which is SYCL's or CUDA's.
class InterfaceReader {
 public:
  InterfaceReader(nb::handle object, const char* protocol, nb::object entries)
      : object_{object}, protocol_{protocol}, entries_{std::move(entries)} {
    if (PyDict_Check(entries_.ptr()) == 0) {
      raise_python(PyExc_ValueError, "%s must be a dict, not %.100s", protocol_,
                   Py_TYPE(entries_.ptr())->tp_name);
    }
  }

  [[nodiscard]] ArrayInterface read() const {
    ArrayInterface interface;
    check_version();
    read_data(interface.memory);
    interface.queue =
        is_sycl() ? sycl_queue(interface.memory.pointer) : cuda_queue(interface.memory.pointer);
    try {
      read_layout(interface);
    } catch (const TooFar&) {
      raise_python(PyExc_ValueError, "%s exceeds the address space, 2**64: %R", protocol_,
                   entries_.ptr());
    }
    return interface;
  }

 private:
  [[nodiscard]] bool is_sycl() const noexcept { return protocol_ == k_sycl_protocol; }
  // An entry of the dictionary; not valid if there is none.
  [[nodiscard]] nb::object entry(const char* key) const {
    return nb::borrow(PyDict_GetItemString(entries_.ptr(), key));
  }

  void check_version() const;
  void read_data(Adoption& out) const;
  [[nodiscard]] bool to_flag(nb::handle value) const;
  [[nodiscard]] nb::object sycl_queue(const void* pointer) const;
  [[nodiscard]] nb::object cuda_queue(const void* pointer) const;
  void read_layout(ArrayInterface& interface) const;
  [[nodiscard]] std::int64_t to_int64(nb::handle value, const char* name) const;
  [[nodiscard]] std::vector<std::int64_t> to_numbers(nb::handle values, const char* name) const;
  [[nodiscard]] ArrayNumbers read_shape() const;
  void read_type(ArrayInterface& interface, ArrayLayout& out) const;
  [[nodiscard]] ArrayNumbers read_strides(const ArrayNumbers& shape, std::int64_t item) const;

  nb::handle object_;
  const char* protocol_;
  nb::object entries_;
};

// CUDA interfaces before version 2 have no reliable strides.
void InterfaceReader::check_version() const {
  const nb::object version = entry("version");
  const char* expected = is_sycl() ? "1" : "2 or 3";
  if (!version.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no version: it must be %s", protocol_, expected);
  }
  std::optional<nb::python_error> cause;
  const nb::object number = as_integer(version, &cause);
  if (!number.is_valid()) {
    raise_type_error(cause, "version of %s must be the integer %s, not %R", protocol_, expected,
                     version.ptr());
  }
  const bool is_supported = is_sycl() ? number.equal(nb::int_(1))
                                      : number.equal(nb::int_(2)) || number.equal(nb::int_(3));
  if (!is_supported) {
    raise_python(PyExc_ValueError, "version of %s must be %s, not %R", protocol_, expected,
                 version.ptr());
  }
}

void InterfaceReader::read_data(Adoption& out) const {
  const nb::object data = entry("data");
  if (!data.is_valid() || PySequence_Check(data.ptr()) == 0 || nb::len(data) != 2) {
    raise_python(PyExc_ValueError, "data of %s must be (pointer, read-only flag), not %R",
                 protocol_, data.is_valid() ? data.ptr() : Py_None);
  }
  const nb::object pointer = data[0];
  const nb::object flag = data[1];
  out.pointer = to_pointer(pointer, "data pointer");
  out.read_only = to_flag(flag);
}

bool InterfaceReader::to_flag(nb::handle value) const {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) {
    std::optional<nb::python_error> cause{take_foreign_error()};
    raise_type_error(cause, "the read-only flag of %s must be True or False, not %.100s", protocol_,
                     Py_TYPE(value.ptr())->tp_name);
  }
  return truth != 0;
}

nb::object InterfaceReader::sycl_queue(const void* pointer) const {
  const nb::object syclobj = entry("syclobj");
  if (syclobj.is_valid() && queue_of(syclobj) != nullptr) {
    return syclobj;
  }
  if (syclobj.is_valid() && context_of(syclobj) != nullptr) {
    return queue_for_pointer(*context_of(syclobj), pointer);
  }
  if (syclobj.is_valid() && device_of(syclobj) != nullptr) {
    return to_queue(nb::handle{}, syclobj);
  }
  if (syclobj.is_valid() && PyUnicode_Check(syclobj.ptr()) != 0) {
    return queue_of_filter(syclobj, pointer);
  }
  nb::object adopted = syclobj.is_valid() ? find_sycl_queue(syclobj) : nb::object{};
  if (adopted.is_valid()) {
    return adopted;
  }
  adopted = syclobj.is_valid() ? find_sycl_context(syclobj) : nb::object{};
  if (adopted.is_valid()) {
    return queue_for_pointer(*context_of(adopted), pointer);
  }
  raise_python(PyExc_ValueError,
               "syclobj of %s must be a Queue or Context, of Isthmus or dpctl, a capsule of one, a "
               "Device or a filter string, not %.100s",
               protocol_, syclobj.is_valid() ? Py_TYPE(syclobj.ptr())->tp_name : "missing");
}

// A stream of None means that the producer has waited for its work.
nb::object InterfaceReader::cuda_queue(const void* pointer) const {
  const nb::object mask = entry("mask");
  if (mask.is_valid() && !mask.is_none()) {
    raise_python(PyExc_ValueError, "%s has a mask, which is not supported: pass a plain array",
                 protocol_);
  }
  // Shared by all CUDA devices.
  auto shared = make_handle<ContextHandle>(isthmus_context_default, find_cuda_device(0).get());
  const nb::object default_queue = queue_for_pointer(*context_of(wrap(std::move(shared))), pointer);
  const nb::object stream = entry("stream");
  if (!stream.is_valid() || stream.is_none()) {
    return default_queue;
  }
  const auto number = reinterpret_cast<std::uintptr_t>(to_pointer(stream, "stream"));
  if (number == 0) {
    raise_python(PyExc_ValueError,
                 "stream of %s is 0, which is ambiguous: use 1 for the legacy default stream",
                 protocol_);
  }
  const auto& device = *device_of(queue_of(default_queue)->device_object);
  constexpr std::uintptr_t k_last_default = 2;  // the per-thread stream; 1 is the legacy one
  const bool has_owner = number > k_last_default;
  nb::object queue = wrap(queue_of_number(DeviceHandle::share(device.raw.get()), number,
                                          has_owner ? object_ : nb::handle{nb::none()}));
  return queue.equal(default_queue) ? default_queue : queue;
}

std::int64_t InterfaceReader::to_int64(nb::handle value, const char* name) const {
  std::optional<nb::python_error> cause;
  const nb::object index = as_integer(value, &cause);
  if (!index.is_valid()) {
    raise_type_error(cause, "%s of %s must be integers, not %R", name, protocol_, value.ptr());
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    raise_python(PyExc_ValueError, "%s of %s: %U does not fit in 63 bits", name, protocol_,
                 shown_integer(index).ptr());
  }
  return number;
}

std::vector<std::int64_t> InterfaceReader::to_numbers(nb::handle values, const char* name) const {
  std::vector<std::int64_t> numbers;
  nb::object iterator = nb::steal(PyObject_GetIter(values.ptr()));
  if (!iterator.is_valid()) {
    PyErr_Clear();
    raise_python(PyExc_ValueError, "%s of %s must be a sequence of integers, not %R", name,
                 protocol_, values.ptr());
  }
  for (nb::handle each : nb::iter(values)) {
    if (numbers.size() > max_axes) {
      break;  // also for an endless sequence
    }
    numbers.push_back(to_int64(each, name));
  }
  return numbers;
}

ArrayNumbers InterfaceReader::read_shape() const {
  const nb::object shape_entry = entry("shape");
  if (!shape_entry.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no shape", protocol_);
  }
  const auto shape = to_numbers(shape_entry, "shape");
  for (const auto extent : shape) {
    if (extent < 0) {
      raise_python(PyExc_ValueError, "shape of %s has a negative extent: %R", protocol_,
                   shape_entry.ptr());
    }
  }
  if (shape.size() > max_axes) {
    raise_python(PyExc_ValueError, "shape of %s has %zu extents or more: the limit is %zu",
                 protocol_, shape.size(), max_axes);
  }
  return ArrayNumbers(shape);
}

void InterfaceReader::read_type(ArrayInterface& interface, ArrayLayout& out) const {
  nb::object typestr = entry("typestr");
  if (!typestr.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no typestr", protocol_);
  }
  const auto size = item_size_of(typestr);
  if (size == 0) {
    raise_python(PyExc_ValueError, "typestr of %s must name a number or bool, as '<f4', not %R",
                 protocol_, typestr.ptr());
  }
  out.item = static_cast<std::int64_t>(size);
  out.type = find_element_type(typestr);
  interface.typestr = std::move(typestr);
}

// Strides count elements in SYCL's interface, and bytes in CUDA's.
ArrayNumbers InterfaceReader::read_strides(const ArrayNumbers& shape, std::int64_t item) const {
  const nb::object strides_entry = entry("strides");
  if (!strides_entry.is_valid() || strides_entry.is_none()) {
    return dense_strides(shape, item);
  }
  auto strides = to_numbers(strides_entry, "strides");
  if (strides.size() != shape.size()) {
    raise_python(PyExc_ValueError,
                 "strides of %s must have one number for each extent of the shape, %zu, not %zu",
                 protocol_, shape.size(), strides.size());
  }
  for (auto& each : strides) {
    if (is_sycl() && __builtin_mul_overflow(each, item, &each)) {
      throw TooFar{};
    }
  }
  return ArrayNumbers(strides);
}

void InterfaceReader::read_layout(ArrayInterface& interface) const {
  ArrayLayout layout;
  layout.shape = read_shape();
  read_type(interface, layout);
  layout.strides = read_strides(layout.shape, layout.item);
  const nb::object offset_entry = is_sycl() ? entry("offset") : nb::object{};
  std::int64_t offset = offset_entry.is_valid() ? to_int64(offset_entry, "offset") : 0;
  const auto box = box_of(layout);
  const auto base = reinterpret_cast<std::uintptr_t>(interface.memory.pointer);
  std::uintptr_t first = 0;
  if (__builtin_mul_overflow(offset, layout.item, &offset) ||
      __builtin_add_overflow(offset, box.start, &offset) ||
      __builtin_add_overflow(base, offset, &first) ||
      first > UINTPTR_MAX - static_cast<std::uintptr_t>(box.nbytes)) {
    throw TooFar{};
  }
  interface.memory.pointer = reinterpret_cast<void*>(first);
  interface.memory.nbytes = static_cast<std::size_t>(box.nbytes);
  interface.empty = layout.is_empty();
  interface.contiguous = layout.is_contiguous(layout.item) || layout.is_column_major(layout.item);
  interface.layout = std::move(layout);
}

}  // namespace

// Exceptions of the property other than AttributeError propagate: the message of PyTorch's names
// the remedy.
std::optional<ArrayInterface> read_interface(nb::handle object, Access access) {
  for (const char* each : {k_sycl_protocol, k_cuda_protocol}) {
    const nb::object entries = nb::steal(PyObject_GetAttrString(object.ptr(), each));
    if (entries.is_valid()) {
      auto interface = InterfaceReader{object, each, entries}.read();
      interface.memory.read_only =
          interface.memory.read_only || (access == Access::write && is_read_only_by_any(object));
      return interface;
    }
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
      raise_set();
    }
    PyErr_Clear();
  }
  return {};
}

}  // namespace isthmus::python
