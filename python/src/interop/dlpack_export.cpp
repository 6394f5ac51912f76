// SPDX-License-Identifier: Apache-2.0
// DLPack export: buffers, and arrays over them, for other libraries.

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "buffer/array_view.hpp"
#include "core/arguments.hpp"
#include "core/cuda_streams.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/interruptible.hpp"
#include "core/owners.hpp"
#include "core/sycl_objects.hpp"
#include "core/waiting.hpp"
#include "interop/dlpack.hpp"
#include "interop/exchange.hpp"
#include "interop/oneapi_numbers.hpp"
#include "layout/dlpack_tensor.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {

namespace {

// One exported tensor. The consumer releases it on any thread, without the interpreter: it holds no
// Python objects.
template <class Managed>
struct ExportedTensor {
  Managed managed{};
  ArrayNumbers shape;
  ArrayNumbers strides;    // in elements
  BufferHandle exported;   // the buffer, if it was exported itself; or
  void* result = nullptr;  // the memory of a copy

  ~ExportedTensor() {
    if (exported) {
      const HeldGilRelease released{isthmus_buffer_free_may_wait(exported.get()) != 0};
      isthmus_buffer_unexport(exported.get());
      exported = BufferHandle{};
    }
    isthmus_result_free(result);
  }
};

template <class Managed>
void delete_tensor(Managed* managed) {
  delete static_cast<ExportedTensor<Managed>*>(managed->context);
}

// A capsule that was not consumed still has its first name.
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) != 0) {
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
  }
}

// The memory to export to a consumer: the buffer's own, or a copy of it without gaps.
struct ExportRequest {
  const ArrayView& elements;
  nb::object buffer_object;  // the Buffer
  dlpack::Device device;
  bool is_host_copy = false;
  bool is_copy = false;
  QueueHandle consumer{};  // null: the host, or a consumer whose work is unknown
};

// Whether a consumer on `device` can use the memory without a copy.
bool serves(const Buffer& buffer, const dlpack::Device& device) {
  if (device.type == dlpack::k_cpu) {
    return host_may_access(buffer);
  }
  if (device.type == dlpack::k_oneapi) {
    return device.id == oneapi_number_of(queue_to_export(buffer));
  }
  const bool is_its =
      (device.type == dlpack::k_cuda && buffer.kind != ISTHMUS_KIND_HOST) ||
      (device.type == dlpack::k_cuda_managed && buffer.kind == ISTHMUS_KIND_SHARED) ||
      (device.type == dlpack::k_cuda_host && buffer.kind == ISTHMUS_KIND_HOST);
  return is_its && device.id == cuda_number_of(queue_to_export(buffer));
}

dlpack::Device dlpack_device_of(const Buffer& buffer) {
  if (host_may_access(buffer)) {
    return {dlpack::k_cpu, 0};
  }
  const auto& queue = queue_to_export(buffer);
  if (const int number = cuda_number_of(queue); number >= 0) {
    return {dlpack::k_cuda, number};
  }
  if (const int number = oneapi_number_of(queue); number >= 0) {
    return {dlpack::k_oneapi, number};
  }
  raise_python(PyExc_BufferError,
               "DLPack: memory of kind 'device' on %s cannot be exported: copy it into memory of "
               "kind 'host', or use to_numpy()%s",
               describe(*device_of(queue.device_object)).c_str(),
               is_sycl_queue(queue)
                   ? "; it can be exported if dpctl is imported and its context is the default one"
                   : "");
}

// Converts a dpctl queue or a Queue. For None the host waits.
QueueHandle sycl_consumer(const Buffer& buffer, nb::handle stream) {
  if (stream.is_none()) {
    check(wait_for_buffer(buffer.raw.get(), -1));
    return {};
  }
  const nb::object queue_object =
      queue_of(stream) != nullptr ? nb::borrow(stream) : find_sycl_queue(stream);
  if (!queue_object.is_valid()) {
    raise_python(PyExc_TypeError, "DLPack: stream must be a dpctl.SyclQueue or None, not %R",
                 stream.ptr());
  }
  return QueueHandle::share(queue_of(queue_object)->raw.get());
}

