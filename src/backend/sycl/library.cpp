// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/library.hpp"

#include "os/library.hpp"

namespace isthmus::sycl {
namespace {

// sycl::context::getNative() const. A member function can be called as a function whose first
// parameter is the object.
constexpr auto k_context_native = "_ZNK4sycl3_V17context9getNativeEv";

// Returns the name of the first function that the library lacks, or null.
const char* load_functions(void* opened, Api& calls) noexcept {
  const char* missing = nullptr;
#define ISTHMUS_SYCL_LOAD(member, name, ...)                                                \
  calls.member = reinterpret_cast<Api::Entry<__VA_ARGS__>>(os::find_symbol(opened, #name)); \
  if (calls.member == nullptr && missing == nullptr) {                                      \
    missing = #name;                                                                        \
  }
  ISTHMUS_SYCL_FUNCTIONS(ISTHMUS_SYCL_LOAD)
#undef ISTHMUS_SYCL_LOAD
  return missing;
}

}  // namespace

Result<Library> open_library(const std::string& name) {
  auto opened = os::open_library(name.c_str());
  ISTHMUS_TRY(opened);
  Library library;
  library.path = os::library_path(*opened);
  library.calls.context_native = reinterpret_cast<Api::Entry<std::uintptr_t(ContextReference)>>(
      os::find_symbol(*opened, k_context_native));
  if (const char* missing = load_functions(*opened, library.calls)) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "{} is not the C interface of dpctl 0.17 or later: it has no {}", library.path,
                missing);
  }
  return library;
}

}  // namespace isthmus::sycl
