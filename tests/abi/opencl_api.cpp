// SPDX-License-Identifier: Apache-2.0
// Checks the declarations of src/backend/opencl/api.hpp against Khronos' own headers, where they
// are installed (apt: opencl-c-headers). Only compiled.

#if __has_include(<CL/cl.h>)

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <type_traits>

#include "../../src/backend/opencl/api.hpp"

namespace isthmus::opencl {

static_assert(std::is_same_v<Code, cl_int> && std::is_same_v<Number, cl_uint>);
static_assert(std::is_same_v<Bits, cl_bitfield> && std::is_same_v<Word, cl_context_properties>);

#define ISTHMUS_SAME(member, name, ...) \
  static_assert(std::is_same_v<decltype(&::name), Api::Entry<__VA_ARGS__>>, #name);
ISTHMUS_OPENCL_CORE(ISTHMUS_SAME)
ISTHMUS_OPENCL_SVM(ISTHMUS_SAME)

#define ISTHMUS_SAME_EXTENSION(member, name, ...) \
  static_assert(std::is_same_v<::name##_fn, Api::Entry<__VA_ARGS__>>, #name);
ISTHMUS_OPENCL_USM(ISTHMUS_SAME_EXTENSION)

static_assert(cl::k_false == CL_FALSE);
static_assert(cl::k_platform_version == CL_PLATFORM_VERSION);
static_assert(cl::k_platform_name == CL_PLATFORM_NAME);
static_assert(cl::k_platform_vendor == CL_PLATFORM_VENDOR);
static_assert(cl::k_type_cpu == CL_DEVICE_TYPE_CPU);
static_assert(cl::k_type_gpu == CL_DEVICE_TYPE_GPU);
static_assert(cl::k_type_accelerator == CL_DEVICE_TYPE_ACCELERATOR);
static_assert(cl::k_type_all == CL_DEVICE_TYPE_ALL);
static_assert(cl::k_device_type == CL_DEVICE_TYPE);
static_assert(cl::k_device_compute_units == CL_DEVICE_MAX_COMPUTE_UNITS);
static_assert(cl::k_device_max_allocation == CL_DEVICE_MAX_MEM_ALLOC_SIZE);
static_assert(cl::k_device_base_alignment == CL_DEVICE_MEM_BASE_ADDR_ALIGN);
static_assert(cl::k_device_memory_bytes == CL_DEVICE_GLOBAL_MEM_SIZE);
static_assert(cl::k_device_available == CL_DEVICE_AVAILABLE);
static_assert(cl::k_device_execution == CL_DEVICE_EXECUTION_CAPABILITIES);
static_assert(cl::k_device_name == CL_DEVICE_NAME);
static_assert(cl::k_device_vendor == CL_DEVICE_VENDOR);
static_assert(cl::k_device_driver_version == CL_DRIVER_VERSION);
static_assert(cl::k_device_extensions == CL_DEVICE_EXTENSIONS);
static_assert(cl::k_device_svm == CL_DEVICE_SVM_CAPABILITIES);
static_assert(cl::k_device_host_memory == CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL);
static_assert(cl::k_device_device_memory == CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL);
static_assert(cl::k_device_shared_memory == CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL);
static_assert(cl::k_runs_native_kernels == CL_EXEC_NATIVE_KERNEL);
static_assert(cl::k_memory_access == CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL);
static_assert(cl::k_svm_coarse == CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
static_assert(cl::k_svm_fine == CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
static_assert(cl::k_context_platform == CL_CONTEXT_PLATFORM);
static_assert(cl::k_context_devices == CL_CONTEXT_DEVICES);
static_assert(cl::k_queue_out_of_order == CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
static_assert(cl::k_queue_profiling == CL_QUEUE_PROFILING_ENABLE);
static_assert(cl::k_queue_context == CL_QUEUE_CONTEXT);
static_assert(cl::k_queue_device == CL_QUEUE_DEVICE);
static_assert(cl::k_queue_properties == CL_QUEUE_PROPERTIES);
static_assert(cl::k_memory_read_write == CL_MEM_READ_WRITE);
static_assert(cl::k_memory_svm_fine == CL_MEM_SVM_FINE_GRAIN_BUFFER);
static_assert(cl::k_migrate_to_host == CL_MIGRATE_MEM_OBJECT_HOST);
static_assert(cl::k_allocation_type == CL_MEM_ALLOC_TYPE_INTEL);
static_assert(cl::k_allocation_base == CL_MEM_ALLOC_BASE_PTR_INTEL);
static_assert(cl::k_allocation_bytes == CL_MEM_ALLOC_SIZE_INTEL);
static_assert(cl::k_allocation_device == CL_MEM_ALLOC_DEVICE_INTEL);
static_assert(cl::k_usm_host == CL_MEM_TYPE_HOST_INTEL);
static_assert(cl::k_usm_device == CL_MEM_TYPE_DEVICE_INTEL);
static_assert(cl::k_usm_shared == CL_MEM_TYPE_SHARED_INTEL);
static_assert(cl::k_event_status == CL_EVENT_COMMAND_EXECUTION_STATUS);
static_assert(cl::k_complete == CL_COMPLETE);
static_assert(cl::k_profile_queued == CL_PROFILING_COMMAND_QUEUED);
static_assert(cl::k_profile_started == CL_PROFILING_COMMAND_START);
static_assert(cl::k_profile_ended == CL_PROFILING_COMMAND_END);
static_assert(cl::k_success == CL_SUCCESS);
static_assert(cl::k_device_not_found == CL_DEVICE_NOT_FOUND);
static_assert(cl::k_device_not_available == CL_DEVICE_NOT_AVAILABLE);
static_assert(cl::k_allocation_failed == CL_MEM_OBJECT_ALLOCATION_FAILURE);
static_assert(cl::k_out_of_resources == CL_OUT_OF_RESOURCES);
static_assert(cl::k_out_of_host_memory == CL_OUT_OF_HOST_MEMORY);
static_assert(cl::k_failed_dependency == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
static_assert(cl::k_invalid_value == CL_INVALID_VALUE);
static_assert(cl::k_invalid_memory == CL_INVALID_MEM_OBJECT);
static_assert(cl::k_invalid_size == CL_INVALID_BUFFER_SIZE);
static_assert(cl::k_no_icd_platform == CL_PLATFORM_NOT_FOUND_KHR);

}  // namespace isthmus::opencl

#endif
