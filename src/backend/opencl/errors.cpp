// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/errors.hpp"

#include <algorithm>
#include <array>

namespace isthmus::opencl {
namespace {

struct NamedCode {
  Code number;
  const char* name;
};

constexpr std::array k_names = {
    NamedCode{-1, "CL_DEVICE_NOT_FOUND"},
    NamedCode{-2, "CL_DEVICE_NOT_AVAILABLE"},
    NamedCode{-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    NamedCode{-5, "CL_OUT_OF_RESOURCES"},
    NamedCode{-6, "CL_OUT_OF_HOST_MEMORY"},
    NamedCode{-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    NamedCode{-8, "CL_MEM_COPY_OVERLAP"},
    NamedCode{-12, "CL_MAP_FAILURE"},
    NamedCode{-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    NamedCode{-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    NamedCode{-30, "CL_INVALID_VALUE"},
    NamedCode{-31, "CL_INVALID_DEVICE_TYPE"},
    NamedCode{-32, "CL_INVALID_PLATFORM"},
    NamedCode{-33, "CL_INVALID_DEVICE"},
    NamedCode{-34, "CL_INVALID_CONTEXT"},
    NamedCode{-35, "CL_INVALID_QUEUE_PROPERTIES"},
    NamedCode{-36, "CL_INVALID_COMMAND_QUEUE"},
    NamedCode{-37, "CL_INVALID_HOST_PTR"},
    NamedCode{-38, "CL_INVALID_MEM_OBJECT"},
    NamedCode{-57, "CL_INVALID_EVENT_WAIT_LIST"},
    NamedCode{-58, "CL_INVALID_EVENT"},
    NamedCode{-59, "CL_INVALID_OPERATION"},
    NamedCode{-61, "CL_INVALID_BUFFER_SIZE"},
    NamedCode{-64, "CL_INVALID_PROPERTY"},
    NamedCode{-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

Status status_of(Code failure) noexcept {
  switch (failure) {
    case cl::k_device_not_available: return ISTHMUS_ERROR_DEVICE_LOST;
    case cl::k_failed_dependency: return ISTHMUS_ERROR_DEPENDENCY;
    case cl::k_allocation_failed:
    case cl::k_out_of_host_memory: return ISTHMUS_ERROR_OUT_OF_MEMORY;
    default: return ISTHMUS_ERROR_DRIVER;
  }
}

}  // namespace

const char* code_name(Code outcome) noexcept {
  const auto* found = std::find_if(k_names.begin(), k_names.end(),
                                   [=](const NamedCode& entry) { return entry.number == outcome; });
  return found != k_names.end() ? found->name : "an unknown code";
}

Error call_failed(const char* call, Code failure) {
  return fail(status_of(failure), "{} failed: {} ({})", call, code_name(failure), failure);
}

bool is_out_of_memory(Code failure) noexcept {
  constexpr std::array codes = {cl::k_allocation_failed, cl::k_out_of_resources,
                                cl::k_out_of_host_memory, cl::k_invalid_memory, cl::k_invalid_size};
  return std::find(codes.begin(), codes.end(), failure) != codes.end();
}

}  // namespace isthmus::opencl
