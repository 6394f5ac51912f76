// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forwards each request to a resource that is chosen by the size of the request. The resources may
// be of different kinds. A request costs a search among the bins. There is no lock and no record of
// blocks, because the size also selects the resource for a deallocation.

#include <vector>

#include "memory/resources/adaptor.hpp"
#include "memory/resources/bases.hpp"

namespace isthmus {

class BinningResource final : public Adaptor {
 public:
  struct Bin {
    std::size_t max_bytes;
    Ref<MemoryResource> resource;
  };
  // `upstream` serves requests that are larger than every bin. WRONG_CONTEXT if a bin's resource
  // has another context; INVALID_ARGUMENT if the bins are not in increasing order of size.
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
