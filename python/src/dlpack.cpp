#include "dlpack.hpp"

#include <memory>

#include "current.hpp"
#include "gil.hpp"
#include "owners.hpp"
#include "transfers.hpp"

namespace isthmus::python {
namespace {

constexpr const char* k_name = "dltensor";
constexpr const char* k_versioned_name = "dltensor_versioned";

// -- out ------------------------------------------------------------------------------------------

// One lent tensor. The consumer gives it back on any thread, without the interpreter: it holds
// nothing of Python's.
template <class Managed>
struct lent_tensor {
  Managed managed{};
  std::int64_t shape[1]{};
  std::int64_t strides[1]{1};
  buffer_handle exported;  // of a buffer of ours; or
  void* result = nullptr;  // of a copy

  ~lent_tensor() {
    if (exported) {
      isthmus_buffer_unexport(exported.get());
    }
    isthmus_result_free(result);
  }
};

template <class Managed>
void give_back(Managed* managed) {
  delete static_cast<lent_tensor<Managed>*>(managed->context);
}

// A capsule that nobody took still has its first name.
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) != 0) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
  }
}

void* take_memory(const buffer& of, bool copies, buffer_handle& exported, void*& result) {
  if (copies) {
    check(isthmus_result_allocate(std::max<std::size_t>(of.nbytes, 1), &result));
    copy_out(of, result, nb::object{});
    return result;
  }
  void* pointer = export_to_host(of);
  exported = buffer_handle::retained(of.raw.get());
  return pointer;
}

template <class Managed>
nb::object make_capsule(const buffer& of, bool copies, const char* name,
                        PyCapsule_Destructor destructor) {
  auto lent = std::make_unique<lent_tensor<Managed>>();
  auto& tensor = lent->managed.tensor;
  tensor.data = take_memory(of, copies, lent->exported, lent->result);
  tensor.device = {dlpack::k_cpu, 0};
  tensor.ndim = 1;
  tensor.dtype = {1, 8, 1};
  lent->shape[0] = static_cast<std::int64_t>(of.nbytes);
  tensor.shape = lent->shape;
  tensor.strides = lent->strides;
  lent->managed.context = lent.get();
  lent->managed.deleter = &give_back<Managed>;
  if constexpr (std::is_same_v<Managed, dlpack::managed_versioned>) {
    lent->managed.version = {1, 0};
    lent->managed.flags = copies ? dlpack::k_is_copied : of.read_only ? dlpack::k_read_only : 0;
  }
  nb::object capsule = nb::steal(PyCapsule_New(&lent->managed, name, destructor));
  if (!capsule.is_valid()) {
    raise_set();
  }
  static_cast<void>(lent.release());
  return capsule;
}

void require_cpu(const buffer& of, nb::handle device) {
  if (!host_reachable(of.kind)) {
    raise_python(
        PyExc_BufferError,
        "DLPack: the host cannot touch memory of kind 'device': copy it into memory of kind "
        "'host', or use to_numpy()");
  }
  if (device.is_none()) {
    return;
  }
  const nb::object cpu = nb::make_tuple(dlpack::k_cpu, 0);
  if (!nb::steal(PySequence_Tuple(device.ptr())).equal(cpu)) {
    PyErr_Clear();
    raise_python(PyExc_BufferError, "DLPack: this memory is lent to the CPU, (1, 0), not to %R",
                 device.ptr());
  }
}

bool wants_version(nb::handle max_version) {
  if (max_version.is_none()) {
    return false;
  }
  const nb::object major = max_version[0];
  return nb::cast<int>(major) >= 1;
}

// -- in -------------------------------------------------------------------------------------------

// A tensor lent to us. Producers' deleters may need the interpreter's lock.
template <class Managed>
struct borrowed_tensor final : deferred {
  explicit borrowed_tensor(Managed* lent) : managed{lent} {}
  ~borrowed_tensor() override {
    if (managed->deleter != nullptr) {
      managed->deleter(managed);
    }
  }
  Managed* managed;
};

std::size_t item_bytes(const dlpack::tensor& of) {
  const auto bits = static_cast<std::size_t>(of.dtype.bits) * of.dtype.lanes;
  if (bits == 0 || bits % 8 != 0) {
    raise_python(PyExc_BufferError, "DLPack: elements of %zu bits are not whole bytes", bits);
  }
  return bits / 8;
}

std::size_t tensor_bytes(const dlpack::tensor& of) {
  std::size_t bytes = item_bytes(of);
  for (int i = 0; i < of.ndim; ++i) {
    if (of.shape[i] < 0 ||
        __builtin_mul_overflow(bytes, static_cast<std::size_t>(of.shape[i]), &bytes)) {
      raise_python(PyExc_BufferError, "DLPack: a shape that cannot be");
    }
  }
  return bytes;
}

void require_contiguous(const dlpack::tensor& of) {
  std::int64_t step = 1;
  for (int i = of.ndim; of.strides != nullptr && i-- > 0;) {
    if (of.shape[i] > 1 && of.strides[i] != step) {
      raise_python(PyExc_ValueError,
                   "the array is not contiguous: pass a contiguous copy of it, as "
                   "numpy.ascontiguousarray(...)");
    }
    step *= of.shape[i];
  }
}

