// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/limit_resource.hpp"

#include "core/sizes.hpp"

namespace isthmus {

// Acquires what `give_back` released: a resource above that counts sees a free before the
// allocation that it made possible.
bool limit_resource::take(std::uint64_t nbytes, std::uint64_t& in_use) noexcept {
  in_use = in_use_.load(std::memory_order_relaxed);
  do {
    if (nbytes > most_ || in_use > most_ - nbytes) {
      return false;
    }
  } while (!in_use_.compare_exchange_weak(in_use, in_use + nbytes, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
  return true;
}

void limit_resource::give_back(std::uint64_t nbytes) noexcept {
  auto seen = in_use_.load(std::memory_order_relaxed);
  while (!in_use_.compare_exchange_weak(seen, seen - std::min(seen, nbytes),
                                        std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

result<void*> limit_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  std::uint64_t in_use = 0;
  if (!take(nbytes, in_use)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of {} memory on {}: {} of a limit of {} are in use; free "
                "buffers, or raise the limit",
                describe_bytes(nbytes), kind_name(kind()), where().properties().filter,
                describe_bytes(in_use), describe_bytes(most_));
  }
  try {
    auto memory = adaptor::allocate(nbytes, alignment, on);
    if (!memory) {
      give_back(nbytes);
    }
    return memory;
  } catch (const std::bad_alloc&) {
    give_back(nbytes);
    throw;
  }
}

void* limit_resource::allocate_warm(std::size_t nbytes, std::size_t alignment, queue* on) noexcept {
  std::uint64_t in_use = 0;
  if (!take(nbytes, in_use)) {
    return nullptr;
  }
  void* block = take_warm(upstream(), nbytes, alignment, on);
  if (block == nullptr) [[unlikely]] {
    give_back(nbytes);
  }
  return block;
}

result<void> limit_resource::deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept {
  auto late = late_.take(pointer);
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
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

void limit_resource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  adaptor::freed(pointer, nbytes);
  if (!late_.has(pointer)) {
    late_.put(pointer, nbytes);
    late_bytes_.fetch_add(nbytes, std::memory_order_relaxed);
  }
} catch (const std::bad_alloc&) {
  // It counts until the memory is returned.
}

bool limit_resource::deallocate_warm(void* pointer, std::size_t nbytes, queue* on) noexcept {
  const bool freed = give_back_warm(upstream(), pointer, nbytes, on);
  if (freed) [[likely]] {
    give_back(nbytes);
  }
  return freed;
}

}  // namespace isthmus
