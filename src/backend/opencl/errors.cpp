// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/errors.hpp"

#include <algorithm>
#include <array>

namespace isthmus::opencl {
namespace {

struct NamedCode {
  cl_int number;
  const char* name;
};

#define ISTHMUS_NAMED(code) \
  NamedCode { code, #code }
constexpr std::array k_names = {
    ISTHMUS_NAMED(CL_DEVICE_NOT_FOUND),
    ISTHMUS_NAMED(CL_DEVICE_NOT_AVAILABLE),
    ISTHMUS_NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    ISTHMUS_NAMED(CL_OUT_OF_RESOURCES),
    ISTHMUS_NAMED(CL_OUT_OF_HOST_MEMORY),
    ISTHMUS_NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    ISTHMUS_NAMED(CL_MEM_COPY_OVERLAP),
    ISTHMUS_NAMED(CL_MAP_FAILURE),
    ISTHMUS_NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    ISTHMUS_NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    ISTHMUS_NAMED(CL_INVALID_VALUE),
    ISTHMUS_NAMED(CL_INVALID_DEVICE_TYPE),
    ISTHMUS_NAMED(CL_INVALID_PLATFORM),
    ISTHMUS_NAMED(CL_INVALID_DEVICE),
    ISTHMUS_NAMED(CL_INVALID_CONTEXT),
    ISTHMUS_NAMED(CL_INVALID_QUEUE_PROPERTIES),
    ISTHMUS_NAMED(CL_INVALID_COMMAND_QUEUE),
    ISTHMUS_NAMED(CL_INVALID_HOST_PTR),
    ISTHMUS_NAMED(CL_INVALID_MEM_OBJECT),
    ISTHMUS_NAMED(CL_INVALID_EVENT_WAIT_LIST),
    ISTHMUS_NAMED(CL_INVALID_EVENT),
    ISTHMUS_NAMED(CL_INVALID_OPERATION),
    ISTHMUS_NAMED(CL_INVALID_BUFFER_SIZE),
    ISTHMUS_NAMED(CL_INVALID_PROPERTY),
    ISTHMUS_NAMED(CL_PLATFORM_NOT_FOUND_KHR),
};
#undef ISTHMUS_NAMED

Status status_of(cl_int failure) noexcept {
  switch (failure) {
    case CL_DEVICE_NOT_AVAILABLE: return ISTHMUS_ERROR_DEVICE_LOST;
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: return ISTHMUS_ERROR_DEPENDENCY;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY: return ISTHMUS_ERROR_OUT_OF_MEMORY;
    default: return ISTHMUS_ERROR_DRIVER;
  }
}

}  // namespace

const char* code_name(cl_int outcome) noexcept {
  const auto* found = std::find_if(k_names.begin(), k_names.end(),
                                   [=](const NamedCode& entry) { return entry.number == outcome; });
  return found != k_names.end() ? found->name : "an unknown code";
}

Error call_failed(const char* call, cl_int failure) {
  return fail(status_of(failure), "{} failed: {} ({})", call, code_name(failure), failure);
}

bool is_out_of_memory(cl_int failure) noexcept {
  constexpr std::array codes = {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES,
                                CL_OUT_OF_HOST_MEMORY, CL_INVALID_MEM_OBJECT,
                                CL_INVALID_BUFFER_SIZE};
  return std::find(codes.begin(), codes.end(), failure) != codes.end();
}

}  // namespace isthmus::opencl
