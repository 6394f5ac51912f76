// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sends each request to a resource chosen by its size; these may be of different kinds. Costs a
// search among the bins. There is no lock and no record of blocks: the size of a request also
// selects the resource that its block returns to.

#include <vector>

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/bases.hpp"

namespace isthmus {

class binning_resource final : public adaptor {
 public:
  struct bin {
    std::size_t most_bytes;
    ref<memory_resource> resource;
  };
  // `upstream` serves what is larger than every bin. WRONG_CONTEXT for a bin of another context,
  // INVALID_ARGUMENT if the bins are not in increasing order.
  [[nodiscard]] static result<ref<binning_resource>> create(memory_resource& upstream,
                                                            std::vector<bin> bins);
  // Called by `create`.
  binning_resource(memory_resource& upstream, std::vector<bin> bins);

  void collect_bases(std::vector<memory_resource*>& out) override { bases_.collect(out); }
  [[nodiscard]] memory_resource& giver_of(const void* pointer,
                                          std::size_t nbytes) noexcept override {
    return resource_for(nbytes).giver_of(pointer, nbytes);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(resource_for(nbytes), pointer, nbytes);
  }
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override {
    return take_warm(resource_for(nbytes), nbytes, alignment, on);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override {
    return give_back_warm(resource_for(nbytes), pointer, nbytes, on);
  }
  [[nodiscard]] bool may_take_back() const noexcept override;
  [[nodiscard]] memory_usage usage() noexcept override { return bases_.usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return bases_.trim(keep); }
  [[nodiscard]] result<void> verify() override;

 private:
  [[nodiscard]] static nature nature_of(const memory_resource& upstream,
                                        const std::vector<bin>& bins) noexcept;
  [[nodiscard]] memory_resource& resource_for(std::size_t nbytes) const noexcept;

  const std::vector<bin> bins_;
  bases bases_;
};

}  // namespace isthmus
