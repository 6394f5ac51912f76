#pragma once
// Sends a request to a resource by its size. A search among the bins; no lock, no note of blocks:
// a block goes back by the size that it was asked for with.

#include <vector>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class binning_resource final : public adaptor {
 public:
  struct bin {
    std::size_t most_bytes;
    ref<memory_resource> resource;
  };
  // `upstream` has what is larger than every bin. WRONG_CONTEXT for a bin of another context or
  // kind, INVALID_ARGUMENT where bins do not grow.
  [[nodiscard]] static result<ref<binning_resource>> create(memory_resource& upstream,
                                                            std::vector<bin> bins);
  // For `create`.
  binning_resource(memory_resource& upstream, std::vector<bin> bins);

  [[nodiscard]] usm_kind kind_of(const void* pointer) noexcept override;
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] memory_usage usage() noexcept override;
  std::size_t trim(std::size_t keep) noexcept override;

 private:
  // Null: upstream.
  [[nodiscard]] memory_resource* bin_for(std::size_t nbytes) const noexcept;

  const std::vector<bin> bins_;
};

}  // namespace isthmus
