// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/fixed_size_resource.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "memory/base/freed_before.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_max_alignment = 4096;

// The distance between blocks: their size, rounded up to the alignment of the device's own
// allocations.
std::size_t stride_of(const Device& device, std::size_t block_bytes) noexcept {
  const auto unit = device.properties().base_alignment;
  return (block_bytes + unit - 1) / unit * unit;
}

std::size_t alignment_of_stride(const Device& device, std::size_t stride) noexcept {
  return std::min({stride & (0 - stride), k_max_alignment, device.properties().max_alignment});
}

}  // namespace

FixedSizeResource::FixedSizeResource(MemoryResource& upstream, std::size_t block_bytes,
                                     std::size_t slab_blocks)
    : RetainingResource{upstream},
      requested_bytes_{block_bytes},
      block_bytes_{stride_of(upstream.device(), block_bytes)},
      slab_blocks_{slab_blocks},
      alignment_{alignment_of_stride(upstream.device(), block_bytes_)} {
  ISTHMUS_EXPECTS(block_bytes > 0 && slab_blocks > 0, block_bytes, slab_blocks);
  ISTHMUS_EXPECTS(block_bytes_ <= SIZE_MAX / slab_blocks, block_bytes_, slab_blocks);
}

void* FixedSizeResource::address_of(const Block& block) const noexcept {
  const auto number = static_cast<std::size_t>(&block - block.slab->blocks.data());
  return static_cast<std::byte*>(block.slab->memory->facts().base) + number * block_bytes_;
}

FixedSizeResource::Slab* FixedSizeResource::slab_of(const void* pointer) noexcept {
  const auto next =
      std::upper_bound(slabs_.begin(), slabs_.end(), pointer, [](const void* at, const auto& each) {
        return address(at) < address(each->memory->facts().base);
      });
  if (next == slabs_.begin()) {
    return nullptr;
  }
  auto& candidate = **std::prev(next);
  const auto offset = address(pointer) - address(candidate.memory->facts().base);
  return offset < block_bytes_ * slab_blocks_ ? &candidate : nullptr;
}

Result<FixedSizeResource::Block*> FixedSizeResource::live_block_at(const void* pointer) noexcept {
  auto* slab = slab_of(pointer);
  if (slab == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  const auto offset = address(pointer) - address(slab->memory->facts().base);
  if (offset % block_bytes_ != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} lies inside the block at {}: free the pointer that was allocated",
                pointer, fmt::ptr(static_cast<const std::byte*>(pointer) - offset % block_bytes_));
  }
  auto& block = slab->blocks[offset / block_bytes_];
  if (!block.live) {
    return freed_before(pointer);
  }
  return &block;
}

void FixedSizeResource::push_free(Block& block) noexcept {
  const auto number = list_of(block.freed.entry());
  auto& list = lists_.at(number);
  used_lists_ = std::max(used_lists_, number + 1);
  block.previous = nullptr;
  block.next = std::exchange(list.first, &block);
  (block.next != nullptr ? block.next->previous : list.last) = &block;
  --block.slab->live_blocks;
  ++free_;
}

void FixedSizeResource::remove(Block& block) noexcept {
  auto& list = lists_.at(list_of(block.freed.entry()));
  (block.previous != nullptr ? block.previous->next : list.first) = block.next;
  (block.next != nullptr ? block.next->previous : list.last) = block.previous;
  ++block.slab->live_blocks;
  --free_;
}

// Prefers the block that was freed last on the request's queue, since it is in the processor's
// caches. Otherwise takes a block that any queue may use.
FixedSizeResource::Block* FixedSizeResource::take_free_block(
    QueueFences::EntryIndex entry) noexcept {
  auto* found = lists_.at(list_of(entry)).first;
  if (found != nullptr && !fences().is_usable(found->freed, entry)) {
    found = nullptr;
  }
  for (std::size_t index = 0; found == nullptr && index < used_lists_; ++index) {
    auto* oldest = lists_.at(index).last;
    found = oldest != nullptr && fences().passed(oldest->freed) ? oldest : nullptr;
  }
  if (found != nullptr) {
    remove(*found);
    found->live = true;
  }
  return found;
}

