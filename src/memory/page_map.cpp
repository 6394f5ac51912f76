// SPDX-License-Identifier: Apache-2.0
#include "memory/page_map.hpp"

#include "memory/grain.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

constinit page_map process_page_map;
constinit const map_entry page_map::k_nothing;

// Leaves are never freed: another region in the same GiB is likely, and a reader may be using one.
page_map::leaf* page_map::leaf_for(std::size_t number) {
  auto& cell = root_[number >> k_leaf_bits];
  auto* found = cell.load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  auto pages = os::map_sparse_pages(sizeof(leaf));
  if (!pages) {
    return nullptr;
  }
  auto* made = static_cast<leaf*>(*pages);  // zeroed memory is empty entries
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
                "the driver returned memory at {}: a pool can use memory below 2**{} only", begin,
                k_address_bits);
  }
  for (auto at = from; at < from + count; at = (at | (k_leaf_grains - 1)) + 1) {
    if (leaf_for(at) == nullptr) {
      return error::no_memory();
    }
  }
  return {};
}

template <class Visit>
void page_map::visit(const void* begin, std::size_t count, Visit&& visit) noexcept {
  const auto from = address(begin) >> k_grain_bits;
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = from + index;
    auto& in = *root_[number >> k_leaf_bits].load(std::memory_order_relaxed);
    visit(in[number & (k_leaf_grains - 1)], index);
  }
}

void page_map::enter(const void* begin, std::size_t count, grain* first) noexcept {
  visit(begin, count, [&](map_entry& in, std::size_t index) { in.set(first + index); });
}

void page_map::remove(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](map_entry& in, std::size_t) { in.set(nullptr); });
}

void page_map::set_slab(const void* begin, std::size_t count, slab& owner,
                        unsigned size_class) noexcept {
  visit(begin, count, [&](map_entry& in, std::size_t) { in.set_slab(owner, size_class); });
}

void page_map::forget_slab(const void* begin, std::size_t count) noexcept {
  visit(begin, count, [](map_entry& in, std::size_t) { in.set(in.look().record()); });
}

void page_map::note_record(const void* pointer) noexcept {
  if (auto* in = find(pointer)) {
    in->mark_recorded();
    forget_slab(pointer, 1);
  }
}

}  // namespace isthmus
