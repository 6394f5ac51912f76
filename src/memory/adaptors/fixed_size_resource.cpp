// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/fixed_size_resource.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_most_alignment = 4096;

// A block begins where the device's own allocations may begin.
std::size_t stride_of(const Device& device, std::size_t block_bytes) noexcept {
  const auto unit = device.properties().base_alignment;
  return (block_bytes + unit - 1) / unit * unit;
}

std::size_t alignment_of_stride(const Device& device, std::size_t stride) noexcept {
  return std::min({stride & (0 - stride), k_most_alignment, device.properties().max_alignment});
}

}  // namespace

FixedSizeResource::FixedSizeResource(MemoryResource& upstream, std::size_t block_bytes,
                                     std::size_t in_slab)
    : KeepingResource{upstream},
      asked_bytes_{block_bytes},
      block_bytes_{stride_of(upstream.device(), block_bytes)},
      in_slab_{in_slab},
      alignment_{alignment_of_stride(upstream.device(), block_bytes_)} {}

void* FixedSizeResource::address_of(const Block& which) const noexcept {
  const auto number = static_cast<std::size_t>(&which - which.in->blocks.data());
  return static_cast<std::byte*>(which.in->memory->what().base) + number * block_bytes_;
}

FixedSizeResource::Slab* FixedSizeResource::slab_of(const void* pointer) noexcept {
  const auto behind =
      std::upper_bound(slabs_.begin(), slabs_.end(), pointer, [](const void* at, const auto& each) {
        return address(at) < address(each->memory->what().base);
      });
  if (behind == slabs_.begin()) {
    return nullptr;
  }
  auto& candidate = **std::prev(behind);
  const auto offset = address(pointer) - address(candidate.memory->what().base);
  return offset < block_bytes_ * in_slab_ ? &candidate : nullptr;
}

Result<FixedSizeResource::Block*> FixedSizeResource::live_block_at(const void* pointer) noexcept {
  auto* in = slab_of(pointer);
  if (in == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "pointer {} was not allocated by this resource: free it through the resource that "
                "allocated it",
                pointer);
  }
  const auto offset = address(pointer) - address(in->memory->what().base);
  if (offset % block_bytes_ != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} lies inside a block of this resource: free the pointer that was allocated",
                pointer);
  }
  auto& found = in->blocks[offset / block_bytes_];
  if (!found.live) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer);
  }
  return &found;
}

void FixedSizeResource::put(Block& freed) noexcept {
  const auto number = list_of(freed.freed.slot());
  auto& to = lists_.at(number);
  used_lists_ = std::max(used_lists_, number + 1);
  freed.previous = nullptr;
  freed.next = std::exchange(to.first, &freed);
  (freed.next != nullptr ? freed.next->previous : to.last) = &freed;
  --freed.in->out;
  ++free_;
}

void FixedSizeResource::remove(Block& gone) noexcept {
  auto& from = lists_.at(list_of(gone.freed.slot()));
  (gone.previous != nullptr ? gone.previous->next : from.first) = gone.next;
  (gone.next != nullptr ? gone.next->previous : from.last) = gone.previous;
  ++gone.in->out;
  --free_;
}

// Prefers the block freed last on the queue itself, which is in the processor's caches, then takes
// one that any queue may use.
FixedSizeResource::Block* FixedSizeResource::take(QueueSlots::Slot slot) noexcept {
  auto* found = lists_.at(list_of(slot)).first;
  if (found != nullptr && !slots().good(found->freed, slot)) {
    found = nullptr;
  }
  for (std::size_t each = 0; found == nullptr && each < used_lists_; ++each) {
    auto* oldest = lists_.at(each).last;
    found = oldest != nullptr && slots().passed(oldest->freed) ? oldest : nullptr;
  }
  if (found != nullptr) {
    remove(*found);
    found->live = true;
  }
  return found;
}

