// SPDX-License-Identifier: Apache-2.0
#include "os/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace isthmus::os {

Result<void*> open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc and musl
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}", reason != nullptr ? reason : name);
  }
  return library;
}

const char* trusted_variable(const char* name) noexcept { return secure_getenv(name); }

bool is_loaded(const char* soname) noexcept {
  void* const handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) {
    dlclose(handle);
  }
  return handle != nullptr;
}

void* find_symbol(void* library, const char* name) noexcept { return dlsym(library, name); }

std::string library_path(void* library) {
  link_map* library_record = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &library_record) != 0 || library_record == nullptr) {
    return {};
  }
  return library_record->l_name;
}

namespace {

std::atomic<const char*> defaulted_name{nullptr};  // a string literal

}  // namespace

// NOLINTBEGIN(concurrency-mt-unsafe): documented in the header
void set_environment_default(const char* name, const char* value) noexcept {
  if (std::getenv(name) == nullptr) {
    setenv(name, value, 1);
    defaulted_name.store(name, std::memory_order_relaxed);
  }
}

bool is_set_externally(const char* name) noexcept {
  const char* const default_name = defaulted_name.load(std::memory_order_relaxed);
  const bool is_default = default_name != nullptr && std::string_view{default_name} == name;
  return std::getenv(name) != nullptr && !is_default;
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace isthmus::os
