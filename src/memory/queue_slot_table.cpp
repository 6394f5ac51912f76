// SPDX-License-Identifier: Apache-2.0
#include "memory/queue_slot_table.hpp"

#include <new>

namespace isthmus {

queue_slot_table::~queue_slot_table() {
  for (auto each = chunks_.begin() + 1; each != chunks_.end(); ++each) {
    delete each->load(std::memory_order_relaxed);
  }
}

// A chain that changes during a walk may form a cycle, so a walk visits at most as many entries as
// exist.
queue_slot_table::index queue_slot_table::find(std::uint64_t serial) const noexcept {
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

queue_slot_table::index queue_slot_table::add() noexcept {
  const auto made = used_.load(std::memory_order_relaxed);
  if (made == k_max) {
    return k_none;
  }
  if (auto& in = chunks_[made / k_chunk]; in.load(std::memory_order_relaxed) == nullptr) {
    auto* more = new (std::nothrow) chunk;
    if (more == nullptr) {
      return k_none;
    }
    in.store(more, std::memory_order_release);
  }
  used_.store(made + 1, std::memory_order_release);
  return made;
}

void queue_slot_table::assign(index slot, std::uint64_t serial) noexcept {
  auto& in = (*this)[slot];
  if (in.serial.load(std::memory_order_relaxed) != 0) {
    unlink(slot);
  }
  auto& chain = chain_of(serial);
  in.serial.store(serial, std::memory_order_release);
  in.next.store(chain.load(std::memory_order_relaxed), std::memory_order_release);
  chain.store(slot, std::memory_order_release);
}

void queue_slot_table::unlink(index slot) noexcept {
  const auto& in = (*this)[slot];
  auto* link = &chain_of(in.serial.load(std::memory_order_relaxed));
  while (link->load(std::memory_order_relaxed) != slot) {
    link = &(*this)[link->load(std::memory_order_relaxed)].next;
  }
  link->store(in.next.load(std::memory_order_relaxed), std::memory_order_release);
}

}  // namespace isthmus
