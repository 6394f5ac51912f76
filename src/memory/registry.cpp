#include "memory/registry.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"

namespace isthmus {

// While it is there the shard's version is odd: what is read of its entries may be half done. Pre:
// under the shard's lock.
class registry::change {
 public:
  explicit change(shard& of) noexcept : version_{of.version} { step(); }
  change(const change&) = delete;
  ~change() { step(); }

 private:
  void step() noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  std::atomic<std::uint32_t>& version_;
};

// A record of more than 2^(k-1) and up to 2^k bytes overlaps at most two cells of 2^k bytes, the
// first being its base's.
registry::key registry::key_of(const allocation& record) noexcept {
  constexpr unsigned k_last = 63;
  const auto size_class =
      std::min(k_last, static_cast<unsigned>(std::bit_width(record.what().nbytes - 1)));
  return {size_class, address(record.what().base) >> size_class};
}

std::uint64_t registry::hash(const key& where) noexcept {
  constexpr std::uint64_t k_spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth)
  auto mixed = (where.cell * 64 + where.size_class) * k_spread;
  return (mixed ^ (mixed >> 32)) * k_spread;
}

void registry::grow(shard& crowded) {
  constexpr std::size_t k_fewest = 16;
  const auto* old = crowded.buckets.load(std::memory_order_relaxed);
  const auto count = old == nullptr ? k_fewest : (old->mask + 1) * 2;
  const auto& now = *crowded.tables.emplace_back(std::make_unique<table>(count));
  const change begun{crowded};
  for (std::size_t i = 0; old != nullptr && i <= old->mask; ++i) {
    auto* entry = old->heads[i].load(std::memory_order_relaxed);
    while (entry != nullptr) {
      auto* const next = entry->next.load(std::memory_order_relaxed);
      auto& bucket = now.bucket(entry->record->hashed_);
      entry->next.store(bucket.load(std::memory_order_relaxed), std::memory_order_release);
      bucket.store(entry, std::memory_order_release);
      entry = next;
    }
  }
  crowded.buckets.store(&now, std::memory_order_release);
}

void registry::make_entries(shard& in) {
  constexpr std::size_t k_many = 32;
  auto* const made = in.entries.emplace_back(std::make_unique<registry_entry[]>(k_many)).get();
  for (auto* each = made; each != made + k_many; ++each) {
    each->next.store(std::exchange(in.spare, each), std::memory_order_relaxed);
  }
}

void registry::add(allocation& record) {
  const auto where = key_of(record);
  record.hashed_ = hash(where);
  hints_.mark(record.what().base, record.what().nbytes, where.size_class);
  auto& mine = shard_of(record.hashed_);
  const std::lock_guard hold{mine.lock};
  if (mine.spare == nullptr) {
    make_entries(mine);
  }
  if (mine.tables.empty() || mine.count > mine.tables.back()->mask) {
    grow(mine);
  }
  auto& bucket = mine.tables.back()->bucket(record.hashed_);
  const change begun{mine};
  auto& made = *mine.spare;
  mine.spare = made.next.load(std::memory_order_relaxed);
  made.set(record);
  made.next.store(bucket.load(std::memory_order_relaxed), std::memory_order_release);
  bucket.store(&made, std::memory_order_release);
  record.entry_ = &made;
  ++mine.count;
}

void registry::take_out(shard& in, allocation& record) noexcept {
  auto* const entry = record.entry_;
  auto* link = &in.tables.back()->bucket(record.hashed_);
  for (auto* at = link->load(std::memory_order_relaxed); at != entry;
       at = link->load(std::memory_order_relaxed)) {
    link = &at->next;
  }
  const change begun{in};
  link->store(entry->next.load(std::memory_order_relaxed), std::memory_order_release);
  entry->next.store(std::exchange(in.spare, entry), std::memory_order_release);
  --in.count;
}

void registry::remove(allocation& record) noexcept {
  remove_if(record, [] { return true; });
}

void registry::mark_dying(allocation& record) noexcept {
  auto& extent = record.entry_->extent;
  extent.store(extent.load(std::memory_order_relaxed) | registry_entry::k_is_dying,
               std::memory_order_release);
}

