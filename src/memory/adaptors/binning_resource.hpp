// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sends each request to a resource chosen by its size; these may be of different kinds. Costs a
// search among the bins. There is no lock and no record of blocks: the size of a request also
// selects the resource that its block returns to.

#include <vector>

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/bases.hpp"

namespace isthmus {

class BinningResource final : public Adaptor {
 public:
  struct Bin {
    std::size_t max_bytes;
    Ref<MemoryResource> resource;
  };
  // `upstream` serves what is larger than every bin. WRONG_CONTEXT for a bin of another context,
  // INVALID_ARGUMENT if the bins are not in increasing order.
  [[nodiscard]] static Result<Ref<BinningResource>> create(MemoryResource& upstream,
                                                           std::vector<Bin> bins);
  // Called by `create`.
  BinningResource(MemoryResource& upstream, std::vector<Bin> bins);

  void collect_bases(std::vector<MemoryResource*>& out) override { bases_.collect(out); }
  [[nodiscard]] MemoryResource& resource_of(const void* pointer,
                                            std::size_t nbytes) noexcept override {
    return resource_for(nbytes).resource_of(pointer, nbytes);
  }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(resource_for(nbytes), pointer, nbytes);
  }
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override {
    return allocate_fast_from(resource_for(nbytes), nbytes, alignment, queue);
  }
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override {
    return deallocate_fast_to(resource_for(nbytes), pointer, nbytes, queue);
  }
  [[nodiscard]] bool may_release_early() const noexcept override;
  [[nodiscard]] MemoryUsage usage() noexcept override { return bases_.usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return bases_.trim(keep); }
  [[nodiscard]] Result<void> verify() override;

 private:
  [[nodiscard]] static Nature nature_of(const MemoryResource& upstream,
                                        const std::vector<Bin>& bins) noexcept;
  [[nodiscard]] MemoryResource& resource_for(std::size_t nbytes) const noexcept;

  const std::vector<Bin> bins_;
  Bases bases_;
};

}  // namespace isthmus