Result<void> FixedSizeResource::check_request(std::size_t nbytes, std::size_t alignment) const {
  if (nbytes > requested_bytes_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} exceed the block size of this resource, {}: use a binning resource to serve "
                "larger requests",
                describe_bytes(nbytes), describe_bytes(requested_bytes_));
  }
  ISTHMUS_TRY(alignment_of(nbytes, alignment));
  if (alignment > alignment_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "an alignment of {} is more than that of this resource's blocks, {}", alignment,
                alignment_);
  }
  return {};
}

// If no block is usable, submits fences, which make blocks that were freed on other queues usable.
// It does so only once, since the work before a fence may run indefinitely.
Result<void*> FixedSizeResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  ISTHMUS_TRY(check_request(nbytes, alignment));
  fences().fence_if_due();
  const auto entry = fences().find(&queue);
  for (bool fenced = false;; fenced = true) {
    {
      const LockGuard hold{lock_};
      if (auto* block = take_free_block(entry)) {
        return address_of(*block);
      }
      fenced = fenced || free_ == 0;
    }
    if (fenced) {
      return allocate_from_new(queue);
    }
    fences().fence();
  }
}

Result<void*> FixedSizeResource::allocate_from_new(Queue& queue) {
  auto memory = allocate_chunk(block_bytes_ * slab_blocks_, alignment_, queue);
  ISTHMUS_TRY(memory);
  auto slab = std::make_unique<Slab>();
  slab->memory = *std::move(memory);
  slab->blocks.resize(slab_blocks_);
  const auto until = fences().ticket_after(queue.is_known_idle() ? nullptr : &queue);
  for (auto& each : slab->blocks) {
    each.slab = slab.get();
    each.freed = until;  // until then, ordered after earlier uses on `queue` only
  }
  const auto base = address(slab->memory->facts().base);
  const LockGuard hold{lock_};
  const auto before = std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& each) {
    return address(each->memory->facts().base) > base;
  });
  auto& added = **slabs_.insert(before, std::move(slab));
  added.live_blocks = slab_blocks_;
  for (std::size_t index = slab_blocks_ - 1; index != 0; --index) {
    push_free(added.blocks[index]);
  }
  added.blocks.front().live = true;
  return added.memory->facts().base;
}

// Obtains the ticket with no lock held, since this may query a driver.
Result<void> FixedSizeResource::deallocate(void* pointer, std::size_t, Queue* after) noexcept {
  Block* block = nullptr;
  {
    const LockGuard hold{lock_};
    auto found = live_block_at(pointer);
    ISTHMUS_TRY(found);
    block = *found;
    block->live = false;
  }
  const auto freed = ticket_of_free(*block->slab->memory, pointer, block_bytes_, after);
  const LockGuard hold{lock_};
  block->freed = freed;
  push_free(*block);
  return {};
}

CutBlock FixedSizeResource::block_at(const void* pointer) noexcept {
  const LockGuard hold{lock_};
  auto* const slab = slab_of(pointer);
  if (slab == nullptr) {
    return {};
  }
  auto* const base = static_cast<std::byte*>(slab->memory->facts().base);
  const auto number = (address(pointer) - address(base)) / block_bytes_;
  return {base + number * block_bytes_, block_bytes_, slab->blocks[number].live};
}

bool FixedSizeResource::is_free(const Slab& slab) const noexcept {
  return slab.live_blocks == 0 &&
         std::all_of(slab.blocks.begin(), slab.blocks.end(),
                     [&](const Block& each) { return fences().passed(each.freed); });
}

// Needs memory only for its result. If there is none, removes no slab.
FixedSizeResource::Slabs FixedSizeResource::extract_free_slabs() noexcept try {
  const LockGuard hold{lock_};
  Slabs free_slabs;
  free_slabs.reserve(slabs_.size());
  for (auto& each : slabs_) {
    if (is_free(*each)) {
      for (auto& free : each->blocks) {
        remove(free);
      }
      free_slabs.push_back(std::move(each));
    }
  }
  std::erase(slabs_, nullptr);
  return free_slabs;
} catch (const std::bad_alloc&) {
  return {};
}

}  // namespace isthmus
