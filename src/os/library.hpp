// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared libraries opened while the process runs. They are never closed, because their threads and
// exit handlers refer to their code. Thread-safe except where noted.

#include <string>

#include "core/status.hpp"

namespace isthmus::os {

// Opens a library without adding its symbols to the global scope. NOT_FOUND, with the loader's
// message, if that fails.
[[nodiscard]] Result<void*> open_library(const char* name);
// Whether the process has loaded a library with that soname.
[[nodiscard]] bool is_loaded(const char* soname) noexcept;
// Returns the value of an environment variable that names code to load. Null if it is not set, and
// in a program that runs with more privileges than its caller: the caller's environment must not
// choose the code.
[[nodiscard]] const char* trusted_variable(const char* name) noexcept;
// Null if there is no such symbol.
[[nodiscard]] void* find_symbol(void* library, const char* name) noexcept;
// The path of the file that the library was loaded from.
[[nodiscard]] std::string library_path(void* library);

// Sets an environment variable unless it is already set. Not safe while other threads read the
// environment: call it only when a driver is opened.
void set_environment_default(const char* name, const char* value) noexcept;
// Whether the variable is set, and not by `set_environment_default`. `name` is the one passed
// there; only one name per process is supported.
[[nodiscard]] bool is_set_externally(const char* name) noexcept;

}  // namespace isthmus::os
