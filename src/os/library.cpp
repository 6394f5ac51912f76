#include "os/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

namespace isthmus::os {

result<void*> open_library(const char* name) {
  void* opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc and musl
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}", reason != nullptr ? reason : name);
  }
  return opened;
}

bool is_loaded(const char* soname) noexcept {
  void* const known = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (known != nullptr) {
    dlclose(known);
  }
  return known != nullptr;
}

void* find_symbol(void* library, const char* name) noexcept { return dlsym(library, name); }

std::string library_path(void* library) {
  link_map* loaded = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &loaded) != 0 || loaded == nullptr) {
    return {};
  }
  return loaded->l_name;
}

void set_environment_default(const char* name, const char* value) noexcept {
  setenv(name, value, 0);  // NOLINT(concurrency-mt-unsafe): said in the header
}

}  // namespace isthmus::os
