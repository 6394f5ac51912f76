// SPDX-License-Identifier: Apache-2.0
#include "memory/page_map.hpp"

#include "memory/pool_page.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit PageMap process_page_map;
constinit const MapEntry PageMap::k_nothing;

// Leaves are never freed: another region in the same GiB is likely, and a reader may be using one.
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
  auto* made = static_cast<Leaf*>(*pages);  // zeroed memory is empty entries
  if (cell.compare_exchange_strong(found, made, std::memory_order_acq_rel)) {
    return made;
  }
  os::unmap_pages(made, sizeof(Leaf));
  return found;
}

Result<void> PageMap::prepare(const void* begin, std::size_t count) {
  const auto from = address(begin) >> k_grain_bits;
  if ((from + count - 1) >> (k_leaf_bits + k_root_bits) != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the driver returned memory at {}: a pool can use memory below 2**{} only", begin,
                k_address_bits);
  }
  for (auto at = from; at < from + count; at = (at | (k_leaf_grains - 1)) + 1) {
    if (leaf_for(at) == nullptr) {
      return Error::no_memory();
    }
  }
  return {};
}

template <class Visit>
void PageMap::visit(const void* begin, std::size_t count, Visit&& visit) noexcept {
  const auto from = address(begin) >> k_grain_bits;
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = from + index;
    auto& in = *root_[number >> k_leaf_bits].load(std::memory_order_relaxed);
    visit(in[number & (k_leaf_grains - 1)], index);
  }
}

void PageMap::enter(const void* begin, std::size_t count, PoolPage* first) noexcept {
  visit(begin, count, [&](MapEntry& in, std::size_t index) { in.set(first + index); });
}

void PageMap::remove(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](MapEntry& in, std::size_t) { in.set(nullptr); });
}

void PageMap::set_slab(const void* begin, std::size_t count, Slab& owner,
                       unsigned size_class) noexcept {
  visit(begin, count, [&](MapEntry& in, std::size_t) { in.set_slab(owner, size_class); });
}

void PageMap::forget_slab(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](MapEntry& in, std::size_t) { in.set(in.look().record()); });
}

void PageMap::note_record(const void* pointer) noexcept {
  if (auto* in = find(pointer)) {
    in->mark_recorded();
    forget_slab(pointer, 1);
  }
}

}  // namespace isthmus
