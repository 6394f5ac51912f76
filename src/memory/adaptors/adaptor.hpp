#pragma once
// What resources over another have in common: its kind and place, and all that they do not change.
//
// Over a pool its warm path is taken without a virtual call, as the C interface does.
// A deallocation goes to upstream first and is counted only if that took it: misuse changes no
// counter.

#include "memory/pool.hpp"

namespace isthmus {

class adaptor : public memory_resource {
 public:
  explicit adaptor(memory_resource& upstream) : adaptor{upstream, upstream.orders_frees()} {}
  adaptor(memory_resource& upstream, bool orders_frees)
      : memory_resource{upstream.home(), upstream.where(), upstream.kind(), nullptr, orders_frees},
        upstream_{&upstream} {}

  [[nodiscard]] usm_kind kind_of(const void* pointer) noexcept override {
    return upstream_->kind_of(pointer);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override {
    if (auto* warm = upstream_->as_pool()) {
      if (void* block = warm->allocate_warm(nbytes, alignment, &on)) [[likely]] {
        return block;
      }
    }
    return upstream_->allocate(nbytes, alignment, on);
  }
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override {
    if (auto* warm = upstream_->as_pool();
        warm != nullptr && warm->deallocate_warm(pointer, behind)) [[likely]] {
      return {};
    }
    return upstream_->deallocate(pointer, nbytes, behind);
  }
  [[nodiscard]] memory_usage usage() noexcept override { return upstream_->usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return upstream_->trim(keep); }

 private:
  const ref<memory_resource> upstream_;
};

}  // namespace isthmus
