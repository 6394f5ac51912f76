// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/deferred_regions.hpp"

#include <algorithm>

#include "core/expects.hpp"

namespace isthmus {

DeferredRegions::~DeferredRegions() {
  std::ranges::for_each(entries_, [this](const Entry& each) { release_now(each); });
}

bool DeferredRegions::has_old_mapping(const Region& chunk) const noexcept {
  return std::ranges::any_of(entries_, [&](const Entry& each) {
    return each.is_old_mapping && each.region.chunk == chunk.chunk;
  });
}

bool DeferredRegions::is_releasable(const Entry& entry) const noexcept {
  return fences_.passed(entry.until) && (entry.is_old_mapping || !has_old_mapping(entry.region));
}

void DeferredRegions::release_now(const Entry& entry) noexcept {
  entry.is_old_mapping ? source_.unmap_old(entry.region) : source_.deallocate(entry.region);
}

void DeferredRegions::drop(const Entry& entry) noexcept {
  if (is_releasable(entry)) {
    release_now(entry);
  } else {
    ISTHMUS_EXPECTS(entries_.size() < entries_.capacity());
    entries_.push_back(entry);
    bytes_.fetch_add(entry.bytes(), std::memory_order_relaxed);
  }
}

void DeferredRegions::release_ended(bool are_old_mappings) noexcept {
  const auto released = std::partition(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.is_old_mapping != are_old_mappings || !is_releasable(each);
  });
  std::for_each(released, entries_.end(), [this](const Entry& each) {
    release_now(each);
    bytes_.fetch_sub(each.bytes(), std::memory_order_relaxed);
  });
  entries_.erase(released, entries_.end());
}

// Releases old mappings first, since chunks cannot be released before their old mappings.
std::size_t DeferredRegions::release_ended() noexcept {
  const auto before = bytes();
  release_ended(true);
  release_ended(false);
  return before - bytes();
}

}  // namespace isthmus
