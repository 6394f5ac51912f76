// SPDX-License-Identifier: Apache-2.0
#include "memory/records/registry.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/expects.hpp"
#include "core/hash.hpp"
#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

// Marks a shard as changing: while an instance exists, the shard's version is odd, and entries that
// are read meanwhile may be inconsistent.
class Registry::Change {
 public:
  explicit Change(Shard& shard) noexcept ISTHMUS_REQUIRES(shard.lock) : version_{shard.version} {
    ISTHMUS_EXPECTS(version_.load(std::memory_order_relaxed) % 2 == 0);
    step();
  }
  Change(const Change&) = delete;
  ~Change() { step(); }

 private:
  void step() noexcept {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  std::atomic<std::uint32_t>& version_;
};

// A record of more than 2^(k-1) and up to 2^k bytes overlaps at most two cells of 2^k bytes, the
// first of which contains its base.
Registry::Key Registry::key_of(const RegisteredAllocation& record) noexcept {
  if (record.is_block()) {
    return key_of_block(record.facts().base);
  }
  constexpr unsigned k_last = 63;
  const auto size_class =
      std::min(k_last, static_cast<unsigned>(std::bit_width(record.facts().nbytes - 1)));
  return {size_class, address(record.facts().base) >> size_class};
}

Registry::Key Registry::key_of_block(const void* base) noexcept {
  return {k_no_class, address(base)};
}

std::uint64_t Registry::hash(const Key& key) noexcept {
  return hash_of(key.cell * 128 + key.size_class);
}

void Registry::grow(Shard& shard) {
  constexpr unsigned k_min_bits = 4;
  const auto old = shard.chains.load(std::memory_order_relaxed);
  const auto bits =
      old.count() == 0 ? k_min_bits : static_cast<unsigned>(std::bit_width(old.count()));
  auto& new_chains =
      shard.tables.emplace_back(std::make_unique<RegistryChain[]>(std::size_t{1} << bits));
  const Table table{new_chains.get(), bits};
  const Change change{shard};
  for (std::size_t i = 0; i < old.count(); ++i) {
    auto* entry = old[i].first();
    while (entry != nullptr) {
      auto* const next = entry->next.load(std::memory_order_relaxed);
      table.chain(entry->record->hashed_).push(*entry, entry->record->hashed_);
      entry = next;
    }
  }
  shard.chains.store(table, std::memory_order_release);
}

void Registry::make_entries(Shard& shard) {
  constexpr std::size_t k_batch = 32;
  auto* const first = shard.entries.emplace_back(std::make_unique<RegistryEntry[]>(k_batch)).get();
  for (auto* each = first; each != first + k_batch; ++each) {
    each->next.store(std::exchange(shard.spare, each), std::memory_order_relaxed);
  }
}

void Registry::add(RegisteredAllocation& record) {
  const auto key = key_of(record);
  record.hashed_ = hash(key);
  if (key.size_class != k_no_class) {
    hints_.mark(record.facts().base, record.facts().nbytes, key.size_class);
  }
  auto& shard = shard_of(record.hashed_);
  const LockGuard hold{shard.lock};
  if (shard.spare == nullptr) {
    make_entries(shard);
  }
  if (shard.count >= shard.chains.load(std::memory_order_relaxed).count() / 2) {
    grow(shard);
  }
  const Change change{shard};
  auto& entry = *shard.spare;
  shard.spare = entry.next.load(std::memory_order_relaxed);
  entry.set(record);
  shard.chains.load(std::memory_order_relaxed).chain(record.hashed_).push(entry, record.hashed_);
  record.entry_ = &entry;
  ++shard.count;
}

void Registry::unlink(Shard& shard, RegisteredAllocation& record) noexcept {
  auto& entry = *record.entry_;
  const Change change{shard};
  shard.chains.load(std::memory_order_relaxed).chain(record.hashed_).remove(entry);
  entry.next.store(std::exchange(shard.spare, &entry), std::memory_order_release);
  --shard.count;
}

void Registry::remove(RegisteredAllocation& record) noexcept {
  remove_if(record, [] { return true; });
}

void Registry::mark_dying(RegisteredAllocation& record, bool stays_with_owner) noexcept {
  ISTHMUS_EXPECTS(record.entry_ != nullptr);  // the record was added
  auto& extent = record.entry_->extent;
  extent.store(extent.load(std::memory_order_relaxed) | RegistryEntry::k_is_dying |
                   (stays_with_owner ? RegistryEntry::k_stays_with_owner : 0),
               std::memory_order_release);
}

void Registry::mark_divided(RegisteredAllocation& record) noexcept {
  ISTHMUS_EXPECTS(record.references() != 0);
  if (record.entry_ != nullptr) {
    record.entry_->extent.fetch_or(RegistryEntry::k_has_parts, std::memory_order_acq_rel);
  }
}

template <class Visit>
bool Registry::visit_hashes(const void* pointer, Visit&& visit) noexcept {
  for (auto size_classes = hints_.classes_at(pointer); size_classes != 0;
       size_classes &= size_classes - 1) {
    const auto size_class = static_cast<unsigned>(std::countr_zero(size_classes));
    const auto cell = address(pointer) >> size_class;
    if (visit(hash({size_class, cell})) || (cell != 0 && visit(hash({size_class, cell - 1})))) {
      return true;
    }
  }
  return false;
}

// Stops if the version has changed: an entry may have moved to another chain, where the walk would
// continue. A dying record is returned only if no other one contains the pointer: the same external
// memory may have been adopted again meanwhile.
const RegistryEntry* Registry::walk(const Shard& shard, const Query& query,
                                    std::uint32_t version) noexcept {
  const auto chains = shard.chains.load(std::memory_order_acquire);
  const auto* entry =
      chains.count() == 0 ? nullptr : chains.chain(query.hashed).first_for(query.hashed);
  const RegistryEntry* dying = nullptr;
  while (entry != nullptr && shard.version.load(std::memory_order_relaxed) == version) {
    if (entry->contains(query.pointer, query.is_block)) {
      if (!entry->is_dying()) {
        return entry;
      }
      dying = entry;
    }
    entry = entry->next.load(std::memory_order_acquire);
  }
  return dying;
}

bool Registry::read(const Query& query, KnownMemory& out) noexcept {
  auto& shard = shard_of(query.hashed);
  const auto read_at = [&](std::uint32_t version) {
    const auto* const found = walk(shard, query, version);
    if (found != nullptr) {
      out = found->read();
    }
    return found != nullptr;
  };
  constexpr int k_max_tries = 64;
  for (int tries = 0; tries < k_max_tries; ++tries) {
    const auto version = shard.version.load(std::memory_order_acquire);
    const bool found = read_at(version);
    if (version % 2 == 0 && shard.version.load(std::memory_order_relaxed) == version) {
      return found;
    }
  }
  const LockGuard hold{shard.lock};
  return read_at(shard.version.load(std::memory_order_relaxed));
}

std::optional<KnownMemory> Registry::lookup(const void* pointer) noexcept {
  std::optional<KnownMemory> found{std::in_place};
  std::optional<KnownMemory> dying;
  if (!visit_hashes(pointer, [&](std::uint64_t hashed) {
        if (!read({hashed, pointer, false}, *found)) {
          return false;
        }
        if (found->is_dying) {
          dying = found;
        }
        return !found->is_dying;
      })) {
    found = dying;
  }
  return found;
}

std::optional<KnownMemory> Registry::lookup_block(const void* base) noexcept {
  std::optional<KnownMemory> found{std::in_place};
  if (!read({hash_of_block(base), base, true}, *found)) {
    found.reset();
  }
  return found;
}

template <class Visit>
bool Registry::visit_holders(std::uint64_t hashed, const void* pointer, Visit&& visit) noexcept {
  auto& shard = shard_of(hashed);
  const auto chains = shard.chains.load(std::memory_order_acquire);
  if (chains.count() == 0 || chains.chain(hashed).first_for(hashed) == nullptr) {
    return false;
  }
  const LockGuard hold{shard.lock};
  auto* entry = shard.chains.load(std::memory_order_relaxed).chain(hashed).first();
  for (; entry != nullptr; entry = entry->next.load(std::memory_order_relaxed)) {
    // Different keys may share a chain.
    if (entry->record->hashed_ == hashed && entry->record->contains(pointer) &&
        visit(*entry->record)) {
      return true;
    }
  }
  return false;
}

template <class Fits>
Ref<RegisteredAllocation> Registry::holder(std::uint64_t hashed, const void* pointer,
                                           Fits&& fits) noexcept {
  Ref<RegisteredAllocation> found;
  visit_holders(hashed, pointer, [&](RegisteredAllocation& record) {
    if (!fits(record) || !record.try_retain()) {
      return false;
    }
    found = Ref<RegisteredAllocation>::adopt(&record);
    return true;
  });
  return found;
}

Ref<RegisteredAllocation> Registry::find(const void* pointer) noexcept {
  Ref<RegisteredAllocation> found;
  visit_hashes(pointer, [&](std::uint64_t hashed) {
    found =
        holder(hashed, pointer, [](const RegisteredAllocation& each) { return !each.is_nested(); });
    return static_cast<bool>(found);
  });
  return found;
}

Ref<RegisteredAllocation> Registry::find(const void* pointer,
                                         const MemoryResource& resource) noexcept {
  const auto is_from = [&](const RegisteredAllocation& each) { return each.came_from(resource); };
  auto found = holder(hash_of_block(pointer), pointer, is_from);
  if (!found) {
    visit_hashes(pointer, [&](std::uint64_t hashed) {
      found = holder(hashed, pointer, is_from);
      return static_cast<bool>(found);
    });
  }
  return found;
}

Ref<RegisteredAllocation> Registry::find_block(const void* base) noexcept {
  return holder(hash_of_block(base), base, [](const RegisteredAllocation&) { return true; });
}

// References are dropped when no lock is held, since dropping the last one takes locks.
std::optional<Registry::Part> Registry::innermost_part(const void* pointer) noexcept {
  std::array<Part, 16> found;  // more than the levels to which allocations nest
  std::size_t count = 0;
  visit_hashes(pointer, [&](std::uint64_t hashed) {
    return visit_holders(hashed, pointer, [&](RegisteredAllocation& each) {
      if (each.is_nested() && !each.is_chunk()) {
        auto& next = found.at(count++);
        next.known = each.entry_->read();
        next.known.is_dying = !each.try_retain();
        next.held = Ref<RegisteredAllocation>::adopt(next.known.is_dying ? nullptr : &each);
      }
      return count == found.size();
    });
  });
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  const auto smallest = std::min_element(found.begin(), end, [](const Part& a, const Part& b) {
    return a.known.facts.nbytes < b.known.facts.nbytes;
  });
  return smallest == end ? std::nullopt : std::optional<Part>{std::move(*smallest)};
}

bool Registry::is_dying(const void* pointer) noexcept {
  return visit_hashes(pointer, [&](std::uint64_t hashed) {
    return visit_holders(hashed, pointer, [](RegisteredAllocation& each) {
      return !each.is_nested() && each.references() == 0;
    });
  });
}

bool Registry::is_pending_release(const void* pointer) noexcept {
  const auto found = lookup(pointer);
  return found && found->is_dying && !found->stays_with_owner;
}

bool Registry::is_dying_block(const void* base) noexcept {
  return visit_holders(hash_of_block(base), base,
                       [](RegisteredAllocation& each) { return each.references() == 0; });
}

Registry& process_registry() noexcept {
  static NeverDestroyed<Registry> only;
  return *only;
}

}  // namespace isthmus
