// SPDX-License-Identifier: Apache-2.0
#include "interfaces.hpp"

#include <vector>

#include "arguments.hpp"
#include "cuda_streams.hpp"
#include "current.hpp"
#include "read_only.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {

isthmus_kind_t kind_on(const Queue& queue, const void* pointer) {
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_pointer_query(isthmus_queue_context(queue.raw.get()), pointer, &info));
  return info.kind;
}

namespace {

constexpr const char* k_sycls = "__sycl_usm_array_interface__";
constexpr const char* k_cudas = "__cuda_array_interface__";

// The default queue if it is of this context, else a new one on the pointer's device.
nb::object queue_in_context(const Context& in, const void* pointer) {
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_pointer_query(in.raw.get(), pointer, &info));
  DeviceHandle where;
  if (info.device != nullptr) {
    where = DeviceHandle::retained(info.device);
  } else {
    check(isthmus_context_device(in.raw.get(), 0, where.out()));
  }
  QueueHandle found;
  check(isthmus_queue_default(where.get(), found.out()));
  const auto key = isthmus_context_key(isthmus_queue_context(found.get()));
  if (key != isthmus_context_key(in.raw.get())) {
    QueueHandle made;
    check(isthmus_queue_create(in.raw.get(), where.get(), made.out()));
    found = std::move(made);
  }
  return wrap(std::move(found));
}

// Not valid if dpctl is not imported or does not know the filter. Uses the queue that dpctl caches
// for the device: memory remembers every queue that it was exported to, and would get a new one per
// call.
nb::object queue_by_dpctl(nb::handle filter) {
  const nb::object loaded = loaded_dpctl();
  if (loaded.is_none()) {
    return {};
  }
  const nb::object keeper = nb::getattr(loaded, "_sycl_queue_manager", nb::none());
  nb::object made =
      nb::steal(PyObject_CallMethod(keeper.ptr(), "get_device_cached_queue", "O", filter.ptr()));
  if (!made.is_valid()) {
    PyErr_Clear();
  }
  return made;
}

// By our filters, or by dpctl's if only a device of SYCL's default context knows the pointer.
nb::object queue_of_filter(nb::handle filter, const void* pointer) {
  DeviceHandle found;
  if (look_for_device(nb::cast<const char*>(filter), found) == ISTHMUS_OK) {
    nb::object known = to_queue(nb::handle{}, filter);
    if (kind_on(*queue_of(known), pointer) != ISTHMUS_KIND_UNKNOWN) {
      return known;
    }
  }
  const nb::object theirs = queue_by_dpctl(filter);
  return theirs.is_valid() ? find_sycl_queue(theirs) : to_queue(nb::handle{}, filter);
}

// The interface dictionary of an object, and which of the two it is.
class InterfaceReader {
 public:
  InterfaceReader(nb::handle object, const char* protocol, nb::object entries)
      : object_{object}, protocol_{protocol}, entries_{std::move(entries)} {
    if (PyDict_Check(entries_.ptr()) == 0) {
      raise_python(PyExc_ValueError, "%s must be a dict, not %.100s", protocol_,
                   Py_TYPE(entries_.ptr())->tp_name);
    }
  }

  [[nodiscard]] ToldInterface read() const {
    ToldInterface told;
    check_version();
    read_data(told.what);
    told.queue = is_sycls() ? sycl_queue(told.what.pointer) : cuda_queue(told.what.pointer);
    try {
      read_layout(told);
    } catch (const TooFar&) {
      raise_python(PyExc_ValueError, "%s exceeds the address space, 2**64: %R", protocol_,
                   entries_.ptr());
    }
    return told;
  }

 private:
  [[nodiscard]] bool is_sycls() const noexcept { return protocol_ == k_sycls; }
  // Not valid if there is none.
  [[nodiscard]] nb::object entry(const char* key) const {
    return nb::borrow(PyDict_GetItemString(entries_.ptr(), key));
  }

