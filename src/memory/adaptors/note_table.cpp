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

note_table::note_table() {
  auto* first = static_cast<root*>(sparse_pages(sum_of(&root_length, k_sizes) * sizeof(root)));
  all_roots_ = first;
  for (unsigned size = 0; size < k_sizes; ++size) {
    roots_.at(size) = first;
    first += root_length(size);
  }
}

note_table::~note_table() {
  for (auto* each : leaves_) {
    os::unmap_pages(each, sizeof(leaf));
  }
  os::unmap_pages(all_roots_, sum_of(&root_length, k_sizes) * sizeof(root));
}

// Fresh pages are zero, which is an empty leaf.
note_table::leaf* note_table::add_leaf(root& at) {
  const std::lock_guard hold{lock_};
  auto* in = at.load(std::memory_order_relaxed);
  if (in == nullptr) {
    leaves_.reserve(leaves_.size() + 1);
    in = static_cast<leaf*>(sparse_pages(sizeof(leaf)));
    leaves_.push_back(in);
    at.store(in, std::memory_order_release);
  }
  return in;
}

// For a block that is freed with another size than it was allocated with.
bool note_table::take_elsewhere(const void* pointer, block_note& out) noexcept {
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
void note_table::put_back(const block_note& of) noexcept try {
  block_note other;
  if (!find(of.pointer, other)) {
    put(of);
  }
} catch (const std::bad_alloc&) {
  // The block is not known any more.
}

bool note_table::find(const void* pointer, block_note& out) noexcept {
  for (unsigned size = 0; size < k_sizes; ++size) {
    const auto* at = cell_in(size, pointer);
    if (at != nullptr && at->try_read(out) && out.pointer == pointer) {
      return true;
    }
  }
  return aside_.copy(pointer, out);
}

void note_table::collect(const leaf& in, std::vector<block_note>& out) {
  for (std::size_t word = 0; word < k_words; ++word) {
    for (auto left = in.used.at(word).load(std::memory_order_acquire); left != 0;
         left &= left - 1) {
      const auto page = word * 64 + static_cast<unsigned>(std::countr_zero(left));
      for (auto each = page << k_page_cells_bits; each < (page + 1) << k_page_cells_bits; ++each) {
        block_note read;
        if (in.cells.at(each).try_read(read)) {
          out.push_back(read);
        }
      }
    }
  }
}

std::vector<block_note> note_table::all() {
  std::vector<leaf*> leaves;
  {
    const std::lock_guard hold{lock_};
    leaves = leaves_;
  }
  std::vector<block_note> found;
  for (const auto* each : leaves) {
    collect(*each, found);
  }
  aside_.visit([&](const block_note& each) { found.push_back(each); });
  return found;
}

}  // namespace isthmus