template <class Visit>
bool registry::visit_places(const void* pointer, Visit&& visit) noexcept {
  for (auto left = hints_.about(pointer); left != 0; left &= left - 1) {
    const auto size_class = static_cast<unsigned>(std::countr_zero(left));
    const auto cell = address(pointer) >> size_class;
    if (visit(hash({size_class, cell})) || (cell != 0 && visit(hash({size_class, cell - 1})))) {
      return true;
    }
  }
  return false;
}

// Stops where the version is another: an entry may have gone elsewhere, and the way with it.
const registry_entry* registry::walk(const shard& in, std::uint64_t hashed, const void* pointer,
                                     std::uint32_t version) noexcept {
  const auto* const buckets = in.buckets.load(std::memory_order_acquire);
  if (buckets == nullptr) {
    return nullptr;
  }
  const auto* entry = buckets->bucket(hashed).load(std::memory_order_acquire);
  while (entry != nullptr && !entry->holds(pointer) &&
         in.version.load(std::memory_order_relaxed) == version) {
    entry = entry->next.load(std::memory_order_acquire);
  }
  return entry;
}

bool registry::read(shard& in, std::uint64_t hashed, const void* pointer,
                    known_memory& out) noexcept {
  const auto read_at = [&](std::uint32_t version) {
    const auto* const found = walk(in, hashed, pointer, version);
    if (found != nullptr) {
      out = found->tell();
    }
    return found != nullptr;
  };
  constexpr int k_most_tries = 64;
  for (int tries = 0; tries < k_most_tries; ++tries) {
    const auto version = in.version.load(std::memory_order_acquire);
    const bool found = read_at(version);
    if (version % 2 == 0 && in.version.load(std::memory_order_relaxed) == version) {
      return found;
    }
  }
  const std::lock_guard hold{in.lock};
  return read_at(in.version.load(std::memory_order_relaxed));
}

std::optional<known_memory> registry::look(const void* pointer) noexcept {
  std::optional<known_memory> found;
  known_memory seen;
  if (visit_places(pointer, [&](std::uint64_t hashed) {
        return read(shard_of(hashed), hashed, pointer, seen);
      })) {
    found = seen;
  }
  return found;
}

template <class Visit>
bool registry::visit_holders(const void* pointer, Visit&& visit) noexcept {
  return visit_places(pointer, [&](std::uint64_t hashed) {
    auto& mine = shard_of(hashed);
    const auto* const buckets = mine.buckets.load(std::memory_order_acquire);
    if (buckets == nullptr || buckets->bucket(hashed).load(std::memory_order_acquire) == nullptr) {
      return false;
    }
    const std::lock_guard hold{mine.lock};
    auto* entry = mine.tables.back()->bucket(hashed).load(std::memory_order_relaxed);
    for (; entry != nullptr; entry = entry->next.load(std::memory_order_relaxed)) {
      if (entry->record->contains(pointer) && visit(*entry->record)) {
        return true;
      }
    }
    return false;
  });
}

template <class Fits>
ref<allocation> registry::first_holder(const void* pointer, Fits&& fits) noexcept {
  ref<allocation> found;
  visit_holders(pointer, [&](allocation& record) {
    if (!fits(record) || !record.try_retain()) {
      return false;
    }
    found = ref<allocation>::adopt(&record);
    return true;
  });
  return found;
}

ref<allocation> registry::find(const void* pointer) noexcept {
  return first_holder(pointer, [](const allocation& record) { return !record.lies_within(); });
}

ref<allocation> registry::find(const void* pointer, const memory_resource& from) noexcept {
  return first_holder(pointer, [&](const allocation& record) { return record.came_from(from); });
}

bool registry::is_dying(const void* pointer) noexcept {
  return visit_holders(pointer, [](allocation& record) {
    return !record.lies_within() && record.references() == 0;
  });
}

registry& process_registry() noexcept {
  static never_destroyed<registry> only;
  return *only;
}

}  // namespace isthmus
