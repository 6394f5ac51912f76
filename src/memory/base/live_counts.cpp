// SPDX-License-Identifier: Apache-2.0
#include "memory/base/live_counts.hpp"

#include "core/hash.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

std::size_t index_of(UsmKind kind) noexcept { return static_cast<std::size_t>(kind) - 1; }

}  // namespace

LiveCounts::Shard& LiveCounts::shard_of(const void* pointer) noexcept {
  return shards_[hash_of(address(pointer)) >> 58];
}

void LiveCounts::add(const void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  auto& shard = shard_of(pointer);
  shard.count[index_of(kind)].fetch_add(1, std::memory_order_relaxed);
  shard.bytes[index_of(kind)].fetch_add(nbytes, std::memory_order_relaxed);
}

void LiveCounts::remove(const void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  auto& shard = shard_of(pointer);
  shard.count[index_of(kind)].fetch_sub(1, std::memory_order_relaxed);
  shard.bytes[index_of(kind)].fetch_sub(nbytes, std::memory_order_relaxed);
}

LiveTotal LiveCounts::total(UsmKind kind) const noexcept {
  LiveTotal sum;
  for (const auto& each : shards_) {
    for (std::size_t index = 0; index < k_kinds; ++index) {
      if (kind == ISTHMUS_KIND_UNKNOWN || index == index_of(kind)) {
        sum.count += each.count[index].load(std::memory_order_relaxed);
        sum.bytes += each.bytes[index].load(std::memory_order_relaxed);
      }
    }
  }
  return sum;
}

LiveCounts& process_live_counts() noexcept {
  static NeverDestroyed<LiveCounts> only;
  return *only;
}

}  // namespace isthmus
