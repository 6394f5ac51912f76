// SPDX-License-Identifier: Apache-2.0
// DLPack import: memory of other libraries as buffers. Needs the interpreter's lock.

#include <memory>

#include "buffer/typed_array.hpp"
#include "core/cuda_streams.hpp"
#include "core/current.hpp"
#include "core/owners.hpp"
#include "core/sycl_objects.hpp"
#include "interop/dlpack.hpp"
#include "interop/oneapi_numbers.hpp"
#include "layout/dlpack_tensor.hpp"
#include "transfer/interfaces.hpp"
#include "transfer/read_only.hpp"

namespace isthmus::python {
namespace {

// A tensor of another library. Its deleter may need the interpreter's lock, so it runs through the
// deferred list.
template <class Managed>
struct BorrowedTensor final : Deferred {
  explicit BorrowedTensor(Managed* owned) : managed{owned} {}
  ~BorrowedTensor() override {
    if (managed->deleter != nullptr) {
      managed->deleter(managed);
    }
  }
  Managed* managed;
};

void require_contiguous(const dlpack::Tensor& tensor) {
  std::int64_t step = 1;
  for (int i = tensor.ndim; tensor.strides != nullptr && i-- > 0;) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != step) {
      raise_python(
          PyExc_ValueError,
          "the array of shape %R is not contiguous: its strides, in elements, are %R; pass "
          "a contiguous copy, for example numpy.ascontiguousarray(...)",
          to_tuple(dlpack::shape_of(tensor)).ptr(), dlpack::strides_of(tensor).ptr());
    }
    step *= tensor.shape[i];
  }
}

// All bytes, as a one-dimensional array.
Adoption read_bytes(const dlpack::Tensor& tensor, std::uint64_t flags) {
  const auto nbytes = dlpack::packed_bytes(tensor, flags);
  if (nbytes == 0) {
    return {tensor.data, 0, ISTHMUS_KIND_HOST, false};
  }
  require_contiguous(tensor);
  return {dlpack::lowest_address(tensor, 0, nbytes), nbytes, ISTHMUS_KIND_HOST, false};
}

const ElementType& type_of(const dlpack::DataType& dtype) {
  for (const auto& each : element_types()) {
    if (dtype.lanes == 1 && each.code == dtype.code && each.item * 8 == dtype.bits) {
      return each;
    }
  }
  raise_python(PyExc_BufferError,
               "DLPack: elements of type code %d, %d bits and %d lanes are not supported",
               dtype.code, dtype.bits, dtype.lanes);
}

SharedLayout layout_of(const dlpack::Tensor& tensor, std::uint64_t flags) {
  const auto& type = type_of(tensor.dtype);
  const bool is_empty = dlpack::packed_bytes(tensor, flags) == 0;
  ArrayLayout layout{{dlpack::shape_of(tensor)}, type.item, &type};
  try {
    layout.strides = tensor.strides == nullptr ? dense_strides(layout.shape, type.item)
                                               : dlpack::byte_strides(tensor, type.item, is_empty);
    return share_layout(std::move(layout));
  } catch (const TooFar&) {
    dlpack::raise_too_far(tensor, type.item);
  }
}

// The bounding box of all elements.
Adoption read_bounding_box(const dlpack::Tensor& tensor, const TypedLayout& layout) {
  if (layout.size == 0) {
    return {tensor.data, 0, ISTHMUS_KIND_HOST, false};
  }
  auto* const lowest = dlpack::lowest_address(tensor, layout.before, layout.extent);
  require_element_multiples(static_cast<char*>(lowest) + layout.before, layout, "DLPack");
  return {lowest, layout.extent, ISTHMUS_KIND_HOST, false};
}

std::uint64_t flags_of(const dlpack::Managed&) { return 0; }
std::uint64_t flags_of(const dlpack::ManagedVersioned& versioned) { return versioned.flags; }

// USM of the queue's context keeps its kind. All other CPU memory is of kind host.
isthmus_kind_t kind_of(const Adoption& adoption, const dlpack::Device& device, const Queue& queue) {
  const auto kind = query_kind(queue, adoption.pointer);
  if (kind != ISTHMUS_KIND_UNKNOWN || device.type == dlpack::k_cpu) {
    return kind == ISTHMUS_KIND_UNKNOWN ? ISTHMUS_KIND_HOST : kind;
  }
  if (adoption.nbytes == 0) {
    return device.type == dlpack::k_cuda_host      ? ISTHMUS_KIND_HOST
           : device.type == dlpack::k_cuda_managed ? ISTHMUS_KIND_SHARED
                                                   : ISTHMUS_KIND_DEVICE;
  }
  raise_python(PyExc_BufferError, "DLPack: %s does not know the memory at %p",
               device.type == dlpack::k_oneapi ? "SYCL's default context" : "CUDA",
               adoption.pointer);
}