// Interprets `stream` as the array API does: None is the legacy default stream, -1 requests no
// order, and 0 is refused because it could be either of two streams.
QueueHandle consumer_queue(const Buffer& buffer, const dlpack::Device& device, nb::handle stream) {
  if (device.type == dlpack::k_cpu) {
    if (!stream.is_none()) {
      raise_python(PyExc_BufferError, "DLPack: the CPU has no streams: stream must be None, not %R",
                   stream.ptr());
    }
    return {};
  }
  if (device.type == dlpack::k_oneapi) {
    return sycl_consumer(buffer, stream);
  }
  if (stream.equal(nb::int_(-1))) {
    return {};
  }
  if (stream.equal(nb::int_(0))) {
    raise_python(PyExc_BufferError,
                 "DLPack: stream 0 is ambiguous: pass 1 for the legacy default stream");
  }
  const auto& queue_device = *device_of(queue_of_buffer(buffer).device_object);
  const auto device_handle = DeviceHandle::share(queue_device.raw.get());
  const auto number =
      stream.is_none() ? 1 : reinterpret_cast<std::uintptr_t>(to_pointer(stream, "stream"));
  return number == 1 ? legacy_queue_of(device_handle)
                     : queue_of_number(device_handle, number, nb::handle{});
}

// Memory that the host cannot access is copied for it unless `copy` forbids that.
ExportRequest to_export_request(const ArrayView& view, nb::handle stream, nb::handle device,
                                nb::handle copy) {
  const auto& buffer = view.buffer;
  const auto target = device.is_none() ? dlpack_device_of(buffer) : dlpack::to_device(device);
  const bool may_copy = copy.is_none() || is_true(copy);
  const bool must_copy = !copy.is_none() && may_copy;
  const bool for_host = target == dlpack::Device{dlpack::k_cpu, 0};
  const bool serves_as_it_is = serves(buffer, target);
  if (!serves_as_it_is && !(for_host && may_copy)) {
    raise_python(PyExc_BufferError,
                 "DLPack: memory of kind '%U' on %s cannot be exported to device (%d, %d)%s",
                 kind_name(buffer.kind).ptr(),
                 describe(*device_of(queue_of_buffer(buffer).device_object)).c_str(), target.type,
                 target.id, for_host ? " without a copy" : "");
  }
  auto consumer = consumer_queue(buffer, target, stream);
  const bool is_copy = must_copy || !serves_as_it_is;
  return {view,
          is_copy && !for_host ? copy_to_buffer(view, types.buffer, 0, PoolUse::arrays)
                               : nb::borrow(view.object),
          target,
          is_copy && for_host,
          is_copy,
          std::move(consumer)};
}

// Orders the consumer's queue after pending work. Afterwards the queue's work on the memory is
// tracked.
void* export_to_queue(const Buffer& buffer, const QueueHandle& consumer, BufferHandle& exported) {
  if (consumer) {
    check(isthmus_buffer_on_queue(buffer.raw.get(), consumer.get(), exported.out()));
  } else {
    exported = BufferHandle::share(buffer.raw.get());
  }
  void* pointer = nullptr;
  const Interruptible call;
  const auto status = without_lock(
      [&] { return isthmus_buffer_export_to_queue(exported.get(), consumer.get(), &pointer); });
  if (status != ISTHMUS_OK) {
    exported = BufferHandle{};  // there is no export to end
  }
  call.check(status);
  return pointer;
}

// Exports the memory, and returns the start of the buffer or of the copy.
void* export_memory(const ExportRequest& request, BufferHandle& exported, void*& result) {
  const auto& buffer = require_buffer(request.buffer_object);
  if (request.is_host_copy) {
    check(wait_for_buffer(buffer.raw.get(), -1));  // Ctrl-C interrupts it
    check(isthmus_result_allocate(std::max<std::size_t>(request.elements.nbytes, 1), &result));
    copy_out(request.elements, result, nb::object{});
    return result;
  }
  if (request.device.type != dlpack::k_cpu) {
    return export_to_queue(buffer, request.consumer, exported);
  }
  warn_if_not_portable(buffer.kind);
  void* pointer = export_to_host(buffer);
  exported = BufferHandle::share(buffer.raw.get());
  return pointer;
}

// Sets everything in a tensor except its memory.
template <class Managed>
void describe_elements(const ExportRequest& request, ExportedTensor<Managed>& holder) {
  const auto& shape = request.elements.shape;
  const auto& type = request.elements.type;
  const int bits = type.item * 8;
  if (bits > UINT8_MAX) {
    raise_python(PyExc_BufferError,
                 "DLPack: elements of %s have %d bits, which DLPack cannot represent", type.name,
                 bits);
  }
  holder.shape = ArrayNumbers(shape);
  holder.strides = request.is_copy ? dense_strides(holder.shape, 1)
                                   : strides_in_items(request.elements.strides, type.item);
  auto& tensor = holder.managed.tensor;
  tensor.device = request.device;
  tensor.ndim = static_cast<std::int32_t>(shape.size());
  tensor.dtype = {type.code, static_cast<std::uint8_t>(bits), 1};
  tensor.shape = holder.shape.data();
  tensor.strides = holder.strides.data();
}

