// SPDX-License-Identifier: Apache-2.0
#pragma once
// Uses a second resource when the first has no memory. Blocks of the second are recorded by
// address; while there are none, a free costs one load more than the first's own.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/bases.hpp"
#include "memory/adaptors/pointer_table.hpp"

namespace isthmus {

class fallback_resource final : public adaptor {
 public:
  fallback_resource(memory_resource& first, memory_resource& second);

  void collect_bases(std::vector<memory_resource*>& out) override { bases_.collect(out); }
  [[nodiscard]] memory_resource& giver_of(const void* pointer,
                                          std::size_t nbytes) noexcept override {
    return from_second_.has(pointer) ? second_->giver_of(pointer, nbytes)
                                     : adaptor::giver_of(pointer, nbytes);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(from_second_.has(pointer) ? *second_ : upstream(), pointer, nbytes);
  }
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override {
    return take_warm(upstream(), nbytes, alignment, on);
  }
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override {
    return from_second_.is_empty() && give_back_warm(upstream(), pointer, nbytes, on);
  }
  [[nodiscard]] bool may_take_back() const noexcept override {
    return adaptor::may_take_back() || second_->may_take_back();
  }
  [[nodiscard]] memory_usage usage() noexcept override { return bases_.usage(); }
  // Trims the second first, since its memory serves only when the first has none.
  std::size_t trim(std::size_t keep) noexcept override { return bases_.trim(keep); }
  [[nodiscard]] result<void> verify() override {
    ISTHMUS_TRY(adaptor::verify());
    return second_->verify();
  }

 private:
  struct nothing {};
  const ref<memory_resource> second_;
  bases bases_;
  pointer_table<nothing> from_second_;
};

}  // namespace isthmus
