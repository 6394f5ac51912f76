// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/queue_entry_table.hpp"

#include <new>

#include "core/expects.hpp"

namespace isthmus {

QueueEntryTable::~QueueEntryTable() {
  for (auto each = chunks_.begin() + 1; each != chunks_.end(); ++each) {
    delete each->load(std::memory_order_relaxed);
  }
}

// A chain that changes during a walk may form a cycle, so a walk visits at most as many entries as
// exist.
QueueEntryTable::Index QueueEntryTable::find(std::uint64_t serial) const noexcept {
  auto at = chains_[serial % k_chains].load(std::memory_order_acquire);
  for (auto remaining = used(); at != k_none && remaining != 0; --remaining) {
    const auto& entry = (*this)[at];
    if (entry.serial.load(std::memory_order_acquire) == serial) {
      return at;
    }
    at = entry.next.load(std::memory_order_acquire);
  }
  return k_none;
}

QueueEntryTable::Index QueueEntryTable::add() noexcept {
  const auto index = used_.load(std::memory_order_relaxed);
  if (index == k_max) {
    return k_none;
  }
  if (auto& chunk = chunks_[index / k_chunk]; chunk.load(std::memory_order_relaxed) == nullptr) {
    auto* new_chunk = new (std::nothrow) Chunk;
    if (new_chunk == nullptr) {
      return k_none;
    }
    chunk.store(new_chunk, std::memory_order_release);
  }
  used_.store(index + 1, std::memory_order_release);
  return index;
}

void QueueEntryTable::assign(Index index, std::uint64_t serial) noexcept {
  ISTHMUS_EXPECTS(find(serial) == k_none, serial);
  auto& entry = (*this)[index];
  if (entry.serial.load(std::memory_order_relaxed) != 0) {
    unlink(index);
  }
  auto& chain = chain_of(serial);
  entry.serial.store(serial, std::memory_order_release);
  entry.next.store(chain.load(std::memory_order_relaxed), std::memory_order_release);
  chain.store(index, std::memory_order_release);
}

void QueueEntryTable::unlink(Index index) noexcept {
  const auto& entry = (*this)[index];
  auto* link = &chain_of(entry.serial.load(std::memory_order_relaxed));
  while (link->load(std::memory_order_relaxed) != index) {
    link = &(*this)[link->load(std::memory_order_relaxed)].next;
  }
  link->store(entry.next.load(std::memory_order_relaxed), std::memory_order_release);
}

}  // namespace isthmus
