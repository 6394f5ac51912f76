// SPDX-License-Identifier: Apache-2.0
#include "memory/central_lists.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "memory/page_map.hpp"

namespace isthmus {

void CentralLists::OneClass::lay_out(const CentralShard::Layout& its) {
  how = its;
  shards.front().store(new CentralShard{how, 0}, std::memory_order_release);
}

CentralLists::OneClass::~OneClass() {
  for (auto& each : shards) {
    delete each.load(std::memory_order_relaxed);
  }
}

CentralShard& CentralLists::OneClass::open(unsigned shard) noexcept {
  if (find(shard) == nullptr) {
    std::unique_ptr<CentralShard> made{new (std::nothrow) CentralShard{how, shard}};
    CentralShard* none = nullptr;
    if (shards[shard].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
      static_cast<void>(made.release());
    }
  }
  return at(shard);
}

// Returns `whole` with the slabs that now have all their blocks in front.
Slab* CentralLists::OneClass::put_into_slabs(std::span<void* const> blocks, Ticket freed,
                                             Slab* whole) const noexcept {
  while (!blocks.empty()) {
    auto& home = at(process_page_map.at(blocks.front()).last_slab().shard);
    blocks = blocks.subspan(home.give(blocks, freed, whole));
  }
  return whole;
}

std::size_t CentralLists::take_own(unsigned size_class, std::span<void*> out, QueueSlots::Slot slot,
                                   unsigned shard) noexcept {
  const auto taken = classes_[size_class].open(shard).take(out, slot);
  count(size_class, -static_cast<std::int64_t>(taken), shard);
  return taken;
}

std::size_t CentralLists::take_others(unsigned size_class, std::span<void*> out,
                                      QueueSlots::Slot slot, unsigned shard) noexcept {
  std::size_t taken = 0;
  for (unsigned step = 1; step < k_shards && taken == 0; ++step) {
    if (auto* const other = classes_[size_class].find((shard + step) % k_shards)) {
      taken = other->take(out, slot);
    }
  }
  count(size_class, -static_cast<std::int64_t>(taken), shard);
  return taken;
}

bool CentralLists::has(unsigned size_class, QueueSlots::Slot slot) const noexcept {
  const auto& in = classes_.at(size_class).shards;
  return std::any_of(in.begin(), in.end(), [slot](const auto& each) {
    auto* const found = each.load(std::memory_order_acquire);
    return found != nullptr && found->has(slot);
  });
}

std::size_t CentralLists::add(unsigned size_class, Slab& made, std::span<void*> out,
                              unsigned shard) noexcept {
  auto& to = classes_[size_class];
  to.slabs.fetch_add(1, std::memory_order_relaxed);
  // Read first: another thread may take the slab apart once it is added.
  const auto blocks = made.blocks;
  const auto taken = to.open(shard).add(made, out);
  count(size_class, static_cast<std::int64_t>(blocks - taken), shard);
  return taken;
}

Slab* CentralLists::give(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                         unsigned shard) noexcept {
  auto& to = classes_[size_class];
  count(size_class, static_cast<std::int64_t>(blocks.size()), shard);
  if (to.at(shard).keep_batch(blocks, freed)) {
    return nullptr;
  }
  return release_now(size_class, to.put_into_slabs(blocks, freed, nullptr), shard);
}

Slab* CentralLists::flush(unsigned size_class) noexcept {
  auto& of = classes_[size_class];
  Slab* whole = nullptr;
  for (unsigned shard = 0; shard < k_shards; ++shard) {
    std::array<void*, CentralShard::k_most_in_batch> batch;
    Ticket freed;
    auto* const from = of.find(shard);
    const auto most = from != nullptr ? CentralShard::k_most_batches : 0;
    // Bounded, as other threads may add batches meanwhile.
    for (std::size_t turn = 0; turn < most; ++turn) {
      const auto count = from->take_batch(batch, freed);
      whole = of.put_into_slabs({batch.data(), count}, freed, whole);
    }
  }
  for (unsigned shard = 0; shard < k_shards; ++shard) {
    if (auto* const each = of.find(shard)) {
      each->take_untouched(whole);
    }
  }
  return release_now(size_class, whole, 0);
}

// Subtracts slabs that have left the lists from the counters.
Slab* CentralLists::release_now(unsigned size_class, Slab* whole, unsigned shard) noexcept {
  for (const auto* each = whole; each != nullptr; each = each->after) {
    classes_[size_class].slabs.fetch_sub(1, std::memory_order_relaxed);
    count(size_class, -std::int64_t{each->blocks}, shard);
  }
  return whole;
}

std::size_t CentralLists::free_bytes() const noexcept {
  std::int64_t all = 0;
  for (const auto& each : accounts_) {
    all += each.bytes.load(std::memory_order_relaxed);
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(all, 0));
}

Result<void> CentralLists::verify() noexcept {
  for (unsigned each = 0; each < count_; ++each) {
    for (unsigned shard = 0; shard < k_shards; ++shard) {
      if (auto* const found = classes_[each].find(shard)) {
        ISTHMUS_TRY(found->verify());
      }
    }
  }
  return {};
}

}  // namespace isthmus
