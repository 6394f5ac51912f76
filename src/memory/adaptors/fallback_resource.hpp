#pragma once
// Asks a second resource where the first has no memory. What came from the second is noted by its
// address; while nothing did, a free costs a load more than the first's own.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"

namespace isthmus {

class fallback_resource final : public adaptor {
 public:
  fallback_resource(memory_resource& first, memory_resource& second)
      : adaptor{first, first.orders_frees() && second.orders_frees()}, second_{&second} {}

  [[nodiscard]] usm_kind kind_of(const void* pointer) noexcept override {
    return from_second_.has(pointer) ? second_->kind_of(pointer) : adaptor::kind_of(pointer);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] memory_usage usage() noexcept override;
  std::size_t trim(std::size_t keep) noexcept override;

 private:
  struct nothing {};
  const ref<memory_resource> second_;
  pointer_table<nothing> from_second_;
};

}  // namespace isthmus
