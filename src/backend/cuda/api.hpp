// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of CUDA's driver API that this library uses, declared by hand, so that building needs no
// toolkit and starting needs no driver. tests/abi/cuda_api.cpp compares it with NVIDIA's own header
// where that is installed.
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

using CUcontext = ::CUctx_st*;
using CUstream = ::CUstream_st*;
using CUevent = ::CUevent_st*;
using CUmodule = ::CUmod_st*;
using CUfunction = ::CUfunc_st*;
using CUresult = unsigned;  // 0: success
using CUdevice = int;       // the ordinal of a device
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
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
inline constexpr CUresult k_success = 0;
#define ISTHMUS_CUDA_CODE(name, number) inline constexpr CUresult k_error_##name = number;
ISTHMUS_CUDA_ERRORS(ISTHMUS_CUDA_CODE)
#undef ISTHMUS_CUDA_CODE

inline constexpr unsigned k_attribute_compute_mode = 20;
inline constexpr unsigned k_attribute_multiprocessors = 16;
inline constexpr unsigned k_attribute_max_pitch = 11;
inline constexpr unsigned k_attribute_copy_engines = 40;
inline constexpr unsigned k_attribute_unified_addressing = 41;
inline constexpr unsigned k_attribute_managed_memory = 83;
inline constexpr unsigned k_attribute_concurrent_managed_access = 89;
inline constexpr unsigned k_attribute_virtual_memory = 102;
inline constexpr unsigned k_attribute_rdma_with_virtual_memory = 110;
inline constexpr unsigned k_attribute_read_only_register = 113;
inline constexpr unsigned k_attribute_host_numa_id = 134;
inline constexpr unsigned k_attribute_host_numa_virtual_memory = 141;
inline constexpr int k_compute_mode_prohibited = 2;

inline constexpr unsigned k_pointer_memory_type = 2;
inline constexpr unsigned k_pointer_device_pointer = 3;
inline constexpr unsigned k_pointer_is_managed = 8;
inline constexpr unsigned k_pointer_device_ordinal = 9;
inline constexpr unsigned k_pointer_range_start = 11;
inline constexpr unsigned k_pointer_range_size = 12;

inline constexpr unsigned k_pointer_handle_types = 14;
inline constexpr unsigned k_pointer_is_rdma_capable = 15;

inline constexpr unsigned k_memory_host = 1;
inline constexpr unsigned k_memory_device = 2;
inline constexpr unsigned k_memory_unified = 4;

inline constexpr unsigned k_host_portable = 1;
inline constexpr unsigned k_host_mapped = 2;
inline constexpr unsigned k_host_write_combined = 4;
inline constexpr unsigned k_register_portable = 1;
inline constexpr unsigned k_register_mapped = 2;
inline constexpr unsigned k_register_read_only = 8;
inline constexpr unsigned k_attach_global = 1;
inline constexpr unsigned k_stream_non_blocking = 1;
inline constexpr unsigned k_event_default = 0;
inline constexpr unsigned k_event_disable_timing = 2;
inline constexpr unsigned k_capture_status_none = 0;
inline constexpr unsigned k_capture_mode_relaxed = 2;

inline constexpr unsigned k_location_device = 1;
inline constexpr unsigned k_location_host = 2;
inline constexpr unsigned k_location_host_numa = 3;
inline constexpr unsigned k_allocation_pinned = 1;
inline constexpr unsigned k_handle_type_posix_fd = 1;  // of memory, for other processes
inline constexpr unsigned k_access_read_write = 3;
inline constexpr unsigned k_granularity_minimum = 0;
inline constexpr unsigned k_ipc_lazy_peer_access = 1;

inline constexpr std::uintptr_t k_stream_legacy = 1;
inline constexpr std::uintptr_t k_stream_per_thread = 2;
}  // namespace cu

struct CUmemLocation {
  unsigned type = 0;
  int id = 0;
};

