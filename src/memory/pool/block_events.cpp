// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/block_events.hpp"

#include "memory/base/tags.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/pool/pool_page.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {
namespace {

std::size_t bytes_of_block(const void* block) noexcept {
  auto& page = *process_page_map.find(block);
  return page.is_slab() ? page.in_slab()->block_bytes
                        : std::size_t{page.span.load(k_relaxed)} * k_pool_page_bytes;
}

}  // namespace

void emit_block_event(MemoryEventKind kind, const void* pool, const void* block,
                      std::size_t requested, const Queue* queue) noexcept {
  emit({.kind = kind,
        .address = block,
        .nbytes = bytes_of_block(block),
        .requested = requested,
        .queue = queue != nullptr ? queue->serial() : 0,
        .resource = pool,
        .tag = kind == MemoryEventKind::allocate ? current_tag() : nullptr});
}

void observe_reuse(const void* pool, const TakenBlocks& taken, std::span<void* const> blocks,
                   const Queue& queue) noexcept {
  if (taken.from_other_queue == 0 || !is_observed(MemoryEventKind::reuse)) {
    return;
  }
  for (std::size_t index = 0; index < taken.count; ++index) {
    if ((taken.from_other_queue & TakenBlocks::bits(index, 1)) != 0) {
      emit_block_event(MemoryEventKind::reuse, pool, blocks[index], 0, &queue);
    }
  }
}

void observe_reuse(const void* pool, const RegionHeap::PageRun& run, QueueFences::EntryIndex entry,
                   const Queue& queue) noexcept {
  if (!is_from_other_queue(run.until, entry)) {
    return;
  }
  observe(MemoryEventKind::reuse, [&] {
    return MemoryEvent{.kind = MemoryEventKind::reuse,
                       .address = run.base,
                       .nbytes = std::size_t{run.count} * k_pool_page_bytes,
                       .queue = queue.serial(),
                       .resource = pool};
  });
}

}  // namespace isthmus
