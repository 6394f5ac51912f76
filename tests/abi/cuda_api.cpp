// SPDX-License-Identifier: Apache-2.0
// Checks the declarations of src/backend/cuda/api.hpp against NVIDIA's own header, where a toolkit
// of CUDA 13.0 or later is installed (CUDA_PATH, or /usr/local/cuda) or the Python environment has
// NVIDIA's wheel of it (nvidia-cuda-runtime). Only compiled.

#if __has_include(<cuda.h>)

#include <cuda.h>

#if CUDA_VERSION >= 13000

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "../../src/backend/cuda/api.hpp"

namespace isthmus::cuda {

// A type as the calling convention sees it: an enumeration is its number, a structure of the
// driver's header is ours.
template <class T>
struct plain {
  using type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct plain<T> {
  using type = std::underlying_type_t<T>;
};
template <class T>
struct plain<T*> {
  using type = typename plain<T>::type*;
};
template <class T>
struct plain<const T*> {
  using type = const typename plain<T>::type*;
};
template <>
struct plain<::CUmemLocation> {
  using type = CUmemLocation;
};
template <>
struct plain<::CUmemAllocationProp> {
  using type = CUmemAllocationProp;
};
template <>
struct plain<::CUmemAccessDesc> {
  using type = CUmemAccessDesc;
};
template <>
struct plain<::CUDA_MEMCPY2D> {
  using type = CUDA_MEMCPY2D;
};
template <>
struct plain<::CUipcMemHandle> {
  using type = CUipcMemHandle;
};
template <class R, class... Parameters>
struct plain<R (*)(Parameters...)> {
  using type = typename plain<R>::type (*)(typename plain<Parameters>::type...);
};
template <class T>
using plain_t = typename plain<T>::type;

#define ISTHMUS_SAME(member, name, ...) \
  static_assert(std::is_same_v<plain_t<decltype(&::name)>, Api::Entry<__VA_ARGS__>>, #name);
ISTHMUS_CUDA_CORE(ISTHMUS_SAME)
ISTHMUS_CUDA_VIRTUAL(ISTHMUS_SAME)
ISTHMUS_CUDA_LOCATIONS(ISTHMUS_SAME)
ISTHMUS_CUDA_IPC(ISTHMUS_SAME)

#define ISTHMUS_SAME_CODE(name, number) static_assert(::CUDA_ERROR_##name == number);
ISTHMUS_CUDA_ERRORS(ISTHMUS_SAME_CODE)
static_assert(cu::k_success == CUDA_SUCCESS);

static_assert(std::is_same_v<CUdeviceptr, ::CUdeviceptr> && std::is_same_v<CUdevice, ::CUdevice>);
static_assert(std::is_same_v<CUmemGenericAllocationHandle, ::CUmemGenericAllocationHandle>);
static_assert(std::is_same_v<CUcontext, ::CUcontext> && std::is_same_v<CUstream, ::CUstream> &&
              std::is_same_v<CUevent, ::CUevent> && std::is_same_v<CUmodule, ::CUmodule> &&
              std::is_same_v<CUfunction, ::CUfunction>);

static_assert(sizeof(CUmemLocation) == sizeof(::CUmemLocation));
static_assert(offsetof(CUmemLocation, id) == offsetof(::CUmemLocation, id));
static_assert(sizeof(CUmemAccessDesc) == sizeof(::CUmemAccessDesc));
static_assert(offsetof(CUmemAccessDesc, flags) == offsetof(::CUmemAccessDesc, flags));
static_assert(sizeof(CUmemAllocationProp) == sizeof(::CUmemAllocationProp));
static_assert(offsetof(CUmemAllocationProp, location) == offsetof(::CUmemAllocationProp, location));
static_assert(offsetof(CUmemAllocationProp, compressionType) ==
              offsetof(::CUmemAllocationProp, allocFlags));
static_assert(offsetof(CUmemAllocationProp, gpuDirectRDMACapable) ==
              offsetof(::CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
static_assert(sizeof(CUipcMemHandle) == sizeof(::CUipcMemHandle));
static_assert(alignof(CUipcMemHandle) == alignof(::CUipcMemHandle));
static_assert(sizeof(CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));
static_assert(offsetof(CUDA_MEMCPY2D, srcMemoryType) == offsetof(::CUDA_MEMCPY2D, srcMemoryType));
static_assert(offsetof(CUDA_MEMCPY2D, srcHost) == offsetof(::CUDA_MEMCPY2D, srcHost));
static_assert(offsetof(CUDA_MEMCPY2D, srcDevice) == offsetof(::CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(CUDA_MEMCPY2D, srcPitch) == offsetof(::CUDA_MEMCPY2D, srcPitch));
static_assert(offsetof(CUDA_MEMCPY2D, dstMemoryType) == offsetof(::CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(CUDA_MEMCPY2D, dstHost) == offsetof(::CUDA_MEMCPY2D, dstHost));
static_assert(offsetof(CUDA_MEMCPY2D, dstDevice) == offsetof(::CUDA_MEMCPY2D, dstDevice));
static_assert(offsetof(CUDA_MEMCPY2D, dstPitch) == offsetof(::CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(CUDA_MEMCPY2D, WidthInBytes) == offsetof(::CUDA_MEMCPY2D, WidthInBytes));
static_assert(offsetof(CUDA_MEMCPY2D, Height) == offsetof(::CUDA_MEMCPY2D, Height));

static_assert(cu::k_attribute_compute_mode == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
static_assert(cu::k_attribute_multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(cu::k_attribute_max_pitch == CU_DEVICE_ATTRIBUTE_MAX_PITCH);
static_assert(cu::k_attribute_copy_engines == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
static_assert(cu::k_attribute_unified_addressing == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
static_assert(cu::k_attribute_managed_memory == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
static_assert(cu::k_attribute_concurrent_managed_access ==
              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
static_assert(cu::k_attribute_virtual_memory ==
              CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(cu::k_attribute_read_only_register ==
              CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
static_assert(cu::k_attribute_host_numa_id == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
static_assert(cu::k_attribute_host_numa_virtual_memory ==
              CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
static_assert(cu::k_attribute_rdma_with_virtual_memory ==
              CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
static_assert(cu::k_handle_type_posix_fd == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
static_assert(cu::k_pointer_handle_types == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES);
static_assert(cu::k_pointer_is_rdma_capable == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
static_assert(cu::k_ipc_lazy_peer_access == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(cu::k_compute_mode_prohibited == CU_COMPUTEMODE_PROHIBITED);
static_assert(cu::k_pointer_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(cu::k_pointer_device_pointer == CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
static_assert(cu::k_pointer_is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(cu::k_pointer_device_ordinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(cu::k_pointer_range_start == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(cu::k_pointer_range_size == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(cu::k_memory_host == CU_MEMORYTYPE_HOST);
static_assert(cu::k_memory_device == CU_MEMORYTYPE_DEVICE);
static_assert(cu::k_memory_unified == CU_MEMORYTYPE_UNIFIED);
static_assert(cu::k_host_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(cu::k_host_mapped == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(cu::k_host_write_combined == CU_MEMHOSTALLOC_WRITECOMBINED);
static_assert(cu::k_register_portable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(cu::k_register_mapped == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(cu::k_register_read_only == CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(cu::k_attach_global == CU_MEM_ATTACH_GLOBAL);
static_assert(cu::k_stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(cu::k_event_default == CU_EVENT_DEFAULT);
static_assert(cu::k_event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(cu::k_capture_status_none == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(cu::k_location_device == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(cu::k_location_host == CU_MEM_LOCATION_TYPE_HOST);
static_assert(cu::k_location_host_numa == CU_MEM_LOCATION_TYPE_HOST_NUMA);
static_assert(cu::k_allocation_pinned == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(cu::k_access_read_write == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(cu::k_granularity_minimum == CU_MEM_ALLOC_GRANULARITY_MINIMUM);

// These are not constants but casts of a number, and are compared as text.
#define ISTHMUS_TEXT(...) ISTHMUS_TEXT_OF(__VA_ARGS__)
#define ISTHMUS_TEXT_OF(...) \
  std::string_view { #__VA_ARGS__ }
static_assert(cu::k_stream_legacy == 1 && ISTHMUS_TEXT(CU_STREAM_LEGACY) == "((CUstream)0x1)");
static_assert(cu::k_stream_per_thread == 2 &&
              ISTHMUS_TEXT(CU_STREAM_PER_THREAD) == "((CUstream)0x2)");

}  // namespace isthmus::cuda

#endif  // CUDA_VERSION
#endif