struct CUmemAllocationProp {
  unsigned type = 0;
  unsigned requestedHandleTypes = 0;
  CUmemLocation location;
  void* win32HandleMetaData = nullptr;
  unsigned char compressionType = 0;
  unsigned char gpuDirectRDMACapable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

// A handle of memory for other processes.
struct CUipcMemHandle {
  char reserved[64] = {};
};

struct CUmemAccessDesc {
  CUmemLocation location;
  unsigned flags = 0;
};

struct CUDA_MEMCPY2D {
  std::size_t srcXInBytes = 0;
  std::size_t srcY = 0;
  unsigned srcMemoryType = 0;
  const void* srcHost = nullptr;
  CUdeviceptr srcDevice = 0;
  void* srcArray = nullptr;
  std::size_t srcPitch = 0;
  std::size_t dstXInBytes = 0;
  std::size_t dstY = 0;
  unsigned dstMemoryType = 0;
  void* dstHost = nullptr;
  CUdeviceptr dstDevice = 0;
  void* dstArray = nullptr;
  std::size_t dstPitch = 0;
  std::size_t WidthInBytes = 0;
  std::size_t Height = 0;
};

// X(member, CUDA's name, type): exported by every library since CUDA 10.0.
#define ISTHMUS_CUDA_CORE(X)                                                                   \
  X(init, cuInit, CUresult(unsigned))                                                          \
  X(driver_version, cuDriverGetVersion, CUresult(int*))                                        \
  X(device_count, cuDeviceGetCount, CUresult(int*))                                            \
  X(get_device, cuDeviceGet, CUresult(CUdevice*, int))                                         \
  X(device_name, cuDeviceGetName, CUresult(char*, int, CUdevice))                              \
  X(device_attribute, cuDeviceGetAttribute, CUresult(int*, unsigned, CUdevice))                \
  X(pci_address, cuDeviceGetPCIBusId, CUresult(char*, int, CUdevice))                          \
  X(device_bytes, cuDeviceTotalMem_v2, CUresult(std::size_t*, CUdevice))                       \
  X(retain_primary, cuDevicePrimaryCtxRetain, CUresult(CUcontext*, CUdevice))                  \
  X(get_current, cuCtxGetCurrent, CUresult(CUcontext*))                                        \
  X(set_current, cuCtxSetCurrent, CUresult(CUcontext))                                         \
  X(memory_info, cuMemGetInfo_v2, CUresult(std::size_t*, std::size_t*))                        \
  X(allocate_device, cuMemAlloc_v2, CUresult(CUdeviceptr*, std::size_t))                       \
  X(free_device, cuMemFree_v2, CUresult(CUdeviceptr))                                          \
  X(allocate_host, cuMemHostAlloc, CUresult(void**, std::size_t, unsigned))                    \
  X(free_host, cuMemFreeHost, CUresult(void*))                                                 \
  X(register_host, cuMemHostRegister_v2, CUresult(void*, std::size_t, unsigned))               \
  X(unregister_host, cuMemHostUnregister, CUresult(void*))                                     \
  X(allocate_managed, cuMemAllocManaged, CUresult(CUdeviceptr*, std::size_t, unsigned))        \
  X(pointer_attributes, cuPointerGetAttributes,                                                \
    CUresult(unsigned, unsigned*, void**, CUdeviceptr))                                        \
  X(create_stream, cuStreamCreate, CUresult(CUstream*, unsigned))                              \
  X(destroy_stream, cuStreamDestroy_v2, CUresult(CUstream))                                    \
  X(stream_context, cuStreamGetCtx, CUresult(CUstream, CUcontext*))                            \
  X(stream_wait, cuStreamWaitEvent, CUresult(CUstream, CUevent, unsigned))                     \
  X(finish, cuStreamSynchronize, CUresult(CUstream))                                           \
  X(is_capturing, cuStreamIsCapturing, CUresult(CUstream, unsigned*))                          \
  X(create_event, cuEventCreate, CUresult(CUevent*, unsigned))                                 \
  X(destroy_event, cuEventDestroy_v2, CUresult(CUevent))                                       \
  X(record, cuEventRecord, CUresult(CUevent, CUstream))                                        \
  X(query, cuEventQuery, CUresult(CUevent))                                                    \
  X(elapsed, cuEventElapsedTime, CUresult(float*, CUevent, CUevent))                           \
  X(copy, cuMemcpyAsync, CUresult(CUdeviceptr, CUdeviceptr, std::size_t, CUstream))            \
  X(copy_2d, cuMemcpy2DAsync_v2, CUresult(const CUDA_MEMCPY2D*, CUstream))                     \
  X(load_module, cuModuleLoadData, CUresult(CUmodule*, const void*))                           \
  X(find_function, cuModuleGetFunction, CUresult(CUfunction*, CUmodule, const char*))          \
  X(launch, cuLaunchKernel,                                                                    \
    CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
             CUstream, void**, void**))                                                        \
  X(fill_8, cuMemsetD8Async, CUresult(CUdeviceptr, unsigned char, std::size_t, CUstream))      \
  X(fill_16, cuMemsetD16Async, CUresult(CUdeviceptr, unsigned short, std::size_t, CUstream))   \
  X(fill_32, cuMemsetD32Async, CUresult(CUdeviceptr, unsigned, std::size_t, CUstream))         \
  X(fill_column_8, cuMemsetD2D8Async,                                                          \
    CUresult(CUdeviceptr, std::size_t, unsigned char, std::size_t, std::size_t, CUstream))     \
  X(fill_column_16, cuMemsetD2D16Async,                                                        \
    CUresult(CUdeviceptr, std::size_t, unsigned short, std::size_t, std::size_t, CUstream))    \
  X(fill_column_32, cuMemsetD2D32Async,                                                        \
    CUresult(CUdeviceptr, std::size_t, unsigned, std::size_t, std::size_t, CUstream))

