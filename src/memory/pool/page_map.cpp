// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/page_map.hpp"

#include "core/expects.hpp"
#include "memory/pool/pool_page.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit PageMap process_page_map;
constinit const MapEntry PageMap::k_empty_entry;

// Leaves are never freed: another region in the same GiB is likely, and a reader may be using the
// leaf.
PageMap::Leaf* PageMap::leaf_for(std::size_t number) {
  auto& cell = root_[number >> k_leaf_bits];
  auto* found = cell.load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  auto pages = os::map_sparse_pages(sizeof(Leaf));
  if (!pages) {
    return nullptr;
  }
  auto* leaf = static_cast<Leaf*>(*pages);  // zeroed memory represents empty entries
  if (cell.compare_exchange_strong(found, leaf, std::memory_order_acq_rel)) {
    return leaf;
  }
  os::unmap_pages(leaf, sizeof(Leaf));
  return found;
}

Result<void> PageMap::prepare(const void* begin, std::size_t count) {
  const auto first_number = address(begin) >> k_pool_page_bits;
  if ((first_number + count - 1) >> (k_leaf_bits + k_root_bits) != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the driver returned memory at {}: a pool can use memory below 2**{} only", begin,
                k_address_bits);
  }
  for (auto at = first_number; at < first_number + count; at = (at | (k_leaf_pages - 1)) + 1) {
    if (leaf_for(at) == nullptr) {
      return Error::no_memory();
    }
  }
  return {};
}

template <class Visit>
void PageMap::visit(const void* begin, std::size_t count, Visit&& visit) noexcept {
  const auto first_number = address(begin) >> k_pool_page_bits;
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = first_number + index;
    auto* const leaf = root_[number >> k_leaf_bits].load(std::memory_order_relaxed);
    ISTHMUS_EXPECTS(leaf != nullptr);
    visit((*leaf)[number & (k_leaf_pages - 1)], index);
  }
}

void PageMap::enter(const void* begin, std::size_t count, PoolPage* first) noexcept {
  ISTHMUS_EXPECTS(address(begin) % k_pool_page_bytes == 0, begin);
  visit(begin, count, [&](MapEntry& entry, std::size_t index) {
    ISTHMUS_EXPECTS(entry.load().record() == nullptr);
    entry.set(first + index);
  });
}

void PageMap::remove(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](MapEntry& entry, std::size_t) { entry.set(nullptr); });
}

void PageMap::set_slab(const void* begin, std::size_t count, Slab& owner,
                       unsigned size_class) noexcept {
  visit(begin, count, [&](MapEntry& entry, std::size_t) {
    ISTHMUS_EXPECTS(entry.load().record() != nullptr);
    entry.set_slab(owner, size_class);
  });
}

void PageMap::clear_slab(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](MapEntry& entry, std::size_t) { entry.set(entry.load().record()); });
}

void PageMap::note_record(const void* pointer, FreeRecorded function) noexcept {
  if (auto* page = find(pointer)) {
    free_recorded_.store(function, std::memory_order_relaxed);
    page->mark_recorded();
    clear_slab(pointer, 1);
  }
}

}  // namespace isthmus
