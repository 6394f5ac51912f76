#include "memory/page_map.hpp"

#include "memory/grain.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit page_map process_page_map;

// Leaves stay: another region in their GiB is likely, and a reader may be in one.
page_map::leaf* page_map::leaf_for(std::size_t at) {
  auto& cell = root_[at >> k_leaf_bits];
  auto* found = cell.load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  auto pages = os::map_sparse_pages(sizeof(leaf));
  if (!pages) {
    return nullptr;
  }
  auto* made = static_cast<leaf*>(*pages);  // zeroed pages are null pointers
  if (cell.compare_exchange_strong(found, made, std::memory_order_acq_rel)) {
    return made;
  }
  os::unmap_pages(made, sizeof(leaf));
  return found;
}

result<void> page_map::prepare(const void* begin, std::size_t count) {
  const auto from = address(begin) >> k_grain_bits;
  if ((from + count - 1) >> (k_leaf_bits + k_root_bits) != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the driver gave memory at {}: a pool can keep memory below 2**{} only", begin,
                k_address_bits);
  }
  for (auto at = from; at < from + count; at = (at | (k_leaf_grains - 1)) + 1) {
    if (leaf_for(at) == nullptr) {
      return error::no_memory();
    }
  }
  return {};
}

void page_map::enter(const void* begin, std::size_t count, grain* first) noexcept {
  const auto from = address(begin) >> k_grain_bits;
  for (std::size_t index = 0; index < count; ++index) {
    entry_of(from + index).store(first + index, std::memory_order_release);
  }
}

void page_map::remove(const void* begin, std::size_t count) noexcept {
  const auto from = address(begin) >> k_grain_bits;
  for (auto at = from; at < from + count; ++at) {
    entry_of(at).store(nullptr, std::memory_order_release);
  }
}

}  // namespace isthmus
