#pragma once
// DLPack 1.0: how array libraries lend each other memory. The layouts are the standard's.

#include "buffer.hpp"

namespace isthmus::python {

[[nodiscard]] nb::object from_dlpack(nb::handle object, nb::handle queue);

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

static_assert(sizeof(tensor) == 48 && sizeof(managed) == 64 && sizeof(managed_versioned) == 80);

}  // namespace dlpack
}  // namespace isthmus::python