template <class Managed>
nb::object make_capsule(const ExportRequest& request, const char* name,
                        PyCapsule_Destructor destructor) {
  auto holder = std::make_unique<ExportedTensor<Managed>>();
  describe_elements(request, *holder);
  void* data = export_memory(request, holder->exported, holder->result);
  holder->managed.tensor.data =
      request.is_copy ? data : static_cast<char*>(data) + request.elements.offset;
  holder->managed.context = holder.get();
  holder->managed.deleter = &delete_tensor<Managed>;
  if constexpr (std::is_same_v<Managed, dlpack::ManagedVersioned>) {
    holder->managed.version = {1, 0};
    holder->managed.flags = request.is_copy              ? dlpack::k_is_copied
                            : request.elements.read_only ? dlpack::k_read_only
                                                         : 0;
  }
  nb::object capsule = steal_or_raise(PyCapsule_New(&holder->managed, name, destructor));
  static_cast<void>(holder.release());
  return capsule;
}

bool has_negative_strides(const ArrayView& view) {
  bool is_backward = false;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    is_backward = is_backward || (view.strides[i] < 0 && view.shape[i] > 1);
  }
  return is_backward && view.nbytes != 0;
}

// Whether the calling Python function belongs to PyTorch.
bool is_called_by_pytorch() {
  const nb::handle frame{reinterpret_cast<PyObject*>(PyEval_GetFrame())};
  if (!frame.is_valid()) {
    return false;
  }
  const nb::object name = frame.attr("f_globals").attr("get")("__name__", "");
  return nb::isinstance<nb::str>(name) &&
         std::string_view{nb::cast<const char*>(name)}.substr(0, 6) == "torch.";
}

// PyTorch ends the process, or reads wrong elements, if strides are negative. It is recognized by
// its calling function. A consumer of a capsule without a version is assumed to be PyTorch too,
// since NumPy, which supports such strides, requests a version.
void require_forward_strides(const ArrayView& view, bool versioned) {
  if (!has_negative_strides(view) || (versioned && !is_called_by_pytorch())) {
    return;
  }
  raise_python(PyExc_BufferError,
               "DLPack: an array with negative strides, %R, is not exported %s: pass copy() of it, "
               "or copy=True%s",
               to_tuple(view.strides).ptr(), versioned ? "to PyTorch" : "without a version",
               versioned ? "" : "; if the consumer supports such strides, pass max_version=(1, 0)");
}

bool requests_version(nb::handle max_version) {
  if (max_version.is_none()) {
    return false;
  }
  if (PySequence_Check(max_version.ptr()) == 0 || nb::len(max_version) != 2) {
    raise_python(PyExc_TypeError, "max_version must be (major, minor) or None, not %R",
                 max_version.ptr());
  }
  return to_size(nb::object(max_version[0]), "max_version[0]") >= 1;
}

}  // namespace

// Guarded by the interpreter's lock; never destroyed.
QueueHandle legacy_queue_of(const DeviceHandle& device) {
  static auto& queues = *new std::unordered_map<std::uintptr_t, QueueHandle>;
  auto& entry = queues[device_key_of(device.get())];
  if (!entry) {
    entry = queue_of_number(device, 1, nb::handle{});
  }
  return QueueHandle::share(entry.get());
}

nb::object dlpack_device(const Buffer& self) {
  const auto device = dlpack_device_of(self);
  return nb::make_tuple(device.type, device.id);
}

nb::object to_dlpack(const ArrayView& view, nb::handle stream, nb::handle max_version,
                     nb::handle device, nb::handle copy) {
  drain_deferred();
  const bool versioned = requests_version(max_version);
  const auto request = to_export_request(view, stream, device, copy);
  if (!request.is_copy) {
    require_forward_strides(view, versioned);
  }
  if (versioned) {
    return make_capsule<dlpack::ManagedVersioned>(
        request, dlpack::k_versioned_name, [](PyObject* capsule) {
          drop_capsule<dlpack::ManagedVersioned>(capsule, dlpack::k_versioned_name);
        });
  }
  if (view.read_only && !request.is_copy) {
    raise_python(PyExc_BufferError,
                 "DLPack: exporting read-only memory needs version 1.0: pass max_version=(1, 0)");
  }
  return make_capsule<dlpack::Managed>(request, dlpack::k_name, [](PyObject* capsule) {
    drop_capsule<dlpack::Managed>(capsule, dlpack::k_name);
  });
}

}  // namespace isthmus::python
