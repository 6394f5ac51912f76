#include "memory/registry.hpp"

#include <bit>
#include <mutex>

#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"

namespace isthmus {

// A record of 2^k to 2^(k+1) - 1 bytes spans at most three cells of 2^k bytes, the first being its
// base's.
registry::key registry::key_of(const allocation& record) noexcept {
  const auto size_class = static_cast<unsigned>(std::bit_width(record.what().nbytes)) - 1;
  return {size_class, address(record.what().base) >> size_class};
}

std::uint64_t registry::hash(const key& where) noexcept {
  constexpr std::uint64_t k_spread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio (Knuth)
  auto mixed = (where.cell * 64 + where.size_class) * k_spread;
  return (mixed ^ (mixed >> 32)) * k_spread;
}

allocation*& registry::bucket_of(shard& in, std::uint64_t hashed) noexcept {
  // The top bits chose the shard; these are others.
  return in.buckets[(hashed >> 8) & (in.buckets.size() - 1)];
}

void registry::grow(shard& crowded) {
  std::vector<allocation*> old(std::max<std::size_t>(16, crowded.buckets.size() * 2), nullptr);
  old.swap(crowded.buckets);
  for (auto* record : old) {
    while (record != nullptr) {
      auto* next = record->next_in_cell_;
      auto*& bucket = bucket_of(crowded, record->hashed_);
      record->next_in_cell_ = bucket;
      bucket = record;
      record = next;
    }
  }
}

void registry::count_up(shard& in, unsigned size_class) noexcept {
  const auto bit = std::uint64_t{1} << size_class;
  ++in.count;
  if (in.in_class[size_class]++ == 0) {
    in.classes.store(in.classes.load(std::memory_order_relaxed) | bit, std::memory_order_relaxed);
  }
  if ((ever_in_use_.load(std::memory_order_relaxed) & bit) == 0) {
    ever_in_use_.fetch_or(bit, std::memory_order_relaxed);
  }
}

void registry::count_down(shard& in, unsigned size_class) noexcept {
  const auto bit = std::uint64_t{1} << size_class;
  --in.count;
  if (--in.in_class[size_class] == 0) {
    in.classes.store(in.classes.load(std::memory_order_relaxed) & ~bit, std::memory_order_relaxed);
  }
}

void registry::add(allocation& record) {
  const auto where = key_of(record);
  record.hashed_ = hash(where);
  auto& mine = shard_of(record.hashed_);
  const std::lock_guard hold{mine.lock};
  if (mine.count >= mine.buckets.size()) {
    grow(mine);
  }
  auto*& bucket = bucket_of(mine, record.hashed_);
  record.next_in_cell_ = bucket;
  bucket = &record;
  count_up(mine, where.size_class);
}

void registry::take_out(shard& in, allocation& record) noexcept {
  auto** link = &bucket_of(in, record.hashed_);
  while (*link != &record) {
    link = &(*link)->next_in_cell_;
  }
  *link = record.next_in_cell_;
  count_down(in, key_of(record).size_class);
}

void registry::remove(allocation& record) noexcept {
  remove_if(record, [] { return true; });
}

template <class Visit>
bool registry::visit_holders(const void* pointer, Visit&& visit) noexcept {
  auto left = ever_in_use_.load(std::memory_order_relaxed);
  for (; left != 0; left &= left - 1) {
    const auto size_class = static_cast<unsigned>(std::countr_zero(left));
    const auto cell = address(pointer) >> size_class;
    for (std::uintptr_t back = 0; back <= 2 && back <= cell; ++back) {
      const auto hashed = hash({size_class, cell - back});
      auto& mine = shard_of(hashed);
      if ((mine.classes.load(std::memory_order_relaxed) >> size_class & 1) == 0) {
        continue;
      }
      const std::lock_guard hold{mine.lock};
      auto* record = mine.buckets.empty() ? nullptr : bucket_of(mine, hashed);
      for (; record != nullptr; record = record->next_in_cell_) {
        if (record->contains(pointer) && visit(*record)) {
          return true;
        }
      }
    }
  }
  return false;
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
  return first_holder(pointer, [](const allocation& record) { return !record.within_; });
}

ref<allocation> registry::find(const void* pointer, const memory_resource& from) noexcept {
  return first_holder(pointer, [&](const allocation& record) { return record.came_from(from); });
}

bool registry::is_dying(const void* pointer) noexcept {
  return visit_holders(
      pointer, [](allocation& record) { return !record.within_ && record.references() == 0; });
}

ref<allocation> registry::find_block(const void* pointer) noexcept {
  return first_holder(pointer, [](const allocation& record) { return record.is_block_; });
}

bool registry::is_dying_block(const void* pointer) noexcept {
  return visit_holders(
      pointer, [](allocation& record) { return record.is_block_ && record.references() == 0; });
}

registry& process_registry() noexcept {
  static never_destroyed<registry> only;
  return *only;
}

}  // namespace isthmus
