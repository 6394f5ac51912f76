// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of CUDA's driver API that this library uses, declared by hand: no toolkit is needed to
// build and no driver to start. tests/abi/cuda_api.cpp compares it with NVIDIA's own header where
// that is installed.
//
// The handles have NVIDIA's names, so that the types are identical. NVIDIA's enumerations are plain
// numbers here. A function has the name that the library exports, with its version suffix.

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;

namespace isthmus::cuda {

using context_handle = ::CUctx_st*;
using stream_handle = ::CUstream_st*;
using event_handle = ::CUevent_st*;
using module_handle = ::CUmod_st*;
using function_handle = ::CUfunc_st*;
using code = unsigned;  // 0: success
using number = unsigned;
using ordinal = int;  // of a device
using place = unsigned long long;
using memory_handle = unsigned long long;
using flags = unsigned long long;

// X(name without CUDA_ERROR_, number): the errors that this library's calls can return.
#define ISTHMUS_CUDA_ERRORS(X)           \
  X(INVALID_VALUE, 1)                    \
  X(OUT_OF_MEMORY, 2)                    \
  X(NOT_INITIALIZED, 3)                  \
  X(DEINITIALIZED, 4)                    \
  X(STUB_LIBRARY, 34)                    \
  X(CALL_REQUIRES_NEWER_DRIVER, 36)      \
  X(DEVICE_UNAVAILABLE, 46)              \
  X(NO_DEVICE, 100)                      \
  X(INVALID_DEVICE, 101)                 \
  X(INVALID_IMAGE, 200)                  \
  X(INVALID_CONTEXT, 201)                \
  X(MAP_FAILED, 205)                     \
  X(UNMAP_FAILED, 206)                   \
  X(ALREADY_MAPPED, 208)                 \
  X(NO_BINARY_FOR_GPU, 209)              \
  X(NOT_MAPPED, 211)                     \
  X(ECC_UNCORRECTABLE, 214)              \
  X(INVALID_PTX, 218)                    \
  X(NVLINK_UNCORRECTABLE, 220)           \
  X(JIT_COMPILER_NOT_FOUND, 221)         \
  X(UNSUPPORTED_PTX_VERSION, 222)        \
  X(JIT_COMPILATION_DISABLED, 223)       \
  X(CONTAINED, 226)                      \
  X(OPERATING_SYSTEM, 304)               \
  X(INVALID_HANDLE, 400)                 \
  X(ILLEGAL_STATE, 401)                  \
  X(NOT_FOUND, 500)                      \
  X(NOT_READY, 600)                      \
  X(ILLEGAL_ADDRESS, 700)                \
  X(LAUNCH_OUT_OF_RESOURCES, 701)        \
  X(LAUNCH_TIMEOUT, 702)                 \
  X(CONTEXT_IS_DESTROYED, 709)           \
  X(ASSERT, 710)                         \
  X(HOST_MEMORY_ALREADY_REGISTERED, 712) \
  X(HOST_MEMORY_NOT_REGISTERED, 713)     \
  X(HARDWARE_STACK_ERROR, 714)           \
  X(ILLEGAL_INSTRUCTION, 715)            \
  X(MISALIGNED_ADDRESS, 716)             \
  X(INVALID_ADDRESS_SPACE, 717)          \
  X(INVALID_PC, 718)                     \
  X(LAUNCH_FAILED, 719)                  \
  X(TENSOR_MEMORY_LEAK, 721)             \
  X(NOT_PERMITTED, 800)                  \
  X(NOT_SUPPORTED, 801)                  \
  X(SYSTEM_NOT_READY, 802)               \
  X(SYSTEM_DRIVER_MISMATCH, 803)         \
  X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
  X(MPS_RPC_FAILURE, 806)                \
  X(MPS_CLIENT_TERMINATED, 810)          \
  X(STREAM_CAPTURE_UNSUPPORTED, 900)     \
  X(STREAM_CAPTURE_INVALIDATED, 901)     \
  X(STREAM_CAPTURE_MERGE, 902)           \
  X(STREAM_CAPTURE_UNMATCHED, 903)       \
  X(STREAM_CAPTURE_UNJOINED, 904)        \
  X(STREAM_CAPTURE_ISOLATION, 905)       \
  X(STREAM_CAPTURE_IMPLICIT, 906)        \
  X(CAPTURED_EVENT, 907)                 \
  X(STREAM_CAPTURE_WRONG_THREAD, 908)    \
  X(EXTERNAL_DEVICE, 911)                \
  X(UNKNOWN, 999)

namespace cu {
inline constexpr code k_success = 0;
#define ISTHMUS_CUDA_CODE(name, number) inline constexpr code k_error_##name = number;
ISTHMUS_CUDA_ERRORS(ISTHMUS_CUDA_CODE)
#undef ISTHMUS_CUDA_CODE

inline constexpr number k_attribute_compute_mode = 20;
inline constexpr number k_attribute_multiprocessors = 16;
inline constexpr number k_attribute_max_pitch = 11;
inline constexpr number k_attribute_copy_engines = 40;
inline constexpr number k_attribute_unified_addressing = 41;
inline constexpr number k_attribute_managed_memory = 83;
inline constexpr number k_attribute_concurrent_managed = 89;
inline constexpr number k_attribute_virtual_memory = 102;
inline constexpr number k_attribute_rdma_of_virtual_memory = 110;
inline constexpr number k_attribute_registers_read_only = 113;
inline constexpr number k_attribute_host_node = 134;
inline constexpr number k_attribute_host_virtual_memory = 141;
inline constexpr int k_mode_prohibited = 2;

inline constexpr number k_pointer_memory_type = 2;
inline constexpr number k_pointer_on_device = 3;
inline constexpr number k_pointer_is_managed = 8;
inline constexpr number k_pointer_device = 9;
inline constexpr number k_pointer_base = 11;
inline constexpr number k_pointer_bytes = 12;

inline constexpr number k_pointer_handle_types = 14;
inline constexpr number k_pointer_is_for_rdma = 15;

inline constexpr number k_memory_host = 1;
inline constexpr number k_memory_device = 2;
inline constexpr number k_memory_unified = 4;

inline constexpr number k_host_portable = 1;
inline constexpr number k_host_mapped = 2;
inline constexpr number k_host_write_combined = 4;
inline constexpr number k_register_portable = 1;
inline constexpr number k_register_mapped = 2;
inline constexpr number k_register_read_only = 8;
inline constexpr number k_attach_global = 1;
inline constexpr number k_stream_non_blocking = 1;
inline constexpr number k_event_with_times = 0;
inline constexpr number k_event_without_times = 2;
inline constexpr number k_not_capturing = 0;
inline constexpr number k_capture_relaxed = 2;

inline constexpr number k_location_device = 1;
inline constexpr number k_location_host = 2;
inline constexpr number k_location_host_node = 3;
inline constexpr number k_allocation_pinned = 1;
inline constexpr number k_handle_posix_file = 1;  // of memory, for other processes
inline constexpr number k_access_read_write = 3;
inline constexpr number k_granularity_minimum = 0;
inline constexpr number k_open_for_peers = 1;

inline constexpr std::uintptr_t k_stream_legacy = 1;
inline constexpr std::uintptr_t k_stream_of_each_thread = 2;
}  // namespace cu

struct location {
  number type = 0;
  int id = 0;
};

struct allocation_properties {
  number type = 0;
  number handle_types = 0;
  location where;
  void* windows_metadata = nullptr;
  unsigned char compression = 0;
  unsigned char gpu_direct = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

// A handle of memory for other processes.
struct ipc_handle {
  char bytes[64] = {};
};

struct access_rights {
  location who;
  number rights = 0;
};

struct copy_2d_parameters {
  std::size_t source_x = 0;
  std::size_t source_y = 0;
  number source_type = 0;
  const void* source_host = nullptr;
  place source = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t destination_x = 0;
  std::size_t destination_y = 0;
  number destination_type = 0;
  void* destination_host = nullptr;
  place destination = 0;
  void* destination_array = nullptr;
  std::size_t destination_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

// X(member, CUDA's name, type): exported by every library since CUDA 10.0.
#define ISTHMUS_CUDA_CORE(X)                                                                     \
  X(init, cuInit, code(number))                                                                  \
  X(driver_version, cuDriverGetVersion, code(int*))                                              \
  X(device_count, cuDeviceGetCount, code(int*))                                                  \
  X(get_device, cuDeviceGet, code(ordinal*, int))                                                \
  X(device_name, cuDeviceGetName, code(char*, int, ordinal))                                     \
  X(device_attribute, cuDeviceGetAttribute, code(int*, number, ordinal))                         \
  X(pci_address, cuDeviceGetPCIBusId, code(char*, int, ordinal))                                 \
  X(device_bytes, cuDeviceTotalMem_v2, code(std::size_t*, ordinal))                              \
  X(retain_primary, cuDevicePrimaryCtxRetain, code(context_handle*, ordinal))                    \
  X(get_current, cuCtxGetCurrent, code(context_handle*))                                         \
  X(set_current, cuCtxSetCurrent, code(context_handle))                                          \
  X(memory_info, cuMemGetInfo_v2, code(std::size_t*, std::size_t*))                              \
  X(allocate_device, cuMemAlloc_v2, code(place*, std::size_t))                                   \
  X(free_device, cuMemFree_v2, code(place))                                                      \
  X(allocate_host, cuMemHostAlloc, code(void**, std::size_t, number))                            \
  X(free_host, cuMemFreeHost, code(void*))                                                       \
  X(register_host, cuMemHostRegister_v2, code(void*, std::size_t, number))                       \
  X(unregister_host, cuMemHostUnregister, code(void*))                                           \
  X(allocate_managed, cuMemAllocManaged, code(place*, std::size_t, number))                      \
  X(pointer_attributes, cuPointerGetAttributes, code(number, number*, void**, place))            \
  X(create_stream, cuStreamCreate, code(stream_handle*, number))                                 \
  X(destroy_stream, cuStreamDestroy_v2, code(stream_handle))                                     \
  X(stream_context, cuStreamGetCtx, code(stream_handle, context_handle*))                        \
  X(stream_wait, cuStreamWaitEvent, code(stream_handle, event_handle, number))                   \
  X(finish, cuStreamSynchronize, code(stream_handle))                                            \
  X(is_capturing, cuStreamIsCapturing, code(stream_handle, number*))                             \
  X(create_event, cuEventCreate, code(event_handle*, number))                                    \
  X(destroy_event, cuEventDestroy_v2, code(event_handle))                                        \
  X(record, cuEventRecord, code(event_handle, stream_handle))                                    \
  X(query, cuEventQuery, code(event_handle))                                                     \
  X(elapsed, cuEventElapsedTime, code(float*, event_handle, event_handle))                       \
  X(copy, cuMemcpyAsync, code(place, place, std::size_t, stream_handle))                         \
  X(copy_2d, cuMemcpy2DAsync_v2, code(const copy_2d_parameters*, stream_handle))                 \
  X(load_module, cuModuleLoadData, code(module_handle*, const void*))                            \
  X(find_function, cuModuleGetFunction, code(function_handle*, module_handle, const char*))      \
  X(launch, cuLaunchKernel,                                                                      \
    code(function_handle, number, number, number, number, number, number, number, stream_handle, \
         void**, void**))                                                                        \
  X(fill_8, cuMemsetD8Async, code(place, unsigned char, std::size_t, stream_handle))             \
  X(fill_16, cuMemsetD16Async, code(place, unsigned short, std::size_t, stream_handle))          \
  X(fill_32, cuMemsetD32Async, code(place, unsigned, std::size_t, stream_handle))                \
  X(fill_column_8, cuMemsetD2D8Async,                                                            \
    code(place, std::size_t, unsigned char, std::size_t, std::size_t, stream_handle))            \
  X(fill_column_16, cuMemsetD2D16Async,                                                          \
    code(place, std::size_t, unsigned short, std::size_t, std::size_t, stream_handle))           \
  X(fill_column_32, cuMemsetD2D32Async,                                                          \
    code(place, std::size_t, unsigned, std::size_t, std::size_t, stream_handle))

// Since CUDA 10.1.
#define ISTHMUS_CUDA_CAPTURES(X) \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, code(number*))

// Since CUDA 10.2: memory that can be remapped.
#define ISTHMUS_CUDA_VIRTUAL(X)                                                              \
  X(reserve, cuMemAddressReserve, code(place*, std::size_t, std::size_t, place, flags))      \
  X(release_addresses, cuMemAddressFree, code(place, std::size_t))                           \
  X(create_memory, cuMemCreate,                                                              \
    code(memory_handle*, std::size_t, const allocation_properties*, flags))                  \
  X(release_memory, cuMemRelease, code(memory_handle))                                       \
  X(map, cuMemMap, code(place, std::size_t, std::size_t, memory_handle, flags))              \
  X(unmap, cuMemUnmap, code(place, std::size_t))                                             \
  X(set_access, cuMemSetAccess, code(place, std::size_t, const access_rights*, std::size_t)) \
  X(can_access_peer, cuDeviceCanAccessPeer, code(int*, ordinal, ordinal))                    \
  X(granularity, cuMemGetAllocationGranularity,                                              \
    code(std::size_t*, const allocation_properties*, number))

// Since CUDA 12.2.
#define ISTHMUS_CUDA_LOCATIONS(X)                                                               \
  X(prefetch, cuMemPrefetchAsync_v2, code(place, std::size_t, location, number, stream_handle)) \
  X(advise, cuMemAdvise_v2, code(place, std::size_t, number, location))

// Their older equivalents; -1 is the host. In NVIDIA's current header these names are macros for
// the newer versions, so tests cannot compare them with it.
#define ISTHMUS_CUDA_ORDINALS(X)                                                               \
  X(prefetch_to_ordinal, cuMemPrefetchAsync, code(place, std::size_t, ordinal, stream_handle)) \
  X(advise_ordinal, cuMemAdvise, code(place, std::size_t, number, ordinal))

// Not exported on every system.
#define ISTHMUS_CUDA_IPC(X)                                               \
  X(share_memory, cuIpcGetMemHandle, code(ipc_handle*, place))            \
  X(open_memory, cuIpcOpenMemHandle_v2, code(place*, ipc_handle, number)) \
  X(close_memory, cuIpcCloseMemHandle, code(place))

// The members of all groups but the first may be null.
struct api {
  template <class Signature>
  using entry = Signature*;
#define ISTHMUS_CUDA_MEMBER(member, name, ...) entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_CUDA_CORE(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_CAPTURES(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_VIRTUAL(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_LOCATIONS(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_ORDINALS(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_IPC(ISTHMUS_CUDA_MEMBER)
#undef ISTHMUS_CUDA_MEMBER
};

[[nodiscard]] inline place place_of(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
[[nodiscard]] inline void* pointer_to(place where) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(where));
}

}  // namespace isthmus::cuda
