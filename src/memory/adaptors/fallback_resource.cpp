// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/fallback_resource.hpp"

namespace isthmus {

fallback_resource::fallback_resource(memory_resource& first, memory_resource& second)
    : adaptor{first,
              {first.orders_frees() && second.orders_frees(), first.kinds() | second.kinds()}},
      second_{&second} {
  bases_.add(first);
  bases_.add(second);
}

result<void*> fallback_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto memory = adaptor::allocate(nbytes, alignment, on);
  if (memory || memory.failure().code() != ISTHMUS_ERROR_OUT_OF_MEMORY) {
    return memory;
  }
  auto other = second_->allocate(nbytes, alignment, on);
  if (!other && other.failure().code() != ISTHMUS_ERROR_OUT_OF_MEMORY) {
    return other;
  }
  if (!other) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}; the fallback also failed: {}",
                memory.failure().message(), other.failure().message());
  }
  try {
    from_second_.put(*other, nothing{});
  } catch (const std::bad_alloc&) {
    static_cast<void>(second_->deallocate(*other, nbytes, &on));
    throw;
  }
  return other;
}

result<void> fallback_resource::deallocate(void* pointer, std::size_t nbytes,
                                           queue* behind) noexcept {
  auto noted = from_second_.take(pointer);
  if (noted.empty()) {
    return adaptor::deallocate(pointer, nbytes, behind);
  }
  auto freed = second_->deallocate(pointer, nbytes, behind);
  if (!freed) {
    from_second_.put_back(std::move(noted));
  }
  return freed;
}

}  // namespace isthmus