// Since CUDA 10.1.
#define ISTHMUS_CUDA_CAPTURES(X) \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, CUresult(unsigned*))

// Since CUDA 10.2: memory that can be remapped.
#define ISTHMUS_CUDA_VIRTUAL(X)                                                              \
  X(reserve, cuMemAddressReserve,                                                            \
    CUresult(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, Flags))                    \
  X(release_addresses, cuMemAddressFree, CUresult(CUdeviceptr, std::size_t))                 \
  X(create_memory, cuMemCreate,                                                              \
    CUresult(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, Flags)) \
  X(release_memory, cuMemRelease, CUresult(CUmemGenericAllocationHandle))                    \
  X(map, cuMemMap,                                                                           \
    CUresult(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, Flags))    \
  X(unmap, cuMemUnmap, CUresult(CUdeviceptr, std::size_t))                                   \
  X(set_access, cuMemSetAccess,                                                              \
    CUresult(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t))                 \
  X(can_access_peer, cuDeviceCanAccessPeer, CUresult(int*, CUdevice, CUdevice))              \
  X(granularity, cuMemGetAllocationGranularity,                                              \
    CUresult(std::size_t*, const CUmemAllocationProp*, unsigned))

// Since CUDA 12.2.
#define ISTHMUS_CUDA_LOCATIONS(X)                                          \
  X(prefetch, cuMemPrefetchAsync_v2,                                       \
    CUresult(CUdeviceptr, std::size_t, CUmemLocation, unsigned, CUstream)) \
  X(advise, cuMemAdvise_v2, CUresult(CUdeviceptr, std::size_t, unsigned, CUmemLocation))

// The older equivalents of these functions; device -1 is the host. In NVIDIA's current header these
// names are macros for the newer versions, so tests cannot compare the declarations.
#define ISTHMUS_CUDA_ORDINALS(X)                            \
  X(prefetch_to_ordinal, cuMemPrefetchAsync,                \
    CUresult(CUdeviceptr, std::size_t, CUdevice, CUstream)) \
  X(advise_ordinal, cuMemAdvise, CUresult(CUdeviceptr, std::size_t, unsigned, CUdevice))

// Not exported on every system.
#define ISTHMUS_CUDA_IPC(X)                                                               \
  X(share_memory, cuIpcGetMemHandle, CUresult(CUipcMemHandle*, CUdeviceptr))              \
  X(open_memory, cuIpcOpenMemHandle_v2, CUresult(CUdeviceptr*, CUipcMemHandle, unsigned)) \
  X(close_memory, cuIpcCloseMemHandle, CUresult(CUdeviceptr))

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

[[nodiscard]] inline CUdeviceptr to_deviceptr(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
[[nodiscard]] inline void* to_pointer(CUdeviceptr pointer) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

}  // namespace isthmus::cuda
