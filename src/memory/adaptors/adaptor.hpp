#pragma once
// What resources over another have in common: its kind and place, and all that they do not change.
//
// A deallocation goes to upstream first and is counted only if that took it: misuse changes no
// counter.

#include "memory/memory_resource.hpp"

namespace isthmus {

class adaptor : public memory_resource {
 public:
  explicit adaptor(memory_resource& upstream)
      : memory_resource{upstream.home(), upstream.where(), upstream.kind()}, upstream_{&upstream} {}

  [[nodiscard]] bool orders_frees() const noexcept override { return upstream_->orders_frees(); }
  [[nodiscard]] usm_kind kind_of(const void* pointer) noexcept override {
    return upstream_->kind_of(pointer);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override {
    return upstream_->allocate(nbytes, alignment, on);
  }
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override {
    return upstream_->deallocate(pointer, nbytes, behind);
  }
  [[nodiscard]] memory_usage usage() noexcept override { return upstream_->usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return upstream_->trim(keep); }

 private:
  const ref<memory_resource> upstream_;
};

}  // namespace isthmus
