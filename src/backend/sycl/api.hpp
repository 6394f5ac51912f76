// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of dpctl's C interface to SYCL (libDPCTLSyclInterface) that this library uses, declared
// by hand. Building needs no SYCL compiler and no header, and starting does not need dpctl's
// library. tests/abi/sycl_api.cpp checks the declarations against dpctl's own headers where they
// are installed.
//
// A reference is an opaque handle of a SYCL object. The caller deletes the references and strings
// that functions return. A function that fails returns null or 0, and the reason appears only in
// dpctl's log. Some functions propagate SYCL's exceptions (dpctl 0.22): waits, `free`,
// `allocate_host`, `pointer_type` and `pointer_device`.

#include <cstddef>
#include <cstdint>

struct DPCTLOpaqueSyclPlatform;
struct DPCTLOpaqueSyclDevice;
struct DPCTLOpaqueSyclContext;
struct DPCTLOpaqueSyclQueue;
struct DPCTLOpaqueSyclEvent;
struct DPCTLOpaqueSyclUSM;

namespace isthmus::sycl {

using PlatformReference = ::DPCTLOpaqueSyclPlatform*;
using DeviceReference = ::DPCTLOpaqueSyclDevice*;
using ContextReference = ::DPCTLOpaqueSyclContext*;
using QueueReference = ::DPCTLOpaqueSyclQueue*;
using EventReference = ::DPCTLOpaqueSyclEvent*;
using MemoryReference = ::DPCTLOpaqueSyclUSM*;
using Vector = void*;  // platforms or devices
using ErrorHandler = void(int);

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

// For each function: the member of `Api`, the name, the signature.
#define ISTHMUS_SYCL_FUNCTIONS(X)                                                                 \
  X(delete_text, DPCTLCString_Delete, void(const char*))                                          \
  X(list_platforms, DPCTLPlatform_GetPlatforms, Vector())                                         \
  X(count_platforms, DPCTLPlatformVector_Size, std::size_t(Vector))                               \
  X(platform_at, DPCTLPlatformVector_GetAt, PlatformReference(Vector, std::size_t))               \
  X(delete_platforms, DPCTLPlatformVector_Delete, void(Vector))                                   \
  X(delete_platform, DPCTLPlatform_Delete, void(PlatformReference))                               \
  X(platform_name, DPCTLPlatform_GetName, const char*(PlatformReference))                         \
  X(platform_vendor, DPCTLPlatform_GetVendor, const char*(PlatformReference))                     \
  X(platform_version, DPCTLPlatform_GetVersion, const char*(PlatformReference))                   \
  X(platform_context, DPCTLPlatform_GetDefaultContext, ContextReference(PlatformReference))       \
  X(list_devices, DPCTLPlatform_GetDevices, Vector(PlatformReference, int))                       \
  X(make_devices, DPCTLDeviceVector_CreateFromArray, Vector(std::size_t, DeviceReference*))       \
  X(count_devices, DPCTLDeviceVector_Size, std::size_t(Vector))                                   \
  X(device_at, DPCTLDeviceVector_GetAt, DeviceReference(Vector, std::size_t))                     \
  X(delete_devices, DPCTLDeviceVector_Delete, void(Vector))                                       \
  X(delete_device, DPCTLDevice_Delete, void(DeviceReference))                                     \
  X(same_device, DPCTLDevice_AreEq, bool(DeviceReference, DeviceReference))                       \
  X(copy_device, DPCTLDevice_Copy, DeviceReference(DeviceReference))                              \
  X(parent_of, DPCTLDevice_GetParentDevice, DeviceReference(DeviceReference))                     \
  X(device_name, DPCTLDevice_GetName, const char*(DeviceReference))                               \
  X(device_vendor, DPCTLDevice_GetVendor, const char*(DeviceReference))                           \
  X(device_driver, DPCTLDevice_GetDriverVersion, const char*(DeviceReference))                    \
  X(device_type, DPCTLDevice_GetDeviceType, int(DeviceReference))                                 \
  X(has_aspect, DPCTLDevice_HasAspect, bool(DeviceReference, int))                                \
  X(compute_units, DPCTLDevice_GetMaxComputeUnits, std::uint32_t(DeviceReference))                \
  X(memory_bytes, DPCTLDevice_GetGlobalMemSize, std::uint64_t(DeviceReference))                   \
  X(max_allocation, DPCTLDevice_GetMaxMemAllocSize, std::uint64_t(DeviceReference))               \
  X(make_context, DPCTLContext_CreateFromDevices, ContextReference(Vector, ErrorHandler*, int))   \
  X(copy_context, DPCTLContext_Copy, ContextReference(ContextReference))                          \
  X(delete_context, DPCTLContext_Delete, void(ContextReference))                                  \
  X(context_key, DPCTLContext_Hash, std::size_t(ContextReference))                                \
  X(context_devices, DPCTLContext_GetDevices, Vector(ContextReference))                           \
  X(context_backend, DPCTLContext_GetBackend, int(ContextReference))                              \
  X(make_queue, DPCTLQueue_Create,                                                                \
    QueueReference(ContextReference, DeviceReference, ErrorHandler*, int))                        \
  X(copy_queue, DPCTLQueue_Copy, QueueReference(QueueReference))                                  \
  X(delete_queue, DPCTLQueue_Delete, void(QueueReference))                                        \
  X(queue_context, DPCTLQueue_GetContext, ContextReference(QueueReference))                       \
  X(queue_device, DPCTLQueue_GetDevice, DeviceReference(QueueReference))                          \
  X(queue_key, DPCTLQueue_Hash, std::size_t(QueueReference))                                      \
  X(is_in_order, DPCTLQueue_IsInOrder, bool(QueueReference))                                      \
  X(has_profiling, DPCTLQueue_HasEnableProfiling, bool(QueueReference))                           \
  X(finish, DPCTLQueue_Wait, void(QueueReference))                                                \
  X(copy, DPCTLQueue_Memcpy, EventReference(QueueReference, void*, const void*, std::size_t))     \
  X(fill_1, DPCTLQueue_Memset, EventReference(QueueReference, void*, std::uint8_t, std::size_t))  \
  X(fill_2, DPCTLQueue_Fill16, EventReference(QueueReference, void*, std::uint16_t, std::size_t)) \
  X(fill_4, DPCTLQueue_Fill32, EventReference(QueueReference, void*, std::uint32_t, std::size_t)) \
  X(fill_8, DPCTLQueue_Fill64, EventReference(QueueReference, void*, std::uint64_t, std::size_t)) \
  X(fill_16, DPCTLQueue_Fill128,                                                                  \
    EventReference(QueueReference, void*, std::uint64_t*, std::size_t))                           \
  X(prefetch, DPCTLQueue_Prefetch, EventReference(QueueReference, const void*, std::size_t))      \
  X(advise, DPCTLQueue_MemAdvise, EventReference(QueueReference, const void*, std::size_t, int))  \
  X(barrier, DPCTLQueue_SubmitBarrier, EventReference(QueueReference))                            \
  X(barrier_after, DPCTLQueue_SubmitBarrierForEvents,                                             \
    EventReference(QueueReference, const EventReference*, std::size_t))                           \
  X(copy_event, DPCTLEvent_Copy, EventReference(EventReference))                                  \
  X(delete_event, DPCTLEvent_Delete, void(EventReference))                                        \
  X(wait_for_event, DPCTLEvent_Wait, void(EventReference))                                        \
  X(event_status, DPCTLEvent_GetCommandExecutionStatus, int(EventReference))                      \
  X(submitted_at, DPCTLEvent_GetProfilingInfoSubmit, std::uint64_t(EventReference))               \
  X(started_at, DPCTLEvent_GetProfilingInfoStart, std::uint64_t(EventReference))                  \
  X(ended_at, DPCTLEvent_GetProfilingInfoEnd, std::uint64_t(EventReference))                      \
  X(allocate_device, DPCTLaligned_alloc_device,                                                   \
    MemoryReference(std::size_t, std::size_t, QueueReference))                                    \
  X(allocate_shared, DPCTLaligned_alloc_shared,                                                   \
    MemoryReference(std::size_t, std::size_t, QueueReference))                                    \
  X(allocate_host, DPCTLaligned_alloc_host,                                                       \
    MemoryReference(std::size_t, std::size_t, QueueReference))                                    \
  X(free, DPCTLfree_with_context, void(MemoryReference, ContextReference))                        \
  X(pointer_type, DPCTLUSM_GetPointerType, int(MemoryReference, ContextReference))                \
  X(pointer_device, DPCTLUSM_GetPointerDevice, DeviceReference(MemoryReference, ContextReference))

struct Api {
  template <class Signature>
  using Entry = Signature*;
#define ISTHMUS_SYCL_MEMBER(member, name, ...) Entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_SYCL_FUNCTIONS(ISTHMUS_SYCL_MEMBER)
#undef ISTHMUS_SYCL_MEMBER
  // The underlying driver's handle of a context, retained once. SYCL's own library exports the
  // function under a name that is stable within a major version but that no header declares. Null
  // if that library lacks the function.
  Entry<std::uintptr_t(ContextReference)> context_native = nullptr;
};

}  // namespace isthmus::sycl
