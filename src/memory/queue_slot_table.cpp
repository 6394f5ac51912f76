// SPDX-License-Identifier: Apache-2.0
#include "memory/queue_slot_table.hpp"

#include <new>

namespace isthmus {

QueueSlotTable::~QueueSlotTable() {
  for (auto each = chunks_.begin() + 1; each != chunks_.end(); ++each) {
    delete each->load(std::memory_order_relaxed);
  }
}

// A chain that changes during a walk may form a cycle, so a walk visits at most as many entries as
// exist.
QueueSlotTable::Index QueueSlotTable::find(std::uint64_t serial) const noexcept {
  auto at = chains_[serial % k_chains].load(std::memory_order_acquire);
  for (auto left = used(); at != k_none && left != 0; --left) {
    const auto& in = (*this)[at];
    if (in.serial.load(std::memory_order_acquire) == serial) {
      return at;
    }
    at = in.next.load(std::memory_order_acquire);
  }
  return k_none;
}

QueueSlotTable::Index QueueSlotTable::add() noexcept {
  const auto made = used_.load(std::memory_order_relaxed);
  if (made == k_max) {
    return k_none;
  }
  if (auto& in = chunks_[made / k_chunk]; in.load(std::memory_order_relaxed) == nullptr) {
    auto* more = new (std::nothrow) Chunk;
    if (more == nullptr) {
      return k_none;
    }
    in.store(more, std::memory_order_release);
  }
  used_.store(made + 1, std::memory_order_release);
  return made;
}

void QueueSlotTable::assign(Index slot, std::uint64_t serial) noexcept {
  auto& in = (*this)[slot];
  if (in.serial.load(std::memory_order_relaxed) != 0) {
    unlink(slot);
  }
  auto& chain = chain_of(serial);
  in.serial.store(serial, std::memory_order_release);
  in.next.store(chain.load(std::memory_order_relaxed), std::memory_order_release);
  chain.store(slot, std::memory_order_release);
}

void QueueSlotTable::unlink(Index slot) noexcept {
  const auto& in = (*this)[slot];
  auto* link = &chain_of(in.serial.load(std::memory_order_relaxed));
  while (link->load(std::memory_order_relaxed) != slot) {
    link = &(*this)[link->load(std::memory_order_relaxed)].next;
  }
  link->store(in.next.load(std::memory_order_relaxed), std::memory_order_release);
}

}  // namespace isthmus