Result<void> FixedSizeResource::check_request(std::size_t nbytes, std::size_t alignment) const {
  if (nbytes > asked_bytes_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} exceed the block size of this resource, {}: use a binning resource to serve "
                "larger requests",
                describe_bytes(nbytes), describe_bytes(asked_bytes_));
  }
  ISTHMUS_TRY(alignment_of(nbytes, alignment));
  if (alignment > alignment_) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "an alignment of {} is more than that of this resource's blocks, {}", alignment,
                alignment_);
  }
  return {};
}

// Fences make blocks usable that were freed on other queues. One attempt, since the work before a
// fence may run indefinitely.
Result<void*> FixedSizeResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  ISTHMUS_TRY(check_request(nbytes, alignment));
  slots().fence_if_due();
  const auto whom = slots().find(&queue);
  for (bool fenced = false;; fenced = true) {
    {
      const std::lock_guard hold{lock_};
      if (auto* found = take(whom)) {
        return address_of(*found);
      }
      fenced = fenced || free_ == 0;
    }
    if (fenced) {
      return take_of_new(queue);
    }
    slots().fence();
  }
}

Result<void*> FixedSizeResource::take_of_new(Queue& queue) {
  auto memory = take_chunk(block_bytes_ * in_slab_, alignment_, queue);
  ISTHMUS_TRY(memory);
  auto made = std::make_unique<Slab>();
  made->memory = *std::move(memory);
  made->blocks.resize(in_slab_);
  const auto until = slots().behind(queue.quiet() ? nullptr : &queue);
  for (auto& each : made->blocks) {
    each.in = made.get();
    each.freed = until;  // upstream ordered it for this queue alone
  }
  const auto base = address(made->memory->what().base);
  const std::lock_guard hold{lock_};
  const auto before = std::find_if(slabs_.begin(), slabs_.end(), [&](const auto& each) {
    return address(each->memory->what().base) > base;
  });
  auto& added = **slabs_.insert(before, std::move(made));
  added.out = in_slab_;
  for (std::size_t each = in_slab_ - 1; each != 0; --each) {
    put(added.blocks[each]);
  }
  added.blocks.front().live = true;
  return added.memory->what().base;
}

// The ticket is obtained with no lock held, since that may query a driver.
Result<void> FixedSizeResource::deallocate(void* pointer, std::size_t, Queue* behind) noexcept {
  Block* gone = nullptr;
  {
    const std::lock_guard hold{lock_};
    auto found = live_block_at(pointer);
    ISTHMUS_TRY(found);
    gone = *found;
    gone->live = false;
  }
  const auto freed = ticket_of_free(*gone->in->memory, pointer, block_bytes_, behind);
  const std::lock_guard hold{lock_};
  gone->freed = freed;
  put(*gone);
  return {};
}

CutBlock FixedSizeResource::block_at(const void* pointer) noexcept {
  const std::lock_guard hold{lock_};
  auto* const in = slab_of(pointer);
  if (in == nullptr) {
    return {};
  }
  auto* const base = static_cast<std::byte*>(in->memory->what().base);
  const auto number = (address(pointer) - address(base)) / block_bytes_;
  return {base + number * block_bytes_, block_bytes_, in->blocks[number].live};
}

bool FixedSizeResource::is_whole(const Slab& slab) const noexcept {
  return slab.out == 0 &&
         std::all_of(slab.blocks.begin(), slab.blocks.end(),
                     [&](const Block& each) { return slots().passed(each.freed); });
}

// Needs memory only for its result; without it all slabs stay.
FixedSizeResource::Slabs FixedSizeResource::take_whole() noexcept try {
  const std::lock_guard hold{lock_};
  Slabs whole;
  whole.reserve(slabs_.size());
  for (auto& each : slabs_) {
    if (is_whole(*each)) {
      for (auto& free : each->blocks) {
        remove(free);
      }
      whole.push_back(std::move(each));
    }
  }
  std::erase(slabs_, nullptr);
  return whole;
} catch (const std::bad_alloc&) {
  return {};
}

}  // namespace isthmus