adoption read_tensor(const dlpack::tensor& of, std::uint64_t flags) {
  if (of.device.type != dlpack::k_cpu) {
    raise_python(PyExc_BufferError, "DLPack: memory of device type %d is not the CPU's",
                 of.device.type);
  }
  const auto nbytes = tensor_bytes(of);
  if (nbytes != 0) {
    require_contiguous(of);
  }
  return {static_cast<char*>(of.data) + of.byte_offset, nbytes, ISTHMUS_KIND_HOST,
          (flags & dlpack::k_read_only) != 0};
}

std::uint64_t flags_of(const dlpack::managed&) { return 0; }
std::uint64_t flags_of(const dlpack::managed_versioned& of) { return of.flags; }

// USM that the queue's context knows keeps its kind; all other memory is the host's.
isthmus_kind_t kind_of(const void* pointer, const queue& on) {
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_pointer_query(context_of(on.context_object)->raw.get(), pointer, &info));
  return info.kind == ISTHMUS_KIND_UNKNOWN ? ISTHMUS_KIND_HOST : info.kind;
}

template <class Managed>
nb::object adopt_tensor(nb::handle capsule, const char* name, const char* used_name,
                        nb::handle object, nb::object queue) {
  auto* lent = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  auto what = read_tensor(lent->tensor, flags_of(*lent));
  what.kind = kind_of(what.pointer, *queue_of(queue));
  auto kept = std::make_unique<borrowed_tensor<Managed>>(lent);
  PyCapsule_SetName(capsule.ptr(), used_name);
  PyCapsule_SetDestructor(capsule.ptr(), nullptr);
  const auto owner = defer_owner(kept.release());
  nb::object made = nb::inst_alloc(types.buffer);
  buffer_handle adopted;
  check(isthmus_buffer_adopt(what.nbytes == 0 ? nullptr : what.pointer, what.nbytes, what.kind,
                             what.read_only ? 1 : 0, queue_of(queue)->raw.get(), owner,
                             adopted.out()));
  new (nb::inst_ptr<buffer>(made)) buffer{std::move(adopted), std::move(queue), nb::borrow(object),
                                          what.kind,          what.nbytes,      what.read_only};
  nb::inst_mark_ready(made);
  return made;
}

// What stands behind the version is known for major version 1 alone; the capsule stays unused.
void require_known_version(nb::handle capsule) {
  const auto& version =
      static_cast<dlpack::managed_versioned*>(PyCapsule_GetPointer(capsule.ptr(), k_versioned_name))
          ->version;
  if (version.major != 1) {
    raise_python(PyExc_BufferError,
                 "DLPack: version %u.%u is not known here, 1.x is: ask for "
                 "max_version=(1, 0)",
                 version.major, version.minor);
  }
}

nb::object ask_for_capsule(nb::handle object) {
  const nb::object device = object.attr("__dlpack_device__")();
  const nb::object type = device[0];
  if (nb::cast<int>(nb::object(nb::steal(PyNumber_Index(type.ptr())))) != dlpack::k_cpu) {
    raise_python(PyExc_BufferError, "DLPack: %R is not the CPU, (1, 0)", device.ptr());
  }
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_TypeError)) {
      throw;
    }
  }
  return method();
}

}  // namespace

nb::object dlpack_device(const buffer& self) {
  require_cpu(self, nb::none());
  return nb::make_tuple(dlpack::k_cpu, 0);
}

nb::object to_dlpack(nb::handle self, nb::handle stream, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  const auto& of = require_buffer(self);
  require_cpu(of, device);
  if (!stream.is_none()) {
    raise_python(PyExc_BufferError, "DLPack: the CPU has no streams: stream must be None, not %R",
                 stream.ptr());
  }
  drain_deferred();
  const bool copies = !copy.is_none() && PyObject_IsTrue(copy.ptr()) == 1;
  if (wants_version(max_version)) {
    return make_capsule<dlpack::managed_versioned>(
        of, copies, k_versioned_name, [](PyObject* capsule) {
          drop_capsule<dlpack::managed_versioned>(capsule, k_versioned_name);
        });
  }
  if (of.read_only && !copies) {
    raise_python(
        PyExc_BufferError,
        "DLPack: read-only memory can be lent from version 1.0 on: pass max_version=(1, 0)");
  }
  return make_capsule<dlpack::managed>(of, copies, k_name, [](PyObject* capsule) {
    drop_capsule<dlpack::managed>(capsule, k_name);
  });
}

nb::object from_dlpack(nb::handle object, nb::handle queue) {
  drain_deferred();
  nb::object on =
      queue.is_none() ? to_queue(nb::handle{}, nb::str("host")) : to_queue(queue, nb::handle{});
  const bool is_capsule = PyCapsule_CheckExact(object.ptr()) != 0;
  const nb::object capsule = is_capsule ? nb::borrow(object) : ask_for_capsule(object);
  if (PyCapsule_IsValid(capsule.ptr(), k_versioned_name) != 0) {
    require_known_version(capsule);
    return adopt_tensor<dlpack::managed_versioned>(
        capsule, k_versioned_name, "used_dltensor_versioned", object, std::move(on));
  }
  if (PyCapsule_IsValid(capsule.ptr(), k_name) != 0) {
    return adopt_tensor<dlpack::managed>(capsule, k_name, "used_dltensor", object, std::move(on));
  }
  raise_python(PyExc_BufferError,
               "DLPack: %R is no capsule \"dltensor\" or \"dltensor_versioned\" "
               "that is still unused",
               capsule.ptr());
}

}  // namespace isthmus::python
