#include "memory/adaptors/limit_resource.hpp"

#include "core/sizes.hpp"

namespace isthmus {

bool limit_resource::take(std::uint64_t nbytes, std::uint64_t& in_use) noexcept {
  in_use = in_use_.load(std::memory_order_relaxed);
  do {
    if (nbytes > most_ || in_use > most_ - nbytes) {
      return false;
    }
  } while (!in_use_.compare_exchange_weak(in_use, in_use + nbytes, std::memory_order_relaxed));
  return true;
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
      in_use_.fetch_sub(nbytes, std::memory_order_relaxed);
    }
    return memory;
  } catch (const std::bad_alloc&) {
    in_use_.fetch_sub(nbytes, std::memory_order_relaxed);
    throw;
  }
}

result<void> limit_resource::deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept {
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
  if (freed) {
    in_use_.fetch_sub(nbytes, std::memory_order_relaxed);
  }
  return freed;
}

}  // namespace isthmus
