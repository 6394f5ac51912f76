// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/block_table.hpp"

#include <bit>
#include <new>

#include "core/lock_guard.hpp"
#include "core/status.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

void* sparse_pages(std::size_t nbytes) {
  auto pages = os::map_sparse_pages(nbytes);
  if (!pages) {
    throw std::bad_alloc{};
  }
  return *pages;
}

constexpr std::size_t sum_of(const auto length, unsigned sizes) noexcept {
  std::size_t sum = 0;
  for (unsigned size = 0; size < sizes; ++size) {
    sum += length(size);
  }
  return sum;
}

}  // namespace

BlockTable::BlockTable() {
  auto* first = static_cast<Root*>(sparse_pages(sum_of(&root_length, k_sizes) * sizeof(Root)));
  all_roots_ = first;
  for (unsigned size = 0; size < k_sizes; ++size) {
    roots_.at(size) = first;
    first += root_length(size);
  }
}

BlockTable::~BlockTable() {
  for (auto* each : leaves_) {
    os::unmap_pages(each, sizeof(Leaf));
  }
  os::unmap_pages(all_roots_, sum_of(&root_length, k_sizes) * sizeof(Root));
}

// New pages are zeroed, which represents an empty leaf.
BlockTable::Leaf* BlockTable::add_leaf(Root& root) {
  const LockGuard hold{lock_};
  auto* leaf = root.load(std::memory_order_relaxed);
  if (leaf == nullptr) {
    leaves_.reserve(leaves_.size() + 1);
    leaf = static_cast<Leaf*>(sparse_pages(sizeof(Leaf)));
    leaves_.push_back(leaf);
    root.store(leaf, std::memory_order_release);
  }
  return leaf;
}

// Searches all cell sizes and the map. Needed for a small block without a cell, and for a block
// that is freed with a size other than the allocated one.
bool BlockTable::extract_slow(const void* pointer, BlockRecord& out) noexcept {
  for (unsigned size = 0; size < k_sizes; ++size) {
    auto* cell = cell_in(size, pointer);
    if (cell != nullptr && cell->try_take(pointer, out)) {
      return true;
    }
  }
  auto entry = overflow_.extract(pointer);
  if (entry.empty()) {
    return false;
  }
  out = entry.mapped();
  return true;
}

// Needs memory only for a block without a cell, whose record is in the map: cells are never
// removed.
void BlockTable::restore(const BlockRecord& record) noexcept try {
  BlockRecord other;
  if (!find(record.pointer, other)) {
    insert(record);
  }
} catch (const std::bad_alloc&) {
  // The block remains without a record.
}

bool BlockTable::find(const void* pointer, BlockRecord& out) noexcept {
  for (unsigned size = 0; size < k_sizes; ++size) {
    const auto* cell = cell_in(size, pointer);
    if (cell != nullptr && cell->try_read(out) && out.pointer == pointer) {
      return true;
    }
  }
  return overflow_.copy(pointer, out);
}

void BlockTable::collect(const Leaf& leaf, std::vector<BlockRecord>& out) {
  for (std::size_t word = 0; word < k_words; ++word) {
    for (auto bits = leaf.used_pages.at(word).load(std::memory_order_acquire); bits != 0;
         bits &= bits - 1) {
      const auto page = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
      for (auto index = page << k_page_cells_bits; index < (page + 1) << k_page_cells_bits;
           ++index) {
        BlockRecord read;
        if (leaf.cells.at(index).try_read(read)) {
          out.push_back(read);
        }
      }
    }
  }
}

std::vector<BlockRecord> BlockTable::all() {
  std::vector<Leaf*> leaves;
  {
    const LockGuard hold{lock_};
    leaves = leaves_;
  }
  std::vector<BlockRecord> records;
  for (const auto* each : leaves) {
    collect(*each, records);
  }
  overflow_.visit([&](const BlockRecord& each) { records.push_back(each); });
  return records;
}

}  // namespace isthmus
