// expect: no matching function|constraints not satisfied|template constraint failure
// SPDX-License-Identifier: Apache-2.0
// A free cannot fail: `deallocate` must be noexcept.
#include <isthmus/isthmus.hpp>

struct heap {
  void* allocate(std::size_t, std::size_t, const isthmus::queue&);
  void deallocate(void*, std::size_t, const isthmus::queue&);
};

isthmus::resource make(const isthmus::context& context) {
  return isthmus::resource::custom(context, isthmus::kind::host, heap());
}
