// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/note_table.hpp"

#include <bit>
#include <new>

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

std::string describe_blocks(std::size_t nbytes, std::size_t count) {
  return fmt::format("{} in {} block{}", describe_bytes(nbytes), count, count == 1 ? "" : "s");
}

NoteTable::NoteTable() {
  auto* first = static_cast<Root*>(sparse_pages(sum_of(&root_length, k_sizes) * sizeof(Root)));
  all_roots_ = first;
  for (unsigned size = 0; size < k_sizes; ++size) {
    roots_.at(size) = first;
    first += root_length(size);
  }
}

NoteTable::~NoteTable() {
  for (auto* each : leaves_) {
    os::unmap_pages(each, sizeof(Leaf));
  }
  os::unmap_pages(all_roots_, sum_of(&root_length, k_sizes) * sizeof(Root));
}

// Fresh pages are zero, which is an empty leaf.
NoteTable::Leaf* NoteTable::add_leaf(Root& at) {
  const std::lock_guard hold{lock_};
  auto* in = at.load(std::memory_order_relaxed);
  if (in == nullptr) {
    leaves_.reserve(leaves_.size() + 1);
    in = static_cast<Leaf*>(sparse_pages(sizeof(Leaf)));
    leaves_.push_back(in);
    at.store(in, std::memory_order_release);
  }
  return in;
}

// For a block that is freed with another size than it was allocated with.
bool NoteTable::take_elsewhere(const void* pointer, BlockNote& out) noexcept {
  for (unsigned size = 0; size < k_sizes; ++size) {
    auto* at = cell_in(size, pointer);
    if (at != nullptr && at->try_take(pointer, out)) {
      return true;
    }
  }
  auto noted = aside_.take(pointer);
  if (noted.empty()) {
    return false;
  }
  out = noted.mapped();
  return true;
}

// The note's cell still exists. A block without a cell had a note in the map, and needs memory for
// another.
void NoteTable::put_back(const BlockNote& note) noexcept try {
  BlockNote other;
  if (!find(note.pointer, other)) {
    put(note);
  }
} catch (const std::bad_alloc&) {
  // The block is not known any more.
}

bool NoteTable::find(const void* pointer, BlockNote& out) noexcept {
  for (unsigned size = 0; size < k_sizes; ++size) {
    const auto* at = cell_in(size, pointer);
    if (at != nullptr && at->try_read(out) && out.pointer == pointer) {
      return true;
    }
  }
  return aside_.copy(pointer, out);
}

void NoteTable::collect(const Leaf& in, std::vector<BlockNote>& out) {
  for (std::size_t word = 0; word < k_words; ++word) {
    for (auto left = in.used.at(word).load(std::memory_order_acquire); left != 0;
         left &= left - 1) {
      const auto page = word * 64 + static_cast<unsigned>(std::countr_zero(left));
      for (auto each = page << k_page_cells_bits; each < (page + 1) << k_page_cells_bits; ++each) {
        BlockNote read;
        if (in.cells.at(each).try_read(read)) {
          out.push_back(read);
        }
      }
    }
  }
}

std::vector<BlockNote> NoteTable::all() {
  std::vector<Leaf*> leaves;
  {
    const std::lock_guard hold{lock_};
    leaves = leaves_;
  }
  std::vector<BlockNote> found;
  for (const auto* each : leaves) {
    collect(*each, found);
  }
  aside_.visit([&](const BlockNote& each) { found.push_back(each); });
  return found;
}

}  // namespace isthmus
