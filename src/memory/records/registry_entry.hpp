// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of the registry's table, and chains of them. An entry has a record's address and a
// copy of the record's facts. Entries are written under the shard's lock. They may be read without
// it at any time, since their memory is never freed; the reader then checks the shard's version
// (registry.hpp).

#include <atomic>
#include <cstdint>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "memory/records/registered_allocation.hpp"

namespace isthmus {

// A copy of the facts in a record, for a caller that holds no reference to it: the context and the
// resource may be destroyed at any time afterwards.
struct KnownMemory {
  PointerFacts facts;
  Context* context = nullptr;
  std::uintptr_t context_key = 0;
  MemoryResource* resource = nullptr;
  std::uintptr_t queue_key = 0;
  bool is_dying = false;   // no references, but memory not yet released
  bool has_parts = false;  // other allocations lie in it
  // For a dying allocation: the memory was adopted, and remains with its owner.
  bool stays_with_owner = false;
};

struct alignas(64) RegistryEntry {
  std::atomic<RegistryEntry*> next{nullptr};
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::uint64_t> extent{0};  // bytes << k_extent_shift | flags below
  std::atomic<Device*> device{nullptr};
  std::atomic<Context*> context{nullptr};
  std::atomic<std::uintptr_t> context_key{0};
  std::atomic<MemoryResource*> resource{nullptr};
  std::atomic<std::uintptr_t> queue_key{0};
  RegisteredAllocation* record = nullptr;  // accessed only under the shard's lock

  static constexpr unsigned k_extent_shift = 8;
  static constexpr std::uint64_t k_kind = 0x7;
  static constexpr std::uint64_t k_is_within = 0x8;
  static constexpr std::uint64_t k_is_dying = 0x10;
  static constexpr std::uint64_t k_is_block = 0x20;
  static constexpr std::uint64_t k_has_parts = 0x40;
  static constexpr std::uint64_t k_stays_with_owner = 0x80;  // set together with `k_is_dying`

  // Stores use release order, and loads use acquire order. So a reader that sees any part of a
  // change also sees the odd version that was set before it, and none of its loads is reordered
  // after its second load of the version. Called under the shard's lock, during a
  // `Registry::Change`.
  void set(RegisteredAllocation& allocation) noexcept {
    constexpr auto k_release = std::memory_order_release;
    const auto& facts = allocation.facts();
    record = &allocation;
    base.store(address(facts.base), k_release);
    extent.store(
        std::uint64_t{facts.nbytes} << k_extent_shift | static_cast<std::uint64_t>(facts.kind) |
            (allocation.is_nested() ? k_is_within : 0) | (allocation.is_block() ? k_is_block : 0) |
            (allocation.is_divided() ? k_has_parts : 0),
        k_release);
    device.store(&allocation.device(), k_release);
    context.store(&allocation.context(), k_release);
    context_key.store(allocation.context().key(), k_release);
    resource.store(allocation.resource(), k_release);
    queue_key.store(allocation.queue().key(), k_release);
  }
  // Whether `pointer` lies in this allocation, which is not nested in another one, and is a pool's
  // block exactly if `is_block`.
  [[nodiscard]] bool contains(const void* pointer, bool is_block) const noexcept {
    const auto extent_value = extent.load(std::memory_order_acquire);
    return (extent_value & (k_is_within | k_is_block)) == (is_block ? k_is_block : 0) &&
           address(pointer) - base.load(std::memory_order_acquire) < extent_value >> k_extent_shift;
  }
  [[nodiscard]] bool is_dying() const noexcept {
    return (extent.load(std::memory_order_acquire) & k_is_dying) != 0;
  }
  [[nodiscard]] KnownMemory read() const noexcept {
    constexpr auto k_acquire = std::memory_order_acquire;
    const auto extent_value = extent.load(k_acquire);
    return {
        {static_cast<UsmKind>(extent_value & k_kind), reinterpret_cast<void*>(base.load(k_acquire)),
         extent_value >> k_extent_shift, device.load(k_acquire)},
        context.load(k_acquire),
        context_key.load(k_acquire),
        resource.load(k_acquire),
        queue_key.load(k_acquire),
        (extent_value & k_is_dying) != 0,
        (extent_value & k_has_parts) != 0,
        (extent_value & k_stays_with_owner) != 0};
  }
};

// A chain of entries. One word holds the address of the first entry, of 48 bits, and above it a
// filter: a bit for the hash of each entry that was added since the chain was empty. So most
// lookups that find nothing touch no entry.
class RegistryChain {
 public:
  [[nodiscard]] RegistryEntry* first() const noexcept { return first_of(load()); }
  [[nodiscard]] RegistryEntry* first_for(std::uint64_t hashed) const noexcept {
    const auto word = load();
    return (word & mark(hashed)) != 0 ? first_of(word) : nullptr;
  }
  // These are called under the shard's lock, during a `Registry::Change`. The hash of an entry that
  // is added selects this chain; an entry that is removed is in it.
  void push(RegistryEntry& entry, std::uint64_t hashed) noexcept {
    const auto word = load();
    entry.next.store(first_of(word), std::memory_order_release);
    word_.store((word & k_marks) | mark(hashed) | address(&entry), std::memory_order_release);
  }
  void remove(RegistryEntry& entry) noexcept {
    auto* const after = entry.next.load(std::memory_order_relaxed);
    if (first() == &entry) {
      word_.store(after == nullptr ? 0 : (load() & k_marks) | address(after),
                  std::memory_order_release);
      return;
    }
    auto* before = first();
    ISTHMUS_EXPECTS(before != nullptr);
    while (before->next.load(std::memory_order_relaxed) != &entry) {
      before = before->next.load(std::memory_order_relaxed);
      ISTHMUS_EXPECTS(before != nullptr);
    }
    before->next.store(after, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t k_marks = ~std::uint64_t{0} << k_address_bits;

  // The filter bit of a hash, derived from bits that select neither the shard nor the chain.
  [[nodiscard]] static std::uint64_t mark(std::uint64_t hashed) noexcept {
    return std::uint64_t{1} << (k_address_bits + (hashed & 15));
  }
  [[nodiscard]] static RegistryEntry* first_of(std::uint64_t word) noexcept {
    return reinterpret_cast<RegistryEntry*>(word & ~k_marks);
  }
  [[nodiscard]] std::uint64_t load() const noexcept {
    return word_.load(std::memory_order_acquire);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace isthmus
