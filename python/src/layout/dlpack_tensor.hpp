// SPDX-License-Identifier: Apache-2.0
#pragma once
// DLPack 1.0: how array libraries export memory to each other. Checks of a producer's tensor, made
// before anything is read or computed from it. Functions here need the interpreter's lock.
//
// The structures are declared here because no small package has the standard's header: Debian 12's
// libdlpack-dev is version 0.6, without DLManagedTensorVersioned, and on PyPI the header is part of
// large packages (apache-tvm-ffi: 11 MB, a binary for each platform). The standard fixes the layout
// for each major version; it is asserted below.

#include <cstddef>

#include "layout/layout.hpp"

namespace isthmus::python::dlpack {

inline constexpr const char* k_name = "dltensor";
inline constexpr const char* k_versioned_name = "dltensor_versioned";
inline constexpr std::int32_t k_cpu = 1;
inline constexpr std::int32_t k_cuda = 2;
inline constexpr std::int32_t k_cuda_host = 3;
inline constexpr std::int32_t k_cuda_managed = 13;
inline constexpr std::int32_t k_oneapi = 14;
inline constexpr std::uint64_t k_read_only = 1;
inline constexpr std::uint64_t k_is_copied = 2;
inline constexpr std::uint64_t k_is_padded = 4;  // elements of less than a byte take one byte each
inline constexpr std::uint8_t k_opaque_handle = 3;  // a type code: opaque pointers

struct Device {
  std::int32_t type;
  std::int32_t id;

  bool operator==(const Device&) const = default;
};
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  dlpack::Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct Managed {
  dlpack::Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};
struct Version {
  std::uint32_t major, minor;
};
struct ManagedVersioned {
  dlpack::Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  dlpack::Tensor tensor;
};

static_assert(sizeof(Device) == 8 && offsetof(Device, type) == 0 && offsetof(Device, id) == 4);
static_assert(sizeof(DataType) == 4 && offsetof(DataType, code) == 0);
static_assert(offsetof(DataType, bits) == 1 && offsetof(DataType, lanes) == 2);
static_assert(sizeof(Tensor) == 48 && offsetof(Tensor, data) == 0);
static_assert(offsetof(Tensor, device) == 8 && offsetof(Tensor, ndim) == 16);
static_assert(offsetof(Tensor, dtype) == 20 && offsetof(Tensor, shape) == 24);
static_assert(offsetof(Tensor, strides) == 32 && offsetof(Tensor, byte_offset) == 40);
static_assert(sizeof(Managed) == 64 && offsetof(Managed, tensor) == 0);
static_assert(offsetof(Managed, context) == 48 && offsetof(Managed, deleter) == 56);
static_assert(sizeof(Version) == 8 && offsetof(Version, major) == 0 &&
              offsetof(Version, minor) == 4);
static_assert(sizeof(ManagedVersioned) == 80 && offsetof(ManagedVersioned, version) == 0);
static_assert(offsetof(ManagedVersioned, context) == 8 &&
              offsetof(ManagedVersioned, deleter) == 16);
static_assert(offsetof(ManagedVersioned, flags) == 24 && offsetof(ManagedVersioned, tensor) == 32);

// Converts (type, number). BufferError for other objects.
[[nodiscard]] Device to_device(nb::handle argument);
// The result of the producer's __dlpack_device__, checked in the same way.
[[nodiscard]] Device device_of_producer(nb::handle producer);

// Bytes of all elements, packed. BufferError unless every field of an untrusted tensor is usable:
// whole bytes per element, 0 to 64 dimensions with a shape, extents of 0 or more, at most 2**63 - 1
// bytes (extents of 0 not counted), and an address if there are elements. Does not read strides.
[[nodiscard]] std::size_t packed_bytes(const Tensor& tensor, std::uint64_t flags);
[[nodiscard]] inline ArrayNumbers shape_of(const Tensor& tensor) {
  return ArrayNumbers(NumberSpan{tensor.shape, static_cast<std::size_t>(tensor.ndim)});
}
// The strides in elements, as a Python tuple, or None without strides.
[[nodiscard]] nb::object strides_of(const Tensor& tensor);
// Address of the lowest of `nbytes` bytes, `before` of which lie before the first element.
// BufferError if they are not all in the address space. For a tensor that packed_bytes() has
// accepted.
[[nodiscard]] void* lowest_address(const Tensor& tensor, std::size_t before, std::size_t nbytes);
// The strides in bytes. The stride of an extent of 1 or less, and any stride of an array without
// elements, has no meaning and may be any number. Throws TooFar. For a tensor with strides that
// packed_bytes() has accepted.
[[nodiscard]] ArrayNumbers byte_strides(const Tensor& tensor, std::int64_t item, bool is_empty);
// Raises the BufferError for which a TooFar is thrown. packed_bytes() has accepted the tensor.
[[noreturn]] void raise_too_far(const Tensor& tensor, std::int64_t item);
// Performs all checks above. BufferError if one fails.
void require_valid(const Tensor& tensor, std::uint64_t flags);

}  // namespace isthmus::python::dlpack
