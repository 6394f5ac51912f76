// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/limit_resource.hpp"

#include "core/sizes.hpp"

namespace isthmus {

// The acquire order synchronizes with the release order of `unreserve`. So a counting resource
// above sees a free before the allocation that the free made possible.
bool LimitResource::reserve(std::uint64_t nbytes, std::uint64_t& in_use) noexcept {
  in_use = in_use_.load(std::memory_order_relaxed);
  do {
    if (nbytes > limit_ || in_use > limit_ - nbytes) {
      return false;
    }
  } while (!in_use_.compare_exchange_weak(in_use, in_use + nbytes, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  return true;
}

void LimitResource::unreserve(std::uint64_t nbytes) noexcept {
  auto current = in_use_.load(std::memory_order_relaxed);
  while (!in_use_.compare_exchange_weak(current, current - std::min(current, nbytes),
                                        std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

Result<void*> LimitResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  std::uint64_t in_use = 0;
  if (!reserve(nbytes, in_use)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of {} memory on {}: {} of a limit of {} are in use; free "
                "buffers, or raise the limit",
                describe_bytes(nbytes), kind_name(kind()), device().properties().filter,
                describe_bytes(in_use), describe_bytes(limit_));
  }
  try {
    auto memory = Adaptor::allocate(nbytes, alignment, queue);
    if (!memory) {
      unreserve(nbytes);
    }
    return memory;
  } catch (const std::bad_alloc&) {
    unreserve(nbytes);
    throw;
  }
}

void* LimitResource::allocate_fast(std::size_t nbytes, std::size_t alignment,
                                   Queue* queue) noexcept {
  std::uint64_t in_use = 0;
  if (!reserve(nbytes, in_use)) {
    return nullptr;
  }
  void* block = allocate_fast_from(upstream(), nbytes, alignment, queue);
  if (block == nullptr) [[unlikely]] {
    unreserve(nbytes);
  }
  return block;
}

Result<void> LimitResource::deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept {
  auto pending = pending_.extract(pointer);
  auto freed = Adaptor::deallocate(pointer, nbytes, after);
  if (!freed) {
    pending_.reinsert(std::move(pending));
    return freed;
  }
  unreserve(nbytes);
  if (!pending.empty()) {
    pending_bytes_.fetch_sub(pending.mapped(), std::memory_order_relaxed);
  }
  return freed;
}

void LimitResource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  Adaptor::freed(pointer, nbytes);
  if (!pending_.has(pointer)) {
    pending_.insert(pointer, nbytes);
    pending_bytes_.fetch_add(nbytes, std::memory_order_relaxed);
  }
} catch (const std::bad_alloc&) {
  // The block counts as live until its memory is returned.
}

bool LimitResource::deallocate_fast(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  const bool freed = deallocate_fast_to(upstream(), pointer, nbytes, queue);
  if (freed) [[likely]] {
    unreserve(nbytes);
  }
  return freed;
}

}  // namespace isthmus
