// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/fallback_resource.hpp"

namespace isthmus {

FallbackResource::FallbackResource(MemoryResource& first, MemoryResource& second)
    : Adaptor{first,
              {first.orders_frees() && second.orders_frees(), first.kinds() | second.kinds()}},
      second_{&second} {
  bases_.add(first);
  bases_.add(second);
}

Result<void*> FallbackResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  if (!is_out_of_memory(memory)) {
    return memory;
  }
  auto other = second_->allocate(nbytes, alignment, queue);
  if (is_out_of_memory(other)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}; the fallback also failed: {}",
                memory.failure().message(), other.failure().message());
  }
  ISTHMUS_TRY(other);
  try {
    fallback_blocks_.insert(*other, Nothing{});
  } catch (const std::bad_alloc&) {
    static_cast<void>(second_->deallocate(*other, nbytes, &queue));
    throw;
  }
  return other;
}

Result<void> FallbackResource::deallocate(void* pointer, std::size_t nbytes,
                                          Queue* after) noexcept {
  auto entry = fallback_blocks_.extract(pointer);
  if (entry.empty()) {
    return Adaptor::deallocate(pointer, nbytes, after);
  }
  auto freed = second_->deallocate(pointer, nbytes, after);
  if (!freed) {
    fallback_blocks_.reinsert(std::move(entry));
  }
  return freed;
}

}  // namespace isthmus
