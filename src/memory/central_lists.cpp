// SPDX-License-Identifier: Apache-2.0
#include "memory/central_lists.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "memory/page_map.hpp"

namespace isthmus {

void central_lists::one_class::lay_out(const central_shard::layout& its) {
  how = its;
  shards.front().store(new central_shard{how, 0}, std::memory_order_release);
}

central_lists::one_class::~one_class() {
  for (auto& each : shards) {
    delete each.load(std::memory_order_relaxed);
  }
}

central_shard& central_lists::one_class::open(unsigned shard) noexcept {
  if (find(shard) == nullptr) {
    std::unique_ptr<central_shard> made{new (std::nothrow) central_shard{how, shard}};
    central_shard* none = nullptr;
    if (shards[shard].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
      static_cast<void>(made.release());
    }
  }
  return at(shard);
}

// Returns `whole` with the slabs that now have all their blocks in front.
slab* central_lists::one_class::put_into_slabs(std::span<void* const> blocks, ticket freed,
                                               slab* whole) const noexcept {
  while (!blocks.empty()) {
    auto& home = at(process_page_map.at(blocks.front()).last_slab().shard);
    blocks = blocks.subspan(home.give(blocks, freed, whole));
  }
  return whole;
}

std::size_t central_lists::take_own(unsigned size_class, std::span<void*> out,
                                    queue_slots::slot whom, unsigned shard) noexcept {
  const auto taken = classes_[size_class].open(shard).take(out, whom);
  count(size_class, -static_cast<std::int64_t>(taken), shard);
  return taken;
}

std::size_t central_lists::take_others(unsigned size_class, std::span<void*> out,
                                       queue_slots::slot whom, unsigned shard) noexcept {
  std::size_t taken = 0;
  for (unsigned step = 1; step < k_shards && taken == 0; ++step) {
    if (auto* const other = classes_[size_class].find((shard + step) % k_shards)) {
      taken = other->take(out, whom);
    }
  }
  count(size_class, -static_cast<std::int64_t>(taken), shard);
  return taken;
}

bool central_lists::has(unsigned size_class, queue_slots::slot whom) const noexcept {
  const auto& in = classes_.at(size_class).shards;
  return std::any_of(in.begin(), in.end(), [whom](const auto& each) {
    auto* const found = each.load(std::memory_order_acquire);
    return found != nullptr && found->has(whom);
  });
}

std::size_t central_lists::add(unsigned size_class, slab& made, std::span<void*> out,
                               unsigned shard) noexcept {
  auto& to = classes_[size_class];
  to.slabs.fetch_add(1, std::memory_order_relaxed);
  // Read first: another thread may take the slab apart once it is added.
  const auto blocks = made.blocks;
  const auto taken = to.open(shard).add(made, out);
  count(size_class, static_cast<std::int64_t>(blocks - taken), shard);
  return taken;
}

slab* central_lists::give(unsigned size_class, std::span<void* const> blocks, ticket freed,
                          unsigned shard) noexcept {
  auto& to = classes_[size_class];
  count(size_class, static_cast<std::int64_t>(blocks.size()), shard);
  if (to.at(shard).keep_batch(blocks, freed)) {
    return nullptr;
  }
  return let_go(size_class, to.put_into_slabs(blocks, freed, nullptr), shard);
}

slab* central_lists::flush(unsigned size_class) noexcept {
  auto& of = classes_[size_class];
  slab* whole = nullptr;
  for (unsigned shard = 0; shard < k_shards; ++shard) {
    std::array<void*, central_shard::k_most_in_batch> batch;
    ticket freed;
    auto* const from = of.find(shard);
    const auto most = from != nullptr ? central_shard::k_most_batches : 0;
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
  return let_go(size_class, whole, 0);
}

// Subtracts slabs that have left the lists from the counters.
slab* central_lists::let_go(unsigned size_class, slab* whole, unsigned shard) noexcept {
  for (const auto* each = whole; each != nullptr; each = each->after) {
    classes_[size_class].slabs.fetch_sub(1, std::memory_order_relaxed);
    count(size_class, -std::int64_t{each->blocks}, shard);
  }
  return whole;
}

std::size_t central_lists::free_bytes() const noexcept {
  std::int64_t all = 0;
  for (const auto& each : accounts_) {
    all += each.bytes.load(std::memory_order_relaxed);
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(all, 0));
}

result<void> central_lists::verify() noexcept {
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
