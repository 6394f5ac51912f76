// SPDX-License-Identifier: Apache-2.0
#include "memory/base/using_block.hpp"

#include <utility>

#include "memory/base/current_resource_users.hpp"

namespace isthmus {

UsingBlock::UsingBlock(MemoryResource* resource)
    : resource_{resource},
      outer_{current_},
      key_{resource != nullptr ? std::optional{ResourceKey::of(*resource)} : std::nullopt} {
  current_resource_users.fetch_add(1, std::memory_order_relaxed);
}

// Destroys the enclosing blocks in a loop. If each were destroyed as the last reference of its
// inner block, the stack would be as deep as the blocks are nested, and nesting is unlimited: each
// task may start another one.
UsingBlock::~UsingBlock() {
  current_resource_users.fetch_sub(1, std::memory_order_relaxed);
  auto outer = std::move(outer_);
  while (outer && outer->unique()) {
    auto further = std::move(outer->outer_);
    outer = std::move(further);
  }
}

UsingBlock* UsingBlock::swap_current(UsingBlock* next) noexcept {
  return std::exchange(current_, next);
}

std::optional<MemoryResource*> UsingBlock::find(const ResourceKey& key) noexcept {
  for (auto* block = current_; block != nullptr; block = block->outer_.get()) {
    if (!block->key_ || *block->key_ == key) {
      return block->resource_.get();
    }
  }
  return {};
}

}  // namespace isthmus
