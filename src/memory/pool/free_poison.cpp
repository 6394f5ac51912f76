// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/free_poison.hpp"

#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

// The sanitizer's shadow memory, an eighth of the bytes it describes, remains resident for the rest
// of the process. Memory that is often remapped would accumulate shadow pages throughout the
// address space, so these pages are cleared.
void FreePoison::unpoison_permanently([[maybe_unused]] const void* begin,
                                      [[maybe_unused]] std::size_t nbytes) noexcept {
#if ISTHMUS_ADDRESS_SANITIZER
  unpoison(begin, nbytes);
  std::size_t scale = 0;
  std::size_t offset = 0;
  __asan_get_shadow_mapping(&scale, &offset);
  const auto shadow_of = [=](std::uintptr_t position) { return (position >> scale) + offset; };
  const auto page = os::page_size();
  const auto first = round_up(shadow_of(address(begin)), page);
  const auto end = shadow_of(address(begin) + nbytes) / page * page;
  if (first < end) {
    os::clear_sparse_pages(reinterpret_cast<void*>(first), end - first);
  }
#endif
}

}  // namespace isthmus
