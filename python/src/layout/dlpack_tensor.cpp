// SPDX-License-Identifier: Apache-2.0
#include "layout/dlpack_tensor.hpp"

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "layout/layout.hpp"

namespace isthmus::python {
namespace {

std::size_t item_bytes(const dlpack::Tensor& tensor, std::uint64_t flags) {
  if (tensor.dtype.code == dlpack::k_opaque_handle) {
    raise_python(PyExc_BufferError, "DLPack: opaque handles cannot be imported");
  }
  const auto bits = static_cast<std::size_t>(tensor.dtype.bits) * tensor.dtype.lanes;
  const bool is_padded = tensor.dtype.bits % 8 != 0 && (flags & dlpack::k_is_padded) != 0;
  if (bits == 0 || bits % 8 != 0 || is_padded) {
    raise_python(PyExc_BufferError, "DLPack: elements of %zu bits%s are not whole bytes", bits,
                 is_padded ? ", padded," : "");
  }
  return bits / 8;
}

}  // namespace

dlpack::Device dlpack::to_device(nb::handle argument) {
  const auto number = [&](int index) {
    const auto value = to_size(nb::object(argument[index]), "a number of a DLPack device");
    if (value > INT32_MAX) {
      raise_python(PyExc_BufferError,
                   "DLPack: %R is not a device: type and number must be less than 2**31",
                   argument.ptr());
    }
    return static_cast<std::int32_t>(value);
  };
  if (PySequence_Check(argument.ptr()) == 0 || nb::len(argument) != 2) {
    raise_python(PyExc_BufferError, "DLPack: a device must be (type, number), not %R",
                 argument.ptr());
  }
  return {number(0), number(1)};
}

dlpack::Device dlpack::device_of_producer(nb::handle producer) {
  return to_device(producer.attr("__dlpack_device__")());
}

std::size_t dlpack::packed_bytes(const Tensor& tensor, std::uint64_t flags) {
  auto product = static_cast<std::int64_t>(item_bytes(tensor, flags));
  if (tensor.ndim < 0 || tensor.ndim > PyBUF_MAX_NDIM) {
    raise_python(PyExc_BufferError, "DLPack: a tensor must have 0 to %d dimensions, not %d",
                 PyBUF_MAX_NDIM, tensor.ndim);
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    raise_python(PyExc_BufferError, "DLPack: the shape of a tensor of %d dimensions is NULL",
                 tensor.ndim);
  }
  bool is_empty = false;
  for (int i = 0; i < tensor.ndim; ++i) {
    const auto extent = tensor.shape[i];
    is_empty = is_empty || extent == 0;
    if (extent < 0 || (extent > 0 && __builtin_mul_overflow(product, extent, &product))) {
      raise_python(
          PyExc_BufferError,
          "DLPack: shape %R with elements of %zu bytes: extents must be 0 or more, and the "
          "tensor at most 2**63 - 1 bytes",
          to_tuple(shape_of(tensor)).ptr(), item_bytes(tensor, flags));
    }
  }
  if (!is_empty && tensor.data == nullptr) {
    raise_python(PyExc_BufferError, "DLPack: the address of %lld bytes is NULL",
                 static_cast<long long>(product));
  }
  return is_empty ? 0 : static_cast<std::size_t>(product);
}

nb::object dlpack::strides_of(const Tensor& tensor) {
  return tensor.strides == nullptr
             ? nb::none()
             : to_tuple({tensor.strides, static_cast<std::size_t>(tensor.ndim)});
}

void* dlpack::lowest_address(const Tensor& tensor, std::size_t before, std::size_t nbytes) {
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  std::uintptr_t first = 0, end = 0;
  if (__builtin_add_overflow(data, tensor.byte_offset, &first) || before > first ||
      __builtin_add_overflow(first - before, nbytes, &end)) {
    raise_python(PyExc_BufferError,
                 "DLPack: %zu bytes around offset %llu of %p exceed the address space, 2**64",
                 nbytes, static_cast<unsigned long long>(tensor.byte_offset), tensor.data);
  }
  return reinterpret_cast<void*>(first - before);
}

ArrayNumbers dlpack::byte_strides(const Tensor& tensor, std::int64_t item, bool is_empty) {
  ArrayNumbers strides(NumberSpan{tensor.strides, static_cast<std::size_t>(tensor.ndim)});
  for (int i = 0; i < tensor.ndim; ++i) {
    auto& each = strides[static_cast<std::size_t>(i)];
    if (!__builtin_mul_overflow(each, item, &each)) {
      continue;
    }
    if (!is_empty && tensor.shape[i] > 1) {
      throw TooFar{};
    }
    each = item;
  }
  return strides;
}

void dlpack::require_valid(const Tensor& tensor, std::uint64_t flags) {
  const auto nbytes = packed_bytes(tensor, flags);
  if (nbytes == 0) {
    return;
  }
  const auto item = static_cast<std::int64_t>(item_bytes(tensor, flags));
  ArrayLayout layout{{shape_of(tensor)}, item, nullptr};
  try {
    layout.strides = tensor.strides == nullptr ? dense_strides(layout.shape, item)
                                               : byte_strides(tensor, item, false);
    const auto box = box_of(layout);
    static_cast<void>(lowest_address(tensor, static_cast<std::size_t>(-box.start),
                                     static_cast<std::size_t>(box.nbytes)));
  } catch (const TooFar&) {
    raise_too_far(tensor, item);
  }
}

void dlpack::raise_too_far(const Tensor& tensor, std::int64_t item) {
  raise_python(PyExc_BufferError,
               "DLPack: shape %R with strides %R, in elements of %lld bytes, does not fit in 63 "
               "bits",
               to_tuple(shape_of(tensor)).ptr(), strides_of(tensor).ptr(),
               static_cast<long long>(item));
}

}  // namespace isthmus::python