template <class Managed>
nb::object adopt_tensor(nb::handle capsule, const char* name, const char* consumed_name,
                        nb::handle object, nb::object queue, Adoption adoption) {
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  adoption.read_only = (flags_of(*tensor) & dlpack::k_read_only) != 0 || adoption.read_only;
  adoption.kind = kind_of(adoption, tensor->tensor.device, *queue_of(queue));
  auto holder = std::make_unique<BorrowedTensor<Managed>>(tensor);
  PyCapsule_SetName(capsule.ptr(), consumed_name);
  PyCapsule_SetDestructor(capsule.ptr(), nullptr);
  nb::object buffer_object = nb::inst_alloc(types.buffer);
  auto* const queue_handle = queue_of(queue)->raw.get();
  BufferHandle adopted;
  if (adoption.nbytes == 0) {
    check(isthmus_buffer_create(0, adoption.kind, 0, queue_handle, nullptr, adopted.out()));
  } else {
    const auto owner = defer_owner(holder.release());
    check(isthmus_buffer_adopt(adoption.pointer, adoption.nbytes, adoption.kind,
                               adoption.read_only ? 1 : 0, queue_handle, owner, adopted.out()));
  }
  new (nb::inst_ptr<Buffer>(buffer_object))
      Buffer{std::move(adopted), std::move(queue), nb::borrow(object),
             adoption.kind,      adoption.nbytes,  adoption.read_only};
  nb::inst_mark_ready(buffer_object);
  return buffer_object;
}

nb::object adopt_capsule(nb::handle capsule, nb::handle object, nb::object queue,
                         const Adoption& adoption) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::k_versioned_name) != 0) {
    return adopt_tensor<dlpack::ManagedVersioned>(capsule, dlpack::k_versioned_name,
                                                  "used_dltensor_versioned", object,
                                                  std::move(queue), adoption);
  }
  return adopt_tensor<dlpack::Managed>(capsule, dlpack::k_name, "used_dltensor", object,
                                       std::move(queue), adoption);
}

// The structure in the capsule; null if the capsule has another name.
template <class Managed>
Managed* managed_in(nb::handle capsule, const char* name) {
  return PyCapsule_IsValid(capsule.ptr(), name) != 0
             ? static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name))
             : nullptr;
}
dlpack::ManagedVersioned* versioned_in(nb::handle capsule) {
  return managed_in<dlpack::ManagedVersioned>(capsule, dlpack::k_versioned_name);
}

// The fields after the version are defined for major version 1 only. The capsule stays unconsumed.
const dlpack::Tensor& tensor_in(nb::handle capsule) {
  if (const auto* versioned = versioned_in(capsule)) {
    const auto& version = versioned->version;
    if (version.major != 1) {
      raise_python(PyExc_BufferError,
                   "DLPack: version %u.%u is not supported, only 1.x: request max_version=(1, 0)",
                   version.major, version.minor);
    }
    return versioned->tensor;
  }
  if (const auto* managed = managed_in<dlpack::Managed>(capsule, dlpack::k_name)) {
    return managed->tensor;
  }
  raise_python(PyExc_BufferError,
               "DLPack: %R is not an unused capsule \"dltensor\" or \"dltensor_versioned\"",
               capsule.ptr());
}

std::uint64_t flags_in(nb::handle capsule) {
  const auto* versioned = versioned_in(capsule);
  return versioned != nullptr ? versioned->flags : 0;
}

bool is_cuda(const dlpack::Device& device) {
  return device.type == dlpack::k_cuda || device.type == dlpack::k_cuda_host ||
         device.type == dlpack::k_cuda_managed;
}

int number_of(const dlpack::Device& device, const Queue& queue) {
  return device.type == dlpack::k_oneapi ? oneapi_number_of(queue) : cuda_number_of(queue);
}

nb::object default_queue_for(const dlpack::Device& device) {
  if (device.type != dlpack::k_oneapi) {
    return default_queue_of(*device_of(wrap(find_cuda_device(device.id))));
  }
  nb::object found = oneapi_queue(device.id);
  if (!found.is_valid()) {
    raise_python(PyExc_BufferError,
                 "DLPack: device (%d, %d) is not a dpctl device with USM, or dpctl is not imported",
                 device.type, device.id);
  }
  return found;
}

// The requested queue, else the current one if it is on that device, else that device's default
// queue.
nb::object queue_for(const dlpack::Device& device, nb::handle queue_argument) {
  if (device.id < 0) {
    raise_python(PyExc_BufferError, "DLPack: (%d, %d) is not a device", device.type, device.id);
  }
  if (device.type == dlpack::k_cpu) {
    return queue_argument.is_none() ? to_queue(nb::handle{}, nb::str("host"))
                                    : to_queue(queue_argument, nb::handle{});
  }
  if (!is_cuda(device) && device.type != dlpack::k_oneapi) {
    raise_python(PyExc_BufferError,
                 "DLPack: memory of device (%d, %d) is not supported: use memory of the CPU, (1, "
                 "0), CUDA, (2, n), (3, n) or (13, n), or SYCL, (14, n)",
                 device.type, device.id);
  }
  nb::object queue =
      queue_argument.is_none() ? current_queue() : to_queue(queue_argument, nb::handle{});
  if (number_of(device, *queue_of(queue)) == device.id) {
    return queue;
  }
  if (!queue_argument.is_none()) {
    raise_python(PyExc_BufferError, "DLPack: memory of device (%d, %d) does not belong to %R",
                 device.type, device.id, queue_argument.ptr());
  }
  return default_queue_for(device);
}

