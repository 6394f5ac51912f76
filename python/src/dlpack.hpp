#pragma once
// DLPack 1.0: how array libraries lend each other memory. The layouts are the standard's.

#include "array_numbers.hpp"
#include "buffer.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object from_dlpack(nb::handle object, nb::handle queue);
// BufferError where a field of the tensor in it cannot be used: for what NumPy is to take, which
// checks none.
void require_sound_capsule(nb::handle capsule);

namespace dlpack {

inline constexpr const char* k_name = "dltensor";
inline constexpr const char* k_versioned_name = "dltensor_versioned";
inline constexpr std::int32_t k_cpu = 1;
inline constexpr std::int32_t k_cuda = 2;
inline constexpr std::int32_t k_cuda_host = 3;
inline constexpr std::int32_t k_cuda_managed = 13;
inline constexpr std::int32_t k_oneapi = 14;
inline constexpr std::uint64_t k_read_only = 1;
inline constexpr std::uint64_t k_is_copied = 2;
inline constexpr std::uint64_t k_is_padded = 4;     // elements of less than a byte take one each
inline constexpr std::uint8_t k_opaque_handle = 3;  // a type code: pointers to anything

struct device {
  std::int32_t type;
  std::int32_t id;

  bool operator==(const device&) const = default;
};
struct data_type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct tensor {
  void* data;
  dlpack::device device;
  std::int32_t ndim;
  data_type dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct managed {
  dlpack::tensor tensor;
  void* context;
  void (*deleter)(managed* self);
};
struct version {
  std::uint32_t major, minor;
};
struct managed_versioned {
  dlpack::version version;
  void* context;
  void (*deleter)(managed_versioned* self);
  std::uint64_t flags;
  dlpack::tensor tensor;
};
// Of (type, number). BufferError for what is none.
[[nodiscard]] device to_device(nb::handle given);
// What the producer's __dlpack_device__ gives, checked in the same way.
[[nodiscard]] device device_of_producer(nb::handle producer);

// Bytes of all elements, packed. BufferError unless each field of an untrusted tensor can be used:
// whole bytes for an element, 0 to 64 dimensions with a shape, extents of 0 or more whose product
// fits in 63 bits, and an address where there are elements. Reads no strides.
[[nodiscard]] std::size_t packed_bytes(const tensor& of, std::uint64_t flags);
// Address of the lowest of `nbytes`, `before` of which lie before the first element. BufferError
// where these are not all addresses. Pre: packed_bytes() took it.
[[nodiscard]] void* lowest_address(const tensor& of, std::size_t before, std::size_t nbytes);
// In bytes. Of an extent of 1 or less, and of all without elements, the stride says nothing, and
// may be any number. Throws too_far. Pre: packed_bytes() took it, and there are strides.
[[nodiscard]] array_numbers byte_strides(const tensor& of, std::int64_t item, bool is_empty);
// All of the above. BufferError.
void require_sound(const tensor& of, std::uint64_t flags);

static_assert(sizeof(tensor) == 48 && sizeof(managed) == 64 && sizeof(managed_versioned) == 80);

}  // namespace dlpack

// The queue of CUDA's legacy default stream, one for each device, adopted once, so that the end of
// a later export takes the place of earlier ones.
[[nodiscard]] queue_handle legacy_queue_of(const device_handle& device);

}  // namespace isthmus::python