  void check_version() const;
  void read_data(Adoption& out) const;
  [[nodiscard]] bool to_flag(nb::handle value) const;
  [[nodiscard]] nb::object sycl_queue(const void* pointer) const;
  [[nodiscard]] nb::object cuda_queue(const void* pointer) const;
  void read_layout(ToldInterface& told) const;
  [[nodiscard]] std::int64_t to_int64(nb::handle value, const char* name) const;
  [[nodiscard]] ArrayNumbers to_numbers(nb::handle values, const char* name) const;
  [[nodiscard]] ArrayNumbers read_shape() const;
  void read_type(ToldInterface& told, ArrayLayout& out) const;
  [[nodiscard]] ArrayNumbers read_strides(const ArrayNumbers& shape, std::int64_t item) const;

  nb::handle object_;
  const char* protocol_;
  nb::object entries_;
};

// CUDA interfaces before version 2 have no reliable strides.
void InterfaceReader::check_version() const {
  const nb::object version = entry("version");
  const char* known = is_sycls() ? "1" : "2 or 3";
  if (!version.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no version: it must be %s", protocol_, known);
  }
  std::optional<nb::python_error> cause;
  const nb::object number = as_integer(version, &cause);
  if (!number.is_valid()) {
    raise_type_error(cause, "version of %s must be the integer %s, not %R", protocol_, known,
                     version.ptr());
  }
  const bool is_known = is_sycls() ? number.equal(nb::int_(1))
                                   : number.equal(nb::int_(2)) || number.equal(nb::int_(3));
  if (!is_known) {
    raise_python(PyExc_ValueError, "version of %s must be %s, not %R", protocol_, known,
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
  const int told = PyObject_IsTrue(value.ptr());
  if (told < 0) {
    std::optional<nb::python_error> cause{take_foreign_error()};
    raise_type_error(cause, "the read-only flag of %s must be True or False, not %.100s", protocol_,
                     Py_TYPE(value.ptr())->tp_name);
  }
  return told != 0;
}

nb::object InterfaceReader::sycl_queue(const void* pointer) const {
  const nb::object given = entry("syclobj");
  if (given.is_valid() && queue_of(given) != nullptr) {
    return given;
  }
  if (given.is_valid() && context_of(given) != nullptr) {
    return queue_in_context(*context_of(given), pointer);
  }
  if (given.is_valid() && device_of(given) != nullptr) {
    return to_queue(nb::handle{}, given);
  }
  if (given.is_valid() && PyUnicode_Check(given.ptr()) != 0) {
    return queue_of_filter(given, pointer);
  }
  nb::object adopted = given.is_valid() ? find_sycl_queue(given) : nb::object{};
  if (adopted.is_valid()) {
    return adopted;
  }
  adopted = given.is_valid() ? find_sycl_context(given) : nb::object{};
  if (adopted.is_valid()) {
    return queue_in_context(*context_of(adopted), pointer);
  }
  raise_python(PyExc_ValueError,
               "syclobj of %s must be a Queue or Context, of Isthmus or dpctl, a capsule of one, a "
               "Device or a filter string, not %.100s",
               protocol_, given.is_valid() ? Py_TYPE(given.ptr())->tp_name : "missing");
}

// None: the producer has waited for its work.
nb::object InterfaceReader::cuda_queue(const void* pointer) const {
  const nb::object mask = entry("mask");
  if (mask.is_valid() && !mask.is_none()) {
    raise_python(PyExc_ValueError, "%s has a mask, which is not supported: pass a plain array",
                 protocol_);
  }
  ContextHandle shared;  // by all CUDA devices
  check(isthmus_context_default(find_cuda_device(0).get(), shared.out()));
  const nb::object found = queue_in_context(*context_of(wrap(std::move(shared))), pointer);
  const nb::object stream = entry("stream");
  if (!stream.is_valid() || stream.is_none()) {
    return found;
  }
  const auto number = reinterpret_cast<std::uintptr_t>(to_pointer(stream, "stream"));
  if (number == 0) {
    raise_python(PyExc_ValueError,
                 "stream of %s is 0, which is ambiguous: use 1 for the legacy default stream",
                 protocol_);
  }
  const auto& where = *device_of(queue_of(found)->device_object);
  constexpr std::uintptr_t k_last_default = 2;  // the per-thread one; 1 is the legacy one
  const bool has_owner = number > k_last_default;
  nb::object made = wrap(queue_of_number(DeviceHandle::retained(where.raw.get()), number,
                                         has_owner ? object_ : nb::handle{nb::none()}));
  return made.equal(found) ? found : made;
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

ArrayNumbers InterfaceReader::to_numbers(nb::handle values, const char* name) const {
  ArrayNumbers numbers;
  nb::object iterator = nb::steal(PyObject_GetIter(values.ptr()));
  if (!iterator.is_valid()) {
    PyErr_Clear();
    raise_python(PyExc_ValueError, "%s of %s must be a sequence of integers, not %R", name,
                 protocol_, values.ptr());
  }
  for (nb::handle each : nb::iter(values)) {
    if (numbers.size() > PyBUF_MAX_NDIM) {
      break;  // also for an endless sequence
    }
    numbers.push_back(to_int64(each, name));
  }
  return numbers;
}

ArrayNumbers InterfaceReader::read_shape() const {
  const nb::object given = entry("shape");
  if (!given.is_valid()) {
    raise_python(PyExc_ValueError, "%s has no shape", protocol_);
  }
  auto shape = to_numbers(given, "shape");
  for (const auto extent : shape) {
    if (extent < 0) {
      raise_python(PyExc_ValueError, "shape of %s has a negative extent: %R", protocol_,
                   given.ptr());
    }
  }
  if (shape.size() > PyBUF_MAX_NDIM) {
    raise_python(PyExc_ValueError, "shape of %s has %zu extents or more: the limit is %d",
                 protocol_, shape.size(), PyBUF_MAX_NDIM);
  }
  return shape;
}

void InterfaceReader::read_type(ToldInterface& told, ArrayLayout& out) const {
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
  told.typestr = std::move(typestr);
}

// SYCL's count elements, CUDA's count bytes.
ArrayNumbers InterfaceReader::read_strides(const ArrayNumbers& shape, std::int64_t item) const {
  const nb::object given = entry("strides");
  if (!given.is_valid() || given.is_none()) {
    return dense_strides(shape, item);
  }
  auto strides = to_numbers(given, "strides");
  if (strides.size() != shape.size()) {
    raise_python(PyExc_ValueError,
                 "strides of %s must have one number for each extent of the shape, %zu, not %zu",
                 protocol_, shape.size(), strides.size());
  }
  for (auto& each : strides) {
    if (is_sycls() && __builtin_mul_overflow(each, item, &each)) {
      throw TooFar{};
    }
  }
  return strides;
}

void InterfaceReader::read_layout(ToldInterface& told) const {
  ArrayLayout layout;
  layout.shape = read_shape();
  read_type(told, layout);
  layout.strides = read_strides(layout.shape, layout.item);
  const nb::object given = is_sycls() ? entry("offset") : nb::object{};
  std::int64_t start = given.is_valid() ? to_int64(given, "offset") : 0;
  const auto box = box_of(layout);
  const auto base = reinterpret_cast<std::uintptr_t>(told.what.pointer);
  std::uintptr_t first = 0;
  if (__builtin_mul_overflow(start, layout.item, &start) ||
      __builtin_add_overflow(start, box.start, &start) ||
      __builtin_add_overflow(base, start, &first) ||
      first > UINTPTR_MAX - static_cast<std::uintptr_t>(box.nbytes)) {
    throw TooFar{};
  }
  told.what.pointer = reinterpret_cast<void*>(first);
  told.what.nbytes = static_cast<std::size_t>(box.nbytes);
  told.empty = is_empty(layout);
  told.contiguous = is_contiguous(layout);
  told.layout = std::move(layout);
}

}  // namespace

// An exception of the property, other than that there is none, propagates: PyTorch's message says
// what to do.
std::optional<ToldInterface> read_interface(nb::handle object, Access wanted) {
  for (const char* each : {k_sycls, k_cudas}) {
    const nb::object entries = nb::steal(PyObject_GetAttrString(object.ptr(), each));
    if (entries.is_valid()) {
      auto told = InterfaceReader{object, each, entries}.read();
      told.what.read_only =
          told.what.read_only || (wanted == Access::write && is_read_only_by_any(object));
      return told;
    }
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
      raise_set();
    }
    PyErr_Clear();
  }
  return {};
}

}  // namespace isthmus::python
