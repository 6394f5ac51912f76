// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of OpenCL that this library uses, declared by hand: no vendor's header is needed to
// build and no library to start. tests/abi/opencl_api.cpp compares it with Khronos' own headers
// where those are installed.
//
// The handles have Khronos' names, so that the types are identical. All other names are our own.

#include <cstddef>
#include <cstdint>

struct _cl_platform_id;
struct _cl_device_id;
struct _cl_context;
struct _cl_command_queue;
struct _cl_event;
struct _cl_mem;

namespace isthmus::opencl {

using platform_handle = ::_cl_platform_id*;
using device_handle = ::_cl_device_id*;
using context_handle = ::_cl_context*;
using queue_handle = ::_cl_command_queue*;
using event_handle = ::_cl_event*;
using memory_handle = ::_cl_mem*;
using code = std::int32_t;  // negative: an error
using number = std::uint32_t;
using bits = std::uint64_t;
using word = std::intptr_t;  // an entry of a list of properties

namespace cl {
inline constexpr number k_false = 0;

inline constexpr number k_platform_version = 0x0901;
inline constexpr number k_platform_name = 0x0902;
inline constexpr number k_platform_vendor = 0x0903;

inline constexpr bits k_type_cpu = 1 << 1;
inline constexpr bits k_type_gpu = 1 << 2;
inline constexpr bits k_type_accelerator = 1 << 3;
inline constexpr bits k_type_all = 0xFFFFFFFF;

inline constexpr number k_device_type = 0x1000;
inline constexpr number k_device_compute_units = 0x1002;
inline constexpr number k_device_max_allocation = 0x1010;
inline constexpr number k_device_base_alignment = 0x1019;  // in bits
inline constexpr number k_device_memory_bytes = 0x101F;
inline constexpr number k_device_available = 0x1027;
inline constexpr number k_device_execution = 0x1029;
inline constexpr number k_device_name = 0x102B;
inline constexpr number k_device_vendor = 0x102C;
inline constexpr number k_device_driver_version = 0x102D;
inline constexpr number k_device_extensions = 0x1030;
inline constexpr number k_device_svm = 0x1053;
inline constexpr number k_device_host_memory = 0x4190;
inline constexpr number k_device_device_memory = 0x4191;
inline constexpr number k_device_shared_memory = 0x4192;

inline constexpr bits k_runs_native_kernels = 1 << 1;  // a bit of k_device_execution
inline constexpr bits k_memory_access = 1 << 0;        // a bit of the three capabilities of USM
inline constexpr bits k_svm_coarse = 1 << 0;
inline constexpr bits k_svm_fine = 1 << 1;
inline constexpr bits k_svm_system = 1 << 3;  // any host memory

inline constexpr word k_context_platform = 0x1084;
inline constexpr number k_context_devices = 0x1081;

inline constexpr bits k_queue_out_of_order = 1 << 0;
inline constexpr bits k_queue_profiling = 1 << 1;
inline constexpr number k_queue_context = 0x1090;
inline constexpr number k_queue_device = 0x1091;
inline constexpr number k_queue_references = 0x1092;
inline constexpr number k_queue_properties = 0x1093;

inline constexpr bits k_memory_read_write = 1 << 0;
inline constexpr bits k_memory_svm_fine = 1 << 10;
inline constexpr bits k_migrate_to_host = 1 << 0;

inline constexpr number k_allocation_type = 0x419A;
inline constexpr number k_allocation_base = 0x419B;
inline constexpr number k_allocation_bytes = 0x419C;
inline constexpr number k_allocation_device = 0x419D;
inline constexpr number k_usm_host = 0x4197;
inline constexpr number k_usm_device = 0x4198;
inline constexpr number k_usm_shared = 0x4199;

inline constexpr number k_event_status = 0x11D3;
inline constexpr code k_complete = 0;
inline constexpr number k_profile_queued = 0x1280;
inline constexpr number k_profile_started = 0x1282;
inline constexpr number k_profile_ended = 0x1283;

inline constexpr code k_success = 0;
inline constexpr code k_device_not_found = -1;
inline constexpr code k_device_not_available = -2;
inline constexpr code k_allocation_failed = -4;
inline constexpr code k_out_of_resources = -5;
inline constexpr code k_out_of_host_memory = -6;
inline constexpr code k_failed_dependency = -14;
inline constexpr code k_invalid_value = -30;
inline constexpr code k_invalid_memory = -38;
inline constexpr code k_invalid_size = -61;
inline constexpr code k_no_icd_platform = -1001;
}  // namespace cl

using event_callback = void (*)(event_handle, code, void*);
using context_callback = void (*)(const char*, const void*, std::size_t, void*);
using native_function = void (*)(void*);

// X(member, OpenCL's name, type): exported by every OpenCL 1.2 library.
#define ISTHMUS_OPENCL_CORE(X)                                                                    \
  X(get_platforms, clGetPlatformIDs, code(number, platform_handle*, number*))                     \
  X(get_platform_info, clGetPlatformInfo,                                                         \
    code(platform_handle, number, std::size_t, void*, std::size_t*))                              \
  X(get_devices, clGetDeviceIDs, code(platform_handle, bits, number, device_handle*, number*))    \
  X(get_device_info, clGetDeviceInfo,                                                             \
    code(device_handle, number, std::size_t, void*, std::size_t*))                                \
  X(get_extension, clGetExtensionFunctionAddressForPlatform, void*(platform_handle, const char*)) \
  X(create_context, clCreateContext,                                                              \
    context_handle(const word*, number, const device_handle*, context_callback, void*, code*))    \
  X(retain_context, clRetainContext, code(context_handle))                                        \
  X(release_context, clReleaseContext, code(context_handle))                                      \
  X(get_context_info, clGetContextInfo,                                                           \
    code(context_handle, number, std::size_t, void*, std::size_t*))                               \
  X(create_queue, clCreateCommandQueue, queue_handle(context_handle, device_handle, bits, code*)) \
  X(retain_queue, clRetainCommandQueue, code(queue_handle))                                       \
  X(release_queue, clReleaseCommandQueue, code(queue_handle))                                     \
  X(get_queue_info, clGetCommandQueueInfo,                                                        \
    code(queue_handle, number, std::size_t, void*, std::size_t*))                                 \
  X(flush, clFlush, code(queue_handle))                                                           \
  X(finish, clFinish, code(queue_handle))                                                         \
  X(enqueue_marker, clEnqueueMarkerWithWaitList,                                                  \
    code(queue_handle, number, const event_handle*, event_handle*))                               \
  X(enqueue_barrier, clEnqueueBarrierWithWaitList,                                                \
    code(queue_handle, number, const event_handle*, event_handle*))                               \
  X(enqueue_native, clEnqueueNativeKernel,                                                        \
    code(queue_handle, native_function, void*, std::size_t, number, const memory_handle*,         \
         const void**, number, const event_handle*, event_handle*))                               \
  X(create_user_event, clCreateUserEvent, event_handle(context_handle, code*))                    \
  X(set_user_event, clSetUserEventStatus, code(event_handle, code))                               \
  X(set_callback, clSetEventCallback, code(event_handle, code, event_callback, void*))            \
  X(wait_for_events, clWaitForEvents, code(number, const event_handle*))                          \
  X(get_event_info, clGetEventInfo, code(event_handle, number, std::size_t, void*, std::size_t*)) \
  X(get_profile, clGetEventProfilingInfo,                                                         \
    code(event_handle, number, std::size_t, void*, std::size_t*))                                 \
  X(retain_event, clRetainEvent, code(event_handle))                                              \
  X(release_event, clReleaseEvent, code(event_handle))

// Exported since OpenCL 2.0. Must not be called on an older platform.
#define ISTHMUS_OPENCL_SVM(X)                                                                     \
  X(allocate_svm, clSVMAlloc, void*(context_handle, bits, std::size_t, number))                   \
  X(free_svm, clSVMFree, void(context_handle, void*))                                             \
  X(copy_svm, clEnqueueSVMMemcpy,                                                                 \
    code(queue_handle, number, void*, const void*, std::size_t, number, const event_handle*,      \
         event_handle*))                                                                          \
  X(fill_svm, clEnqueueSVMMemFill,                                                                \
    code(queue_handle, void*, const void*, std::size_t, std::size_t, number, const event_handle*, \
         event_handle*))

// Functions of the extension cl_intel_unified_shared_memory, looked up for each platform.
#define ISTHMUS_OPENCL_USM(X)                                                                     \
  X(allocate_host, clHostMemAllocINTEL,                                                           \
    void*(context_handle, const bits*, std::size_t, number, code*))                               \
  X(allocate_device, clDeviceMemAllocINTEL,                                                       \
    void*(context_handle, device_handle, const bits*, std::size_t, number, code*))                \
  X(allocate_shared, clSharedMemAllocINTEL,                                                       \
    void*(context_handle, device_handle, const bits*, std::size_t, number, code*))                \
  X(free_usm, clMemFreeINTEL, code(context_handle, void*))                                        \
  X(get_allocation, clGetMemAllocInfoINTEL,                                                       \
    code(context_handle, const void*, number, std::size_t, void*, std::size_t*))                  \
  X(copy_usm, clEnqueueMemcpyINTEL,                                                               \
    code(queue_handle, number, void*, const void*, std::size_t, number, const event_handle*,      \
         event_handle*))                                                                          \
  X(fill_usm, clEnqueueMemFillINTEL,                                                              \
    code(queue_handle, void*, const void*, std::size_t, std::size_t, number, const event_handle*, \
         event_handle*))                                                                          \
  X(migrate, clEnqueueMigrateMemINTEL,                                                            \
    code(queue_handle, const void*, std::size_t, bits, number, const event_handle*,               \
         event_handle*))                                                                          \
  X(advise, clEnqueueMemAdviseINTEL,                                                              \
    code(queue_handle, const void*, std::size_t, number, number, const event_handle*,             \
         event_handle*))

// The functions of one platform. The members of the last two groups may be null.
struct api {
  template <class Signature>
  using entry = Signature*;
#define ISTHMUS_OPENCL_MEMBER(member, name, ...) entry<__VA_ARGS__> member = nullptr;
  ISTHMUS_OPENCL_CORE(ISTHMUS_OPENCL_MEMBER)
  ISTHMUS_OPENCL_SVM(ISTHMUS_OPENCL_MEMBER)
  ISTHMUS_OPENCL_USM(ISTHMUS_OPENCL_MEMBER)
#undef ISTHMUS_OPENCL_MEMBER
};

}  // namespace isthmus::opencl
