// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/library.hpp"

#include "backend/cuda/errors.hpp"
#include "os/library.hpp"

namespace isthmus::cuda {
namespace {

// Returns the name of the first core function that the library lacks, or null.
const char* load_functions(void* opened, Api& calls) noexcept {
  const char* missing = nullptr;
#define ISTHMUS_CUDA_LOAD(member, name, ...) \
  calls.member = reinterpret_cast<Api::Entry<__VA_ARGS__>>(os::find_symbol(opened, #name));
#define ISTHMUS_CUDA_NEED(member, name, ...)           \
  ISTHMUS_CUDA_LOAD(member, name, __VA_ARGS__)         \
  if (calls.member == nullptr && missing == nullptr) { \
    missing = #name;                                   \
  }
  ISTHMUS_CUDA_CORE(ISTHMUS_CUDA_NEED)
  ISTHMUS_CUDA_CAPTURES(ISTHMUS_CUDA_LOAD)
  ISTHMUS_CUDA_VIRTUAL(ISTHMUS_CUDA_LOAD)
  ISTHMUS_CUDA_LOCATIONS(ISTHMUS_CUDA_LOAD)
  ISTHMUS_CUDA_ORDINALS(ISTHMUS_CUDA_LOAD)
  ISTHMUS_CUDA_IPC(ISTHMUS_CUDA_LOAD)
#undef ISTHMUS_CUDA_NEED
#undef ISTHMUS_CUDA_LOAD
  return missing;
}

}  // namespace

Result<Library> open_library(const char* name) {
  auto opened = os::open_library(name);
  ISTHMUS_TRY(opened);
  Library library;
  library.path = os::library_path(*opened);
  if (const char* missing = load_functions(*opened, library.calls)) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{} is not a driver of CUDA 10.0 or later: it has no {}",
                name, missing);
  }
  if (const auto outcome = library.calls.init(0); outcome != cu::k_success) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}: cuInit failed: {} ({})", name, code_name(outcome),
                outcome);
  }
  return library;
}

}  // namespace isthmus::cuda
