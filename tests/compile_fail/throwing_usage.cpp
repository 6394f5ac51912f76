// expect: usage\(\) of a source is noexcept
// SPDX-License-Identifier: Apache-2.0
// The library calls `usage` where it cannot report an error: one that may throw does not count.
#include <isthmus/isthmus.hpp>

struct heap {
  void* allocate(std::size_t, std::size_t, const isthmus::queue&);
  void deallocate(void*, std::size_t, const isthmus::queue&) noexcept;
  isthmus::memory_usage usage();
};

isthmus::resource make(const isthmus::context& context) {
  return isthmus::resource::custom(context, isthmus::kind::host, heap());
}