// A stream is passed to producers whose memory is ordered by a device's streams. Pinned host memory
// is not: PyTorch, which regards its pinned tensors as CPU memory, refuses any stream.
nb::object request_capsule(nb::handle object, const dlpack::Device& device, const Queue& queue) {
  const nb::object method = object.attr("__dlpack__");
  nb::dict arguments;
  if (device.type == dlpack::k_oneapi) {
    arguments["stream"] = loaded_dpctl().attr("SyclQueue")(sycl_capsule(queue));
  } else if (device.type == dlpack::k_cuda || device.type == dlpack::k_cuda_managed) {
    arguments["stream"] = stream_to_wait(queue);
  }
  nb::object versioned = arguments.attr("copy")();
  versioned[nb::str("max_version")] = nb::make_tuple(1, 0);
  try {
    return method(**nb::borrow<nb::dict>(versioned));
  } catch (nb::python_error& failed) {
    if (!failed.matches(PyExc_TypeError)) {
      throw;
    }
  }
  return method(**arguments);
}

// The memory of an imported object, and the queue that it is used on.
struct ImportedMemory {
  ImportedMemory(nb::handle source, nb::handle queue_argument)
      : object{source},
        is_capsule{PyCapsule_CheckExact(source.ptr()) != 0},
        producer_device{is_capsule ? tensor_in(source).device : dlpack::device_of_producer(source)},
        queue{queue_for(producer_device, queue_argument)},
        is_locked{!is_capsule && reports_read_only(source)},
        capsule{is_capsule ? nb::borrow(source)
                           : request_capsule(source, producer_device, *queue_of(queue))} {
    const auto& device = tensor().device;
    // JAX numbers its CPU devices, and PyTorch's capsules report pinned memory as CPU memory.
    const bool is_same =
        device.type == dlpack::k_cpu
            ? producer_device.type == dlpack::k_cpu || producer_device.type == dlpack::k_cuda_host
            : device.type == producer_device.type && device.id == producer_device.id;
    if (!is_same) {
      raise_python(
          PyExc_BufferError,
          "DLPack: the capsule has memory of device (%d, %d), which is not the device of %R",
          device.type, device.id, object.ptr());
    }
  }

  [[nodiscard]] const dlpack::Tensor& tensor() const { return tensor_in(capsule); }
  [[nodiscard]] std::uint64_t flags() const { return flags_in(capsule); }
  [[nodiscard]] nb::object adopt(Adoption adoption) const {
    adoption.read_only = is_locked;
    nb::object buffer_object = adopt_capsule(capsule, object, queue, adoption);
    if (!is_capsule && producer_device.type != dlpack::k_cpu) {
      record_producer(*buffer_of(buffer_object));
    }
    return buffer_object;
  }
  // Work of all queues and of the host is ordered after the producer's. By the protocol the
  // producer ordered the passed stream after its work, or without one the legacy default stream.
  void record_producer(const Buffer& buffer) const {
    const auto& queue_ref = *queue_of(queue);
    const auto& device = *device_of(queue_ref.device_object);
    const auto producer = producer_device.type == dlpack::k_cuda_host
                              ? legacy_queue_of(DeviceHandle::share(device.raw.get()))
                              : QueueHandle::share(queue_ref.raw.get());
    check(isthmus_buffer_record_queue(buffer.raw.get(), producer.get()));
  }

  nb::handle object;
  bool is_capsule;
  dlpack::Device producer_device;
  nb::object queue;
  bool is_locked;  // another protocol of the object reports read-only
  nb::object capsule;
};

}  // namespace

nb::object from_dlpack(nb::handle object, nb::handle queue) {
  drain_deferred();
  const ImportedMemory imported{object, queue};
  return imported.adopt(read_bytes(imported.tensor(), imported.flags()));
}

void require_valid_capsule(nb::handle capsule) {
  const auto& tensor = tensor_in(capsule);
  if (tensor.device.id < 0) {
    raise_python(PyExc_BufferError, "DLPack: (%d, %d) is not a device", tensor.device.type,
                 tensor.device.id);
  }
  dlpack::require_valid(tensor, flags_in(capsule));
}

nb::object array_from_dlpack(nb::handle object, nb::handle queue) {
  drain_deferred();
  const ImportedMemory imported{object, queue};
  auto layout = layout_of(imported.tensor(), imported.flags());
  nb::object memory = imported.adopt(read_bounding_box(imported.tensor(), *layout));
  const auto before = layout->before;
  return make_typed_array(std::move(memory), std::move(layout), before);
}

}  // namespace isthmus::python
