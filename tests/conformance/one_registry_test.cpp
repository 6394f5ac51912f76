// SPDX-License-Identifier: Apache-2.0
// This program is linked with the library. Other ways to open the library in the same process find
// the same registry. (tests/abi/loads tests a program that is not linked with it,
// tests/python/test_one_registry.py a Python process.)
#include <dlfcn.h>

#include "support/backends.hpp"

namespace {

using namespace support;

class one_registry : public leak_checked {};

std::string library_file() {
  Dl_info found{};
  return dladdr(reinterpret_cast<void*>(&isthmus_live_info), &found) != 0 ? found.dli_fname : "";
}

std::uint64_t live_through(void* opening) {
  const auto live_info =
      reinterpret_cast<decltype(&isthmus_live_info)>(dlsym(opening, "isthmus_live_info"));
  isthmus_live_info_t live{};
  live.struct_size = sizeof live;
  const bool is_counted =
      live_info != nullptr && live_info(ISTHMUS_KIND_UNKNOWN, &live) == ISTHMUS_OK;
  return is_counted ? live.count : 0;
}

// Sanitizers abort a process that opens a library with RTLD_DEEPBIND.
std::vector<int> scopes() {
  std::vector<int> all{RTLD_LOCAL, RTLD_GLOBAL, RTLD_NOLOAD};
  if (dlsym(RTLD_DEFAULT, "__sanitizer_print_stack_trace") == nullptr) {
    all.push_back(RTLD_LOCAL | RTLD_DEEPBIND);
  }
  return all;
}

TEST_F(one_registry, whatever_way_it_is_opened) {
  const im::buffer buffer(100, im::kind::host, {.queue = im::queue(im::device("host"))});
  const std::uint64_t live = im::live().count;
  for (const std::string& file : {library_file(), std::string("libisthmus.so.0")}) {
    for (int scope : scopes()) {
      for (int time : {RTLD_NOW, RTLD_LAZY}) {
        void* opening = dlopen(file.c_str(), time | scope);
        ASSERT_NE(opening, nullptr) << dlerror();
        EXPECT_EQ(live_through(opening), live) << file << ' ' << scope;
        dlclose(opening);
      }
    }
  }
  EXPECT_EQ(im::live().count, live);
}

}  // namespace
