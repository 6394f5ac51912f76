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

using ContextHandle = ::CUctx_st*;
using StreamHandle = ::CUstream_st*;
using EventHandle = ::CUevent_st*;
using ModuleHandle = ::CUmod_st*;
using FunctionHandle = ::CUfunc_st*;
using Code = unsigned;  // 0: success
using Number = unsigned;
using Ordinal = int;  // of a device
using Place = unsigned long long;
using MemoryHandle = unsigned long long;
using Flags = unsigned long long;

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
inline constexpr Code k_success = 0;
#define ISTHMUS_CUDA_CODE(name, number) inline constexpr Code k_error_##name = number;
ISTHMUS_CUDA_ERRORS(ISTHMUS_CUDA_CODE)
#undef ISTHMUS_CUDA_CODE

inline constexpr Number k_attribute_compute_mode = 20;
inline constexpr Number k_attribute_multiprocessors = 16;
inline constexpr Number k_attribute_max_pitch = 11;
inline constexpr Number k_attribute_copy_engines = 40;
inline constexpr Number k_attribute_unified_addressing = 41;
inline constexpr Number k_attribute_managed_memory = 83;
inline constexpr Number k_attribute_concurrent_managed = 89;
inline constexpr Number k_attribute_virtual_memory = 102;
inline constexpr Number k_attribute_rdma_of_virtual_memory = 110;
inline constexpr Number k_attribute_registers_read_only = 113;
inline constexpr Number k_attribute_host_node = 134;
inline constexpr Number k_attribute_host_virtual_memory = 141;
inline constexpr int k_mode_prohibited = 2;

inline constexpr Number k_pointer_memory_type = 2;
inline constexpr Number k_pointer_on_device = 3;
inline constexpr Number k_pointer_is_managed = 8;
inline constexpr Number k_pointer_device = 9;
inline constexpr Number k_pointer_base = 11;
inline constexpr Number k_pointer_bytes = 12;

inline constexpr Number k_pointer_handle_types = 14;
inline constexpr Number k_pointer_is_for_rdma = 15;

inline constexpr Number k_memory_host = 1;
inline constexpr Number k_memory_device = 2;
inline constexpr Number k_memory_unified = 4;

inline constexpr Number k_host_portable = 1;
inline constexpr Number k_host_mapped = 2;
inline constexpr Number k_host_write_combined = 4;
inline constexpr Number k_register_portable = 1;
inline constexpr Number k_register_mapped = 2;
inline constexpr Number k_register_read_only = 8;
inline constexpr Number k_attach_global = 1;
inline constexpr Number k_stream_non_blocking = 1;
inline constexpr Number k_event_with_times = 0;
inline constexpr Number k_event_without_times = 2;
inline constexpr Number k_not_capturing = 0;
inline constexpr Number k_capture_relaxed = 2;

inline constexpr Number k_location_device = 1;
inline constexpr Number k_location_host = 2;
inline constexpr Number k_location_host_node = 3;
inline constexpr Number k_allocation_pinned = 1;
inline constexpr Number k_handle_posix_file = 1;  // of memory, for other processes
inline constexpr Number k_access_read_write = 3;
inline constexpr Number k_granularity_minimum = 0;
inline constexpr Number k_open_for_peers = 1;

inline constexpr std::uintptr_t k_stream_legacy = 1;
inline constexpr std::uintptr_t k_stream_of_each_thread = 2;
}  // namespace cu

struct Location {
  Number type = 0;
  int id = 0;
};

