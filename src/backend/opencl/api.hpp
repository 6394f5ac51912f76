// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of OpenCL that this library uses, declared by hand, so that building needs no vendor's
// header and starting needs no OpenCL library. tests/abi/opencl_api.cpp compares it with Khronos'
// own headers where those are installed.
//
// The handles have Khronos' names, so that the types are identical. All other names are this
// library's.

#include <cstddef>
#include <cstdint>

struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_event;
struct _cl_mem;

namespace isthmus::opencl {

using PlatformHandle = ::_cl_platform_id*;
using DeviceHandle = ::_cl_device_id*;
using ContextHandle = ::_cl_context*;
using QueueHandle = ::_cl_command_queue*;
using EventHandle = ::_cl_event*;
using MemoryHandle = ::_cl_mem*;
using Code = std::int32_t;  // negative: an error
using Number = std::uint32_t;
using Bits = std::uint64_t;
using Word = std::intptr_t;  // an entry of a list of properties

namespace cl {
inline constexpr Number k_false = 0;

inline constexpr Number k_platform_version = 0x0901;
inline constexpr Number k_platform_name = 0x0902;
inline constexpr Number k_platform_vendor = 0x0903;

inline constexpr Bits k_type_cpu = 1 << 1;
inline constexpr Bits k_type_gpu = 1 << 2;
inline constexpr Bits k_type_accelerator = 1 << 3;
inline constexpr Bits k_type_all = 0xFFFFFFFF;

inline constexpr Number k_device_type = 0x1000;
inline constexpr Number k_device_compute_units = 0x1002;
inline constexpr Number k_device_max_allocation = 0x1010;
inline constexpr Number k_device_base_alignment = 0x1019;  // in bits
inline constexpr Number k_device_memory_bytes = 0x101F;
inline constexpr Number k_device_available = 0x1027;
inline constexpr Number k_device_execution = 0x1029;
inline constexpr Number k_device_name = 0x102B;
inline constexpr Number k_device_vendor = 0x102C;
inline constexpr Number k_device_driver_version = 0x102D;
inline constexpr Number k_device_extensions = 0x1030;
inline constexpr Number k_device_svm = 0x1053;
inline constexpr Number k_device_host_memory = 0x4190;
inline constexpr Number k_device_device_memory = 0x4191;
inline constexpr Number k_device_shared_memory = 0x4192;

inline constexpr Bits k_runs_native_kernels = 1 << 1;  // a bit of k_device_execution
inline constexpr Bits k_memory_access = 1 << 0;        // a bit of the three capabilities of USM
inline constexpr Bits k_svm_coarse = 1 << 0;
inline constexpr Bits k_svm_fine = 1 << 1;
inline constexpr Bits k_svm_system = 1 << 3;  // any host memory

inline constexpr Word k_context_platform = 0x1084;
inline constexpr Number k_context_devices = 0x1081;

inline constexpr Bits k_queue_out_of_order = 1 << 0;
inline constexpr Bits k_queue_profiling = 1 << 1;
inline constexpr Number k_queue_context = 0x1090;
inline constexpr Number k_queue_device = 0x1091;
inline constexpr Number k_queue_references = 0x1092;
inline constexpr Number k_queue_properties = 0x1093;

inline constexpr Bits k_memory_read_write = 1 << 0;
inline constexpr Bits k_memory_svm_fine = 1 << 10;
inline constexpr Bits k_migrate_to_host = 1 << 0;

inline constexpr Number k_allocation_type = 0x419A;
inline constexpr Number k_allocation_base = 0x419B;
inline constexpr Number k_allocation_bytes = 0x419C;
inline constexpr Number k_allocation_device = 0x419D;
inline constexpr Number k_usm_host = 0x4197;
inline constexpr Number k_usm_device = 0x4198;
inline constexpr Number k_usm_shared = 0x4199;

inline constexpr Number k_event_status = 0x11D3;
inline constexpr Code k_complete = 0;
inline constexpr Number k_profile_queued = 0x1280;
inline constexpr Number k_profile_started = 0x1282;
inline constexpr Number k_profile_ended = 0x1283;

inline constexpr Code k_success = 0;
inline constexpr Code k_device_not_found = -1;
inline constexpr Code k_device_not_available = -2;
inline constexpr Code k_allocation_failed = -4;
inline constexpr Code k_out_of_resources = -5;
inline constexpr Code k_out_of_host_memory = -6;
inline constexpr Code k_failed_dependency = -14;
inline constexpr Code k_invalid_value = -30;
inline constexpr Code k_invalid_memory = -38;
inline constexpr Code k_invalid_size = -61;
inline constexpr Code k_no_icd_platform = -1001;
}  // namespace cl

using EventCallback = void (*)(EventHandle, Code, void*);
using ContextCallback = void (*)(const char*, const void*, std::size_t, void*);
using NativeFunction = void (*)(void*);

// X(member, OpenCL's name, type): exported by every OpenCL 1.2 library.
#define ISTHMUS_OPENCL_CORE(X)                                                                   \
  X(get_platforms, clGetPlatformIDs, Code(Number, PlatformHandle*, Number*))                     \
  X(get_platform_info, clGetPlatformInfo,                                                        \
    Code(PlatformHandle, Number, std::size_t, void*, std::size_t*))                              \
  X(get_devices, clGetDeviceIDs, Code(PlatformHandle, Bits, Number, DeviceHandle*, Number*))     \
  X(get_device_info, clGetDeviceInfo,                                                            \
    Code(DeviceHandle, Number, std::size_t, void*, std::size_t*))                                \
  X(get_extension, clGetExtensionFunctionAddressForPlatform, void*(PlatformHandle, const char*)) \
  X(create_context, clCreateContext,                                                             \
    ContextHandle(const Word*, Number, const DeviceHandle*, ContextCallback, void*, Code*))      \
  X(retain_context, clRetainContext, Code(ContextHandle))                                        \
  X(release_context, clReleaseContext, Code(ContextHandle))                                      \
  X(get_context_info, clGetContextInfo,                                                          \
    Code(ContextHandle, Number, std::size_t, void*, std::size_t*))                               \
  X(create_queue, clCreateCommandQueue, QueueHandle(ContextHandle, DeviceHandle, Bits, Code*))   \
  X(retain_queue, clRetainCommandQueue, Code(QueueHandle))                                       \
  X(release_queue, clReleaseCommandQueue, Code(QueueHandle))                                     \
  X(get_queue_info, clGetCommandQueueInfo,                                                       \
    Code(QueueHandle, Number, std::size_t, void*, std::size_t*))                                 \
  X(flush, clFlush, Code(QueueHandle))                                                           \
  X(finish, clFinish, Code(QueueHandle))                                                         \
  X(enqueue_marker, clEnqueueMarkerWithWaitList,                                                 \
    Code(QueueHandle, Number, const EventHandle*, EventHandle*))                                 \
  X(enqueue_barrier, clEnqueueBarrierWithWaitList,                                               \
    Code(QueueHandle, Number, const EventHandle*, EventHandle*))                                 \
  X(enqueue_native, clEnqueueNativeKernel,                                                       \
    Code(QueueHandle, NativeFunction, void*, std::size_t, Number, const MemoryHandle*,           \
         const void**, Number, const EventHandle*, EventHandle*))                                \
  X(create_user_event, clCreateUserEvent, EventHandle(ContextHandle, Code*))                     \
  X(set_user_event, clSetUserEventStatus, Code(EventHandle, Code))                               \
  X(set_callback, clSetEventCallback, Code(EventHandle, Code, EventCallback, void*))             \
  X(wait_for_events, clWaitForEvents, Code(Number, const EventHandle*))                          \
  X(get_event_info, clGetEventInfo, Code(EventHandle, Number, std::size_t, void*, std::size_t*)) \
  X(get_profile, clGetEventProfilingInfo,                                                        \
    Code(EventHandle, Number, std::size_t, void*, std::size_t*))                                 \
  X(retain_event, clRetainEvent, Code(EventHandle))                                              \
  X(release_event, clReleaseEvent, Code(EventHandle))

// Exported since OpenCL 2.0. Must not be called on an older platform.
#define ISTHMUS_OPENCL_SVM(X)                                                                   \
  X(allocate_svm, clSVMAlloc, void*(ContextHandle, Bits, std::size_t, Number))                  \
  X(free_svm, clSVMFree, void(ContextHandle, void*))                                            \
  X(copy_svm, clEnqueueSVMMemcpy,                                                               \
    Code(QueueHandle, Number, void*, const void*, std::size_t, Number, const EventHandle*,      \
         EventHandle*))                                                                         \
  X(fill_svm, clEnqueueSVMMemFill,                                                              \
    Code(QueueHandle, void*, const void*, std::size_t, std::size_t, Number, const EventHandle*, \
         EventHandle*))

// Functions of the extension cl_intel_unified_shared_memory, looked up for each platform.
#define ISTHMUS_OPENCL_USM(X)                                                                    \
  X(allocate_host, clHostMemAllocINTEL,                                                          \
    void*(ContextHandle, const Bits*, std::size_t, Number, Code*))                               \
  X(allocate_device, clDeviceMemAllocINTEL,                                                      \
    void*(ContextHandle, DeviceHandle, const Bits*, std::size_t, Number, Code*))                 \
  X(allocate_shared, clSharedMemAllocINTEL,                                                      \
    void*(ContextHandle, DeviceHandle, const Bits*, std::size_t, Number, Code*))                 \
  X(free_usm, clMemFreeINTEL, Code(ContextHandle, void*))                                        \
  X(get_allocation, clGetMemAllocInfoINTEL,                                                      \
    Code(ContextHandle, const void*, Number, std::size_t, void*, std::size_t*))                  \
  X(copy_usm, clEnqueueMemcpyINTEL,                                                              \
    Code(QueueHandle, Number, void*, const void*, std::size_t, Number, const EventHandle*,       \
         EventHandle*))                                                                          \
  X(fill_usm, clEnqueueMemFillINTEL,                                                             \
    Code(QueueHandle, void*, const void*, std::size_t, std::size_t, Number, const EventHandle*,  \
         EventHandle*))                                                                          \
  X(migrate, clEnqueueMigrateMemINTEL,                                                           \
    Code(QueueHandle, const void*, std::size_t, Bits, Number, const EventHandle*, EventHandle*)) \
  X(advise, clEnqueueMemAdviseINTEL,                                                             \
    Code(QueueHandle, const void*, std::size_t, Number, Number, const EventHandle*, EventHandle*))

// The functions of one platform. The members of the last two groups may be null.
struct Api {
  template <class Signature>
  using Entry = Signature*;
#define ISTHMUS_OPENCL_MEMBER(member, name, ...) Entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_OPENCL_CORE(ISTHMUS_OPENCL_MEMBER)
  ISTHMUS_OPENCL_SVM(ISTHMUS_OPENCL_MEMBER)
  ISTHMUS_OPENCL_USM(ISTHMUS_OPENCL_MEMBER)
#undef ISTHMUS_OPENCL_MEMBER
};

}  // namespace isthmus::opencl
