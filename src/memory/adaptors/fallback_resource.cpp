#include "memory/adaptors/fallback_resource.hpp"

#include <algorithm>

namespace isthmus {

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
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{}; and instead: {}", memory.failure().message(),
                other.failure().message());
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

memory_resource::memory_usage fallback_resource::usage() noexcept {
  auto sum = adaptor::usage();
  sum += second_->usage();
  return sum;
}

// The second first: what it has serves only where the first has none.
std::size_t fallback_resource::trim(std::size_t keep) noexcept {
  const auto by_first = adaptor::usage().held_bytes;
  const auto given_back = second_->trim(keep - std::min(keep, by_first));
  const auto by_second = second_->usage().held_bytes;
  return given_back + adaptor::trim(keep - std::min(keep, by_second));
}

}  // namespace isthmus