struct AllocationProperties {
  Number type = 0;
  Number handle_types = 0;
  Location where;
  void* windows_metadata = nullptr;
  unsigned char compression = 0;
  unsigned char gpu_direct = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

// A handle of memory for other processes.
struct IpcHandle {
  char bytes[64] = {};
};

struct AccessRights {
  Location who;
  Number rights = 0;
};

struct Copy2dParameters {
  std::size_t source_x = 0;
  std::size_t source_y = 0;
  Number source_type = 0;
  const void* source_host = nullptr;
  Place source = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t destination_x = 0;
  std::size_t destination_y = 0;
  Number destination_type = 0;
  void* destination_host = nullptr;
  Place destination = 0;
  void* destination_array = nullptr;
  std::size_t destination_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 0;
};

// X(member, CUDA's name, type): exported by every library since CUDA 10.0.
#define ISTHMUS_CUDA_CORE(X)                                                                   \
  X(init, cuInit, Code(Number))                                                                \
  X(driver_version, cuDriverGetVersion, Code(int*))                                            \
  X(device_count, cuDeviceGetCount, Code(int*))                                                \
  X(get_device, cuDeviceGet, Code(Ordinal*, int))                                              \
  X(device_name, cuDeviceGetName, Code(char*, int, Ordinal))                                   \
  X(device_attribute, cuDeviceGetAttribute, Code(int*, Number, Ordinal))                       \
  X(pci_address, cuDeviceGetPCIBusId, Code(char*, int, Ordinal))                               \
  X(device_bytes, cuDeviceTotalMem_v2, Code(std::size_t*, Ordinal))                            \
  X(retain_primary, cuDevicePrimaryCtxRetain, Code(ContextHandle*, Ordinal))                   \
  X(get_current, cuCtxGetCurrent, Code(ContextHandle*))                                        \
  X(set_current, cuCtxSetCurrent, Code(ContextHandle))                                         \
  X(memory_info, cuMemGetInfo_v2, Code(std::size_t*, std::size_t*))                            \
  X(allocate_device, cuMemAlloc_v2, Code(Place*, std::size_t))                                 \
  X(free_device, cuMemFree_v2, Code(Place))                                                    \
  X(allocate_host, cuMemHostAlloc, Code(void**, std::size_t, Number))                          \
  X(free_host, cuMemFreeHost, Code(void*))                                                     \
  X(register_host, cuMemHostRegister_v2, Code(void*, std::size_t, Number))                     \
  X(unregister_host, cuMemHostUnregister, Code(void*))                                         \
  X(allocate_managed, cuMemAllocManaged, Code(Place*, std::size_t, Number))                    \
  X(pointer_attributes, cuPointerGetAttributes, Code(Number, Number*, void**, Place))          \
  X(create_stream, cuStreamCreate, Code(StreamHandle*, Number))                                \
  X(destroy_stream, cuStreamDestroy_v2, Code(StreamHandle))                                    \
  X(stream_context, cuStreamGetCtx, Code(StreamHandle, ContextHandle*))                        \
  X(stream_wait, cuStreamWaitEvent, Code(StreamHandle, EventHandle, Number))                   \
  X(finish, cuStreamSynchronize, Code(StreamHandle))                                           \
  X(is_capturing, cuStreamIsCapturing, Code(StreamHandle, Number*))                            \
  X(create_event, cuEventCreate, Code(EventHandle*, Number))                                   \
  X(destroy_event, cuEventDestroy_v2, Code(EventHandle))                                       \
  X(record, cuEventRecord, Code(EventHandle, StreamHandle))                                    \
  X(query, cuEventQuery, Code(EventHandle))                                                    \
  X(elapsed, cuEventElapsedTime, Code(float*, EventHandle, EventHandle))                       \
  X(copy, cuMemcpyAsync, Code(Place, Place, std::size_t, StreamHandle))                        \
  X(copy_2d, cuMemcpy2DAsync_v2, Code(const Copy2dParameters*, StreamHandle))                  \
  X(load_module, cuModuleLoadData, Code(ModuleHandle*, const void*))                           \
  X(find_function, cuModuleGetFunction, Code(FunctionHandle*, ModuleHandle, const char*))      \
  X(launch, cuLaunchKernel,                                                                    \
    Code(FunctionHandle, Number, Number, Number, Number, Number, Number, Number, StreamHandle, \
         void**, void**))                                                                      \
  X(fill_8, cuMemsetD8Async, Code(Place, unsigned char, std::size_t, StreamHandle))            \
  X(fill_16, cuMemsetD16Async, Code(Place, unsigned short, std::size_t, StreamHandle))         \
  X(fill_32, cuMemsetD32Async, Code(Place, unsigned, std::size_t, StreamHandle))               \
  X(fill_column_8, cuMemsetD2D8Async,                                                          \
    Code(Place, std::size_t, unsigned char, std::size_t, std::size_t, StreamHandle))           \
  X(fill_column_16, cuMemsetD2D16Async,                                                        \
    Code(Place, std::size_t, unsigned short, std::size_t, std::size_t, StreamHandle))          \
  X(fill_column_32, cuMemsetD2D32Async,                                                        \
    Code(Place, std::size_t, unsigned, std::size_t, std::size_t, StreamHandle))

// Since CUDA 10.1.
#define ISTHMUS_CUDA_CAPTURES(X) \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, Code(Number*))

// Since CUDA 10.2: memory that can be remapped.
#define ISTHMUS_CUDA_VIRTUAL(X)                                                             \
  X(reserve, cuMemAddressReserve, Code(Place*, std::size_t, std::size_t, Place, Flags))     \
  X(release_addresses, cuMemAddressFree, Code(Place, std::size_t))                          \
  X(create_memory, cuMemCreate,                                                             \
    Code(MemoryHandle*, std::size_t, const AllocationProperties*, Flags))                   \
  X(release_memory, cuMemRelease, Code(MemoryHandle))                                       \
  X(map, cuMemMap, Code(Place, std::size_t, std::size_t, MemoryHandle, Flags))              \
  X(unmap, cuMemUnmap, Code(Place, std::size_t))                                            \
  X(set_access, cuMemSetAccess, Code(Place, std::size_t, const AccessRights*, std::size_t)) \
  X(can_access_peer, cuDeviceCanAccessPeer, Code(int*, Ordinal, Ordinal))                   \
  X(granularity, cuMemGetAllocationGranularity,                                             \
    Code(std::size_t*, const AllocationProperties*, Number))

// Since CUDA 12.2.
#define ISTHMUS_CUDA_LOCATIONS(X)                                                              \
  X(prefetch, cuMemPrefetchAsync_v2, Code(Place, std::size_t, Location, Number, StreamHandle)) \
  X(advise, cuMemAdvise_v2, Code(Place, std::size_t, Number, Location))

// Their older equivalents; -1 is the host. In NVIDIA's current header these names are macros for
// the newer versions, so tests cannot compare them with it.
#define ISTHMUS_CUDA_ORDINALS(X)                                                              \
  X(prefetch_to_ordinal, cuMemPrefetchAsync, Code(Place, std::size_t, Ordinal, StreamHandle)) \
  X(advise_ordinal, cuMemAdvise, Code(Place, std::size_t, Number, Ordinal))

// Not exported on every system.
#define ISTHMUS_CUDA_IPC(X)                                              \
  X(share_memory, cuIpcGetMemHandle, Code(IpcHandle*, Place))            \
  X(open_memory, cuIpcOpenMemHandle_v2, Code(Place*, IpcHandle, Number)) \
  X(close_memory, cuIpcCloseMemHandle, Code(Place))

// The members of all groups but the first may be null.
struct Api {
  template <class Signature>
  using Entry = Signature*;
#define ISTHMUS_CUDA_MEMBER(member, name, ...) Entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_CUDA_CORE(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_CAPTURES(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_VIRTUAL(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_LOCATIONS(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_ORDINALS(ISTHMUS_CUDA_MEMBER)
  ISTHMUS_CUDA_IPC(ISTHMUS_CUDA_MEMBER)
#undef ISTHMUS_CUDA_MEMBER
};

[[nodiscard]] inline Place place_of(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
[[nodiscard]] inline void* pointer_to(Place place) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(place));
}

}  // namespace isthmus::cuda
