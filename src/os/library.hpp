#pragma once
// Shared libraries opened while the process runs. They are never closed: their threads and exit
// hooks point into them.

#include <string>

#include "core/status.hpp"

namespace isthmus::os {

// NOT_FOUND with the loader's own words. Symbols stay out of the global scope.
[[nodiscard]] result<void*> open_library(const char* name);
// Whether the process has loaded a library of that soname.
[[nodiscard]] bool is_loaded(const char* soname) noexcept;
// An environment variable that names code to be loaded; null where it is not set, and in a program
// that runs with more rights than its caller, whose environment must not choose its code.
[[nodiscard]] const char* trusted_variable(const char* name) noexcept;
// Null if there is no such symbol.
[[nodiscard]] void* find_symbol(void* library, const char* name) noexcept;
// The file that the library was loaded from.
[[nodiscard]] std::string library_path(void* library);

// Sets an environment variable that is not set; what is set stays. Not safe beside threads that
// read the environment: for the moment when a driver is opened.
void set_environment_default(const char* name, const char* value) noexcept;
// Whether it is set, and not by that. `name` as there, of which there is one in the process.
[[nodiscard]] bool is_set_by_others(const char* name) noexcept;

}  // namespace isthmus::os
