// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/limit_resource.hpp"

#include "core/sizes.hpp"

namespace isthmus {

// Acquires what `give_back` released: a resource above that counts sees a free before the
// allocation that it made possible.
bool LimitResource::take(std::uint64_t nbytes, std::uint64_t& in_use) noexcept {
  in_use = in_use_.load(std::memory_order_relaxed);
  do {
    if (nbytes > most_ || in_use > most_ - nbytes) {
      return false;
    }
  } while (!in_use_.compare_exchange_weak(in_use, in_use + nbytes, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  return true;
}

void LimitResource::give_back(std::uint64_t nbytes) noexcept {
  auto seen = in_use_.load(std::memory_order_relaxed);
  while (!in_use_.compare_exchange_weak(seen, seen - std::min(seen, nbytes),
                                        std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

Result<void*> LimitResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  std::uint64_t in_use = 0;
  if (!take(nbytes, in_use)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of {} memory on {}: {} of a limit of {} are in use; free "
                "buffers, or raise the limit",
                describe_bytes(nbytes), kind_name(kind()), device().properties().filter,
                describe_bytes(in_use), describe_bytes(most_));
  }
  try {
    auto memory = Adaptor::allocate(nbytes, alignment, queue);
    if (!memory) {
      give_back(nbytes);
    }
    return memory;
  } catch (const std::bad_alloc&) {
    give_back(nbytes);
    throw;
  }
}

void* LimitResource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                   Queue* queue) noexcept {
  std::uint64_t in_use = 0;
  if (!take(nbytes, in_use)) {
    return nullptr;
  }
  void* block = take_warm(upstream(), nbytes, alignment, queue);
  if (block == nullptr) [[unlikely]] {
    give_back(nbytes);
  }
  return block;
}

Result<void> LimitResource::deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept {
  auto late = late_.take(pointer);
  auto freed = Adaptor::deallocate(pointer, nbytes, behind);
  if (!freed) {
    late_.put_back(std::move(late));
    return freed;
  }
  give_back(nbytes);
  if (!late.empty()) {
    late_bytes_.fetch_sub(late.mapped(), std::memory_order_relaxed);
  }
  return freed;
}

void LimitResource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  Adaptor::freed(pointer, nbytes);
  if (!late_.has(pointer)) {
    late_.put(pointer, nbytes);
    late_bytes_.fetch_add(nbytes, std::memory_order_relaxed);
  }
} catch (const std::bad_alloc&) {
  // It counts until the memory is returned.
}

bool LimitResource::deallocate_warm(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  const bool freed = give_back_warm(upstream(), pointer, nbytes, queue);
  if (freed) [[likely]] {
    give_back(nbytes);
  }
  return freed;
}

}  // namespace isthmus
