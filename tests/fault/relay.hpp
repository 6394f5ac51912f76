// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test control of a library in front of a driver (stand_in/*_relay.cpp).

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <string>

namespace support {

class relay {
 public:
  // An environment variable names the library, which Isthmus has already opened.
  explicit relay(const char* variable) {
    const char* const named = std::getenv(variable);
    opened_ = named == nullptr ? nullptr : dlopen(named, RTLD_NOW | RTLD_NOLOAD);
  }

 protected:
  template <class Function>
  void find(const char* name, Function*& found) const {
    if (opened_ != nullptr) found = reinterpret_cast<Function*>(dlsym(opened_, name));
  }
  // Returns the counts of all calls by name.
  static std::map<std::string, long> by_name(const char* (*name)(std::size_t),
                                             long (*count)(std::size_t)) {
    std::map<std::string, long> found;
    for (std::size_t each = 0; name(each) != nullptr; ++each) found[name(each)] = count(each);
    return found;
  }

 private:
  void* opened_;
};

}  // namespace support
