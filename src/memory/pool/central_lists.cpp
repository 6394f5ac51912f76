// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/central_lists.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "memory/pool/page_map.hpp"

namespace isthmus {

void CentralLists::ClassLists::init(const CentralShard::Layout& new_layout) {
  layout = new_layout;
  shards.front().store(new CentralShard{layout, 0}, std::memory_order_release);
}

CentralLists::ClassLists::~ClassLists() {
  for (auto& each : shards) {
    delete each.load(std::memory_order_relaxed);
  }
}

CentralShard& CentralLists::ClassLists::open(unsigned shard) noexcept {
  if (find(shard) == nullptr) {
    std::unique_ptr<CentralShard> created{new (std::nothrow) CentralShard{layout, shard}};
    CentralShard* none = nullptr;
    if (shards[shard].compare_exchange_strong(none, created.get(), std::memory_order_acq_rel)) {
      static_cast<void>(created.release());
    }
  }
  return at(shard);
}

// Prepends the slabs that now hold all their blocks to the list `empty_slabs`, and returns that
// list.
Slab* CentralLists::ClassLists::return_to_slabs(std::span<void* const> blocks, Ticket freed,
                                                Slab* empty_slabs) const noexcept {
  while (!blocks.empty()) {
    auto& owner = at(process_page_map.at(blocks.front()).last_slab().shard);
    blocks = blocks.subspan(owner.return_blocks(blocks, freed, empty_slabs));
  }
  return empty_slabs;
}

TakenBlocks CentralLists::take_own(unsigned size_class, std::span<void*> out,
                                   QueueFences::EntryIndex entry, unsigned shard) noexcept {
  const auto taken = classes_[size_class].open(shard).take(out, entry);
  count(size_class, -static_cast<std::int64_t>(taken.count), shard);
  return taken;
}

TakenBlocks CentralLists::take_other_shards(unsigned size_class, std::span<void*> out,
                                            QueueFences::EntryIndex entry,
                                            unsigned shard) noexcept {
  TakenBlocks taken;
  for (unsigned step = 1; step < k_shards && taken.count == 0; ++step) {
    if (auto* const other = classes_[size_class].find((shard + step) % k_shards)) {
      taken = other->take(out, entry);
    }
  }
  count(size_class, -static_cast<std::int64_t>(taken.count), shard);
  return taken;
}

bool CentralLists::has(unsigned size_class, QueueFences::EntryIndex entry) const noexcept {
  const auto& shards = classes_.at(size_class).shards;
  return std::any_of(shards.begin(), shards.end(), [entry](const auto& each) {
    auto* const found = each.load(std::memory_order_acquire);
    return found != nullptr && found->has(entry);
  });
}

std::size_t CentralLists::add(unsigned size_class, Slab& slab, std::span<void*> out,
                              unsigned shard) noexcept {
  auto& list = classes_[size_class];
  list.slabs.fetch_add(1, std::memory_order_relaxed);
  // Read before the slab is added, since another thread may release it after that.
  const auto blocks = slab.blocks;
  const auto taken = list.open(shard).add(slab, out);
  count(size_class, static_cast<std::int64_t>(blocks - taken), shard);
  return taken;
}

Slab* CentralLists::return_blocks(unsigned size_class, std::span<void* const> blocks, Ticket freed,
                                  unsigned shard) noexcept {
  auto& list = classes_[size_class];
  count(size_class, static_cast<std::int64_t>(blocks.size()), shard);
  if (list.at(shard).keep_batch(blocks, freed)) {
    return nullptr;
  }
  return count_removed(size_class, list.return_to_slabs(blocks, freed, nullptr), shard);
}

Slab* CentralLists::flush(unsigned size_class) noexcept {
  auto& list = classes_[size_class];
  Slab* empty_slabs = nullptr;
  for (unsigned shard = 0; shard < k_shards; ++shard) {
    std::array<void*, CentralShard::k_max_batch_blocks> batch;
    Ticket freed;
    auto* const source = list.find(shard);
    const auto max_batches = source != nullptr ? CentralShard::k_max_batches : 0;
    // The loop is bounded, since other threads may add batches meanwhile.
    for (std::size_t index = 0; index < max_batches; ++index) {
      const auto count = source->take_batch(batch, freed);
      empty_slabs = list.return_to_slabs({batch.data(), count}, freed, empty_slabs);
    }
  }
  for (unsigned shard = 0; shard < k_shards; ++shard) {
    if (auto* const central_shard = list.find(shard)) {
      central_shard->take_unused_slabs(empty_slabs);
    }
  }
  return count_removed(size_class, empty_slabs, 0);
}

// Subtracts slabs that were removed from the lists from the counters.
Slab* CentralLists::count_removed(unsigned size_class, Slab* empty_slabs, unsigned shard) noexcept {
  for (const auto* each = empty_slabs; each != nullptr; each = each->next) {
    classes_[size_class].slabs.fetch_sub(1, std::memory_order_relaxed);
    count(size_class, -std::int64_t{each->blocks}, shard);
  }
  return empty_slabs;
}

std::size_t CentralLists::free_bytes() const noexcept {
  std::int64_t all = 0;
  for (const auto& each : accounts_) {
    all += each.bytes.load(std::memory_order_relaxed);
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(all, 0));
}

Result<void> CentralLists::verify() noexcept {
  for (unsigned size_class = 0; size_class < count_; ++size_class) {
    for (unsigned shard = 0; shard < k_shards; ++shard) {
      if (auto* const found = classes_[size_class].find(shard)) {
        ISTHMUS_TRY(found->verify());
      }
    }
  }
  return {};
}

}  // namespace isthmus
