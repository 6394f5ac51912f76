// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of OpenCL that this library uses. Types and constants are those of Khronos' headers.
// Only declarations are used: the functions are found at run time, so that starting needs no OpenCL
// library.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue, which every driver exports
#include <CL/cl.h>
#include <CL/cl_ext.h>

namespace isthmus::opencl {

// X(member, OpenCL's name): exported by every OpenCL 1.2 library.
#define ISTHMUS_OPENCL_CORE(X)                               \
  X(get_platforms, clGetPlatformIDs)                         \
  X(get_platform_info, clGetPlatformInfo)                    \
  X(get_devices, clGetDeviceIDs)                             \
  X(get_device_info, clGetDeviceInfo)                        \
  X(get_extension, clGetExtensionFunctionAddressForPlatform) \
  X(create_context, clCreateContext)                         \
  X(retain_context, clRetainContext)                         \
  X(release_context, clReleaseContext)                       \
  X(get_context_info, clGetContextInfo)                      \
  X(create_queue, clCreateCommandQueue)                      \
  X(retain_queue, clRetainCommandQueue)                      \
  X(release_queue, clReleaseCommandQueue)                    \
  X(get_queue_info, clGetCommandQueueInfo)                   \
  X(flush, clFlush)                                          \
  X(finish, clFinish)                                        \
  X(enqueue_marker, clEnqueueMarkerWithWaitList)             \
  X(enqueue_barrier, clEnqueueBarrierWithWaitList)           \
  X(enqueue_native, clEnqueueNativeKernel)                   \
  X(create_user_event, clCreateUserEvent)                    \
  X(set_user_event, clSetUserEventStatus)                    \
  X(set_callback, clSetEventCallback)                        \
  X(wait_for_events, clWaitForEvents)                        \
  X(get_event_info, clGetEventInfo)                          \
  X(get_profile, clGetEventProfilingInfo)                    \
  X(retain_event, clRetainEvent)                             \
  X(release_event, clReleaseEvent)

// Exported since OpenCL 2.0. Must not be called on an older platform.
#define ISTHMUS_OPENCL_SVM(X)     \
  X(allocate_svm, clSVMAlloc)     \
  X(free_svm, clSVMFree)          \
  X(copy_svm, clEnqueueSVMMemcpy) \
  X(fill_svm, clEnqueueSVMMemFill)

// Functions of the extension cl_intel_unified_shared_memory, looked up for each platform.
#define ISTHMUS_OPENCL_USM(X)               \
  X(allocate_host, clHostMemAllocINTEL)     \
  X(allocate_device, clDeviceMemAllocINTEL) \
  X(allocate_shared, clSharedMemAllocINTEL) \
  X(free_usm, clMemFreeINTEL)               \
  X(get_allocation, clGetMemAllocInfoINTEL) \
  X(copy_usm, clEnqueueMemcpyINTEL)         \
  X(fill_usm, clEnqueueMemFillINTEL)        \
  X(migrate, clEnqueueMigrateMemINTEL)      \
  X(advise, clEnqueueMemAdviseINTEL)

// The functions of one platform. The members of the last two groups may be null.
struct Api {
#define ISTHMUS_OPENCL_FUNCTION(member, name)  decltype(&::name) member = nullptr;
#define ISTHMUS_OPENCL_EXTENSION(member, name) ::name##_fn member = nullptr;
  ISTHMUS_OPENCL_CORE(ISTHMUS_OPENCL_FUNCTION)
  ISTHMUS_OPENCL_SVM(ISTHMUS_OPENCL_FUNCTION)
  ISTHMUS_OPENCL_USM(ISTHMUS_OPENCL_EXTENSION)
#undef ISTHMUS_OPENCL_EXTENSION
#undef ISTHMUS_OPENCL_FUNCTION
};

}  // namespace isthmus::opencl
