// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocates from a second resource when the first is out of memory. Blocks of the second are
// recorded by address. While there are none, a free costs one load more than a free of the first
// resource.

#include "memory/resources/adaptor.hpp"
#include "memory/resources/bases.hpp"
#include "memory/resources/pointer_table.hpp"

namespace isthmus {

class FallbackResource final : public Adaptor {
 public:
  FallbackResource(MemoryResource& first, MemoryResource& second);

  void collect_bases(std::vector<MemoryResource*>& out) override { bases_.collect(out); }
  [[nodiscard]] MemoryResource& resource_of(const void* pointer,
                                            std::size_t nbytes) noexcept override {
    return fallback_blocks_.has(pointer) ? second_->resource_of(pointer, nbytes)
                                         : Adaptor::resource_of(pointer, nbytes);
  }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(fallback_blocks_.has(pointer) ? *second_ : upstream(), pointer, nbytes);
  }
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return allocate_fast_from(upstream(), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return fallback_blocks_.is_empty() && deallocate_fast_to(upstream(), pointer, nbytes, queue);
  }
  [[nodiscard]] bool may_release_early() const noexcept override {
    return Adaptor::may_release_early() || second_->may_release_early();
  }
  [[nodiscard]] MemoryUsage usage() noexcept override { return bases_.usage(); }
  // Trims the second resource first, since it is used only when the first is out of memory.
  std::size_t trim(std::size_t keep) noexcept override { return bases_.trim(keep); }
  [[nodiscard]] Result<void> verify() override {
    ISTHMUS_TRY(Adaptor::verify());
    return second_->verify();
  }

 private:
  struct Nothing {};
  const Ref<MemoryResource> second_;
  Bases bases_;
  PointerTable<Nothing> fallback_blocks_;
};

}  // namespace isthmus
