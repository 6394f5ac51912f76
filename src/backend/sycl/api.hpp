// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of dpctl's C interface to SYCL (libDPCTLSyclInterface) that is used, declared by hand:
// the build needs no SYCL compiler and no header, and the program starts without the library.
// tests/abi/sycl_api.cpp checks the declarations against dpctl's own headers where they are
// installed.
//
// A reference is an opaque handle of a SYCL object. The caller deletes what a function returns. A
// function that fails returns null or 0, and the reason appears only in dpctl's log. Some functions
// let exceptions of SYCL escape (dpctl 0.22): waits, `free`, `allocate_host`, `pointer_type` and
// `pointer_device`.

#include <cstddef>
#include <cstdint>

struct DPCTLOpaqueSyclPlatform;
struct DPCTLOpaqueSyclDevice;
struct DPCTLOpaqueSyclContext;
struct DPCTLOpaqueSyclQueue;
struct DPCTLOpaqueSyclEvent;
struct DPCTLOpaqueSyclUSM;

namespace isthmus::sycl {

using platform_reference = ::DPCTLOpaqueSyclPlatform*;
using device_reference = ::DPCTLOpaqueSyclDevice*;
using context_reference = ::DPCTLOpaqueSyclContext*;
using queue_reference = ::DPCTLOpaqueSyclQueue*;
using event_reference = ::DPCTLOpaqueSyclEvent*;
using memory_reference = ::DPCTLOpaqueSyclUSM*;
using vector = void*;  // platforms or devices
using error_handler = void(int);

namespace dp {
inline constexpr int k_type_accelerator = 1 << 0;
inline constexpr int k_type_cpu = 1 << 2;
inline constexpr int k_type_gpu = 1 << 4;
inline constexpr int k_type_all = (1 << 6) - 1;

inline constexpr int k_aspect_usm_device = 12;
inline constexpr int k_aspect_usm_host = 13;
inline constexpr int k_aspect_usm_shared = 14;
inline constexpr int k_aspect_usm_system = 15;

inline constexpr int k_usm_unknown = 0;
inline constexpr int k_usm_device = 1;
inline constexpr int k_usm_shared = 2;
inline constexpr int k_usm_host = 3;

inline constexpr int k_in_order = 1 << 1;

inline constexpr int k_backend_opencl = 1 << 18;

inline constexpr int k_status_unknown = 0;
inline constexpr int k_status_complete = 3;
}  // namespace dp

// For each function: the member of `api`, the name, the signature.
#define ISTHMUS_SYCL_FUNCTIONS(X)                                                                  \
  X(delete_text, DPCTLCString_Delete, void(const char*))                                           \
  X(list_platforms, DPCTLPlatform_GetPlatforms, vector())                                          \
  X(count_platforms, DPCTLPlatformVector_Size, std::size_t(vector))                                \
  X(platform_at, DPCTLPlatformVector_GetAt, platform_reference(vector, std::size_t))               \
  X(delete_platforms, DPCTLPlatformVector_Delete, void(vector))                                    \
  X(delete_platform, DPCTLPlatform_Delete, void(platform_reference))                               \
  X(platform_name, DPCTLPlatform_GetName, const char*(platform_reference))                         \
  X(platform_vendor, DPCTLPlatform_GetVendor, const char*(platform_reference))                     \
  X(platform_version, DPCTLPlatform_GetVersion, const char*(platform_reference))                   \
  X(platform_context, DPCTLPlatform_GetDefaultContext, context_reference(platform_reference))      \
  X(list_devices, DPCTLPlatform_GetDevices, vector(platform_reference, int))                       \
  X(make_devices, DPCTLDeviceVector_CreateFromArray, vector(std::size_t, device_reference*))       \
  X(count_devices, DPCTLDeviceVector_Size, std::size_t(vector))                                    \
  X(device_at, DPCTLDeviceVector_GetAt, device_reference(vector, std::size_t))                     \
  X(delete_devices, DPCTLDeviceVector_Delete, void(vector))                                        \
  X(delete_device, DPCTLDevice_Delete, void(device_reference))                                     \
  X(same_device, DPCTLDevice_AreEq, bool(device_reference, device_reference))                      \
  X(copy_device, DPCTLDevice_Copy, device_reference(device_reference))                             \
  X(parent_of, DPCTLDevice_GetParentDevice, device_reference(device_reference))                    \
  X(device_name, DPCTLDevice_GetName, const char*(device_reference))                               \
  X(device_vendor, DPCTLDevice_GetVendor, const char*(device_reference))                           \
  X(device_driver, DPCTLDevice_GetDriverVersion, const char*(device_reference))                    \
  X(device_type, DPCTLDevice_GetDeviceType, int(device_reference))                                 \
  X(has_aspect, DPCTLDevice_HasAspect, bool(device_reference, int))                                \
  X(compute_units, DPCTLDevice_GetMaxComputeUnits, std::uint32_t(device_reference))                \
  X(memory_bytes, DPCTLDevice_GetGlobalMemSize, std::uint64_t(device_reference))                   \
  X(max_allocation, DPCTLDevice_GetMaxMemAllocSize, std::uint64_t(device_reference))               \
  X(make_context, DPCTLContext_CreateFromDevices, context_reference(vector, error_handler*, int))  \
  X(copy_context, DPCTLContext_Copy, context_reference(context_reference))                         \
  X(delete_context, DPCTLContext_Delete, void(context_reference))                                  \
  X(context_key, DPCTLContext_Hash, std::size_t(context_reference))                                \
  X(context_devices, DPCTLContext_GetDevices, vector(context_reference))                           \
  X(context_backend, DPCTLContext_GetBackend, int(context_reference))                              \
  X(make_queue, DPCTLQueue_Create,                                                                 \
    queue_reference(context_reference, device_reference, error_handler*, int))                     \
  X(copy_queue, DPCTLQueue_Copy, queue_reference(queue_reference))                                 \
  X(delete_queue, DPCTLQueue_Delete, void(queue_reference))                                        \
  X(queue_context, DPCTLQueue_GetContext, context_reference(queue_reference))                      \
  X(queue_device, DPCTLQueue_GetDevice, device_reference(queue_reference))                         \
  X(queue_key, DPCTLQueue_Hash, std::size_t(queue_reference))                                      \
  X(is_in_order, DPCTLQueue_IsInOrder, bool(queue_reference))                                      \
  X(keeps_times, DPCTLQueue_HasEnableProfiling, bool(queue_reference))                             \
  X(finish, DPCTLQueue_Wait, void(queue_reference))                                                \
  X(copy, DPCTLQueue_Memcpy, event_reference(queue_reference, void*, const void*, std::size_t))    \
  X(fill_1, DPCTLQueue_Memset, event_reference(queue_reference, void*, std::uint8_t, std::size_t)) \
  X(fill_2, DPCTLQueue_Fill16,                                                                     \
    event_reference(queue_reference, void*, std::uint16_t, std::size_t))                           \
  X(fill_4, DPCTLQueue_Fill32,                                                                     \
    event_reference(queue_reference, void*, std::uint32_t, std::size_t))                           \
  X(fill_8, DPCTLQueue_Fill64,                                                                     \
    event_reference(queue_reference, void*, std::uint64_t, std::size_t))                           \
  X(fill_16, DPCTLQueue_Fill128,                                                                   \
    event_reference(queue_reference, void*, std::uint64_t*, std::size_t))                          \
  X(prefetch, DPCTLQueue_Prefetch, event_reference(queue_reference, const void*, std::size_t))     \
  X(advise, DPCTLQueue_MemAdvise, event_reference(queue_reference, const void*, std::size_t, int)) \
  X(barrier, DPCTLQueue_SubmitBarrier, event_reference(queue_reference))                           \
  X(barrier_behind, DPCTLQueue_SubmitBarrierForEvents,                                             \
    event_reference(queue_reference, const event_reference*, std::size_t))                         \
  X(copy_event, DPCTLEvent_Copy, event_reference(event_reference))                                 \
  X(delete_event, DPCTLEvent_Delete, void(event_reference))                                        \
  X(wait_for_event, DPCTLEvent_Wait, void(event_reference))                                        \
  X(event_status, DPCTLEvent_GetCommandExecutionStatus, int(event_reference))                      \
  X(submitted_at, DPCTLEvent_GetProfilingInfoSubmit, std::uint64_t(event_reference))               \
  X(started_at, DPCTLEvent_GetProfilingInfoStart, std::uint64_t(event_reference))                  \
  X(ended_at, DPCTLEvent_GetProfilingInfoEnd, std::uint64_t(event_reference))                      \
  X(allocate_device, DPCTLaligned_alloc_device,                                                    \
    memory_reference(std::size_t, std::size_t, queue_reference))                                   \
  X(allocate_shared, DPCTLaligned_alloc_shared,                                                    \
    memory_reference(std::size_t, std::size_t, queue_reference))                                   \
  X(allocate_host, DPCTLaligned_alloc_host,                                                        \
    memory_reference(std::size_t, std::size_t, queue_reference))                                   \
  X(free, DPCTLfree_with_context, void(memory_reference, context_reference))                       \
  X(pointer_type, DPCTLUSM_GetPointerType, int(memory_reference, context_reference))               \
  X(pointer_device, DPCTLUSM_GetPointerDevice,                                                     \
    device_reference(memory_reference, context_reference))

struct api {
  template <class Signature>
  using entry = Signature*;
#define ISTHMUS_SYCL_MEMBER(member, name, ...) entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_SYCL_FUNCTIONS(ISTHMUS_SYCL_MEMBER)
#undef ISTHMUS_SYCL_MEMBER
  // The underlying driver's handle of a context, retained once. SYCL's own library exports the
  // function under a name that is stable within a major version but that no header declares. Null
  // if it lacks it.
  entry<std::uintptr_t(context_reference)> context_native = nullptr;
};

}  // namespace isthmus::sycl
