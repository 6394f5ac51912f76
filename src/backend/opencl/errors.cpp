// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/errors.hpp"

#include <algorithm>
#include <array>

namespace isthmus::opencl {
namespace {

struct named_code {
  code number;
  const char* name;
};

constexpr std::array k_names = {
    named_code{-1, "CL_DEVICE_NOT_FOUND"},
    named_code{-2, "CL_DEVICE_NOT_AVAILABLE"},
    named_code{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    named_code{-5, "CL_OUT_OF_RESOURCES"},
    named_code{-6, "CL_OUT_OF_HOST_MEMORY"},
    named_code{-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    named_code{-8, "CL_MEM_COPY_OVERLAP"},
    named_code{-12, "CL_MAP_FAILURE"},
    named_code{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    named_code{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    named_code{-30, "CL_INVALID_VALUE"},
    named_code{-31, "CL_INVALID_DEVICE_TYPE"},
    named_code{-32, "CL_INVALID_PLATFORM"},
    named_code{-33, "CL_INVALID_DEVICE"},
    named_code{-34, "CL_INVALID_CONTEXT"},
    named_code{-35, "CL_INVALID_QUEUE_PROPERTIES"},
    named_code{-36, "CL_INVALID_COMMAND_QUEUE"},
    named_code{-37, "CL_INVALID_HOST_PTR"},
    named_code{-38, "CL_INVALID_MEM_OBJECT"},
    named_code{-57, "CL_INVALID_EVENT_WAIT_LIST"},
    named_code{-58, "CL_INVALID_EVENT"},
    named_code{-59, "CL_INVALID_OPERATION"},
    named_code{-61, "CL_INVALID_BUFFER_SIZE"},
    named_code{-64, "CL_INVALID_PROPERTY"},
    named_code{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

status status_of(code failure) noexcept {
  switch (failure) {
    case cl::k_device_not_available: return ISTHMUS_ERROR_DEVICE_LOST;
    case cl::k_failed_dependency: return ISTHMUS_ERROR_DEPENDENCY;
    case cl::k_allocation_failed:
    case cl::k_out_of_host_memory: return ISTHMUS_ERROR_OUT_OF_MEMORY;
    default: return ISTHMUS_ERROR_DRIVER;
  }
}

}  // namespace

const char* code_name(code outcome) noexcept {
  const auto* found = std::find_if(k_names.begin(), k_names.end(), [=](const named_code& known) {
    return known.number == outcome;
  });
  return found != k_names.end() ? found->name : "an unknown code";
}

error call_failed(const char* call, code failure) {
  return fail(status_of(failure), "{} failed: {} ({})", call, code_name(failure), failure);
}

bool is_out_of_memory(code failure) noexcept {
  constexpr std::array codes = {cl::k_allocation_failed, cl::k_out_of_resources,
                                cl::k_out_of_host_memory, cl::k_invalid_memory, cl::k_invalid_size};
  return std::find(codes.begin(), codes.end(), failure) != codes.end();
}

}  // namespace isthmus::opencl
