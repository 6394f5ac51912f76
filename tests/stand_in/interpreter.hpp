// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the calling thread holds the lock of a Python interpreter in this process.
//
// A driver call that may wait for the device must be made without this lock. Otherwise all other
// Python threads stop meanwhile, and one that the device waits for would never run.

#include <dlfcn.h>

namespace stand_in {

inline bool interpreter_is_held() {
  using question = int (*)();
  static const auto is_held = reinterpret_cast<question>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  static const auto is_there = reinterpret_cast<question>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  return is_held != nullptr && is_there != nullptr && is_there() != 0 && is_held() != 0;
}

}  // namespace stand_in
