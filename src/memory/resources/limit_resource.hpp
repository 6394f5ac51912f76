// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses requests that would raise the live bytes, counted by requested size, above a limit. An
// allocation with its free costs two atomic operations on one shared counter.

#include <algorithm>
#include <atomic>

#include "memory/resources/adaptor.hpp"
#include "memory/resources/pointer_table.hpp"

namespace isthmus {

class LimitResource final : public Adaptor {
 public:
  LimitResource(MemoryResource& upstream, std::uint64_t max) : Adaptor{upstream}, limit_{max} {}
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override;

  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  // The live bytes. Excludes freed memory that has not been returned yet, which still counts
  // against the limit.
  [[nodiscard]] std::uint64_t in_use() const noexcept {
    const auto pending = pending_bytes_.load(std::memory_order_relaxed);
    const auto held = in_use_.load(std::memory_order_relaxed);
    return held - std::min(held, pending);
  }

 private:
  // Adds `nbytes`, or returns false if that exceeds the limit; `in_use` receives the bytes that
  // were in use before.
  [[nodiscard]] bool reserve(std::uint64_t nbytes, std::uint64_t& in_use) noexcept;
  // Subtracts `nbytes`. Call after the memory was returned to upstream. The count never falls below
  // 0: memory of another resource may be freed here, and an underflow would make this resource
  // refuse every request.
  void unreserve(std::uint64_t nbytes) noexcept;

  const std::uint64_t limit_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> pending_bytes_{0};
  PointerTable<std::uint64_t> pending_;  // blocks that were freed, but not returned yet
};

}  // namespace isthmus
