// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/library.hpp"

#include "backend/opencl/errors.hpp"
#include "os/library.hpp"

namespace isthmus::opencl {
namespace {

// Returns the name of the first core function that the library lacks, or null.
const char* load_functions(void* opened, Api& calls) noexcept {
  const char* missing = nullptr;
#define ISTHMUS_OPENCL_LOAD(member, name) \
  calls.member = reinterpret_cast<decltype(&::name)>(os::find_symbol(opened, #name));
#define ISTHMUS_OPENCL_NEED(member, name)              \
  ISTHMUS_OPENCL_LOAD(member, name)                    \
  if (calls.member == nullptr && missing == nullptr) { \
    missing = #name;                                   \
  }
  ISTHMUS_OPENCL_CORE(ISTHMUS_OPENCL_NEED)
  ISTHMUS_OPENCL_SVM(ISTHMUS_OPENCL_LOAD)
#undef ISTHMUS_OPENCL_NEED
#undef ISTHMUS_OPENCL_LOAD
  return missing;
}

Result<std::vector<cl_platform_id>> list_platforms(const Api& calls) {
  cl_uint count = 0;
  auto outcome = calls.get_platforms(0, nullptr, &count);
  std::vector<cl_platform_id> handles(count);
  if (outcome == CL_SUCCESS && count != 0) {
    outcome = calls.get_platforms(count, handles.data(), nullptr);
  }
  if (outcome == CL_PLATFORM_NOT_FOUND_KHR || (outcome == CL_SUCCESS && count == 0)) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "no OpenCL driver is registered with this loader: install one, or set "
                "ISTHMUS_OPENCL_LIBRARY to the path of its library");
  }
  if (outcome != CL_SUCCESS) {
    return call_failed("clGetPlatformIDs", outcome);
  }
  return handles;
}

}  // namespace

Result<Library> open_library(const std::string& name) {
  auto opened = os::open_library(name.c_str());
  if (!opened) {
    return opened.take_error();
  }
  Library library;
  library.path = os::library_path(*opened);
  if (const char* missing = load_functions(*opened, library.calls)) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{} is not an OpenCL 1.2 library: it lacks {}", name,
                missing);
  }
  auto platforms = list_platforms(library.calls);
  if (!platforms) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}: {}", name, platforms.failure().message());
  }
  library.platforms = *std::move(platforms);
  return library;
}

}  // namespace isthmus::opencl
