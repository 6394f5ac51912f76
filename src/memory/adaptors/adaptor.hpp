// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of the resources over an upstream resource. It has the kind, context and device of
// upstream, and forwards to it what a derived class does not change. Thread-safe, as all resources
// are.
//
// A deallocation goes to upstream and returns its result: misuse that upstream detects changes no
// counter. The warm paths are those of the pool at the bottom, with one virtual call for each
// resource above the lowest one.

#include "memory/free_listener.hpp"
#include "memory/pool.hpp"

namespace isthmus {

// The warm paths of a resource; of a pool without a virtual call, as in the C interface.
[[nodiscard]] inline void* take_warm(memory_resource& from, std::size_t nbytes,
                                     std::size_t alignment, queue* on) noexcept {
  auto* lowest = from.as_pool();
  return lowest != nullptr ? lowest->allocate_warm(nbytes, alignment, on)
                           : from.allocate_warm(nbytes, alignment, on);
}
[[nodiscard]] inline bool give_back_warm(memory_resource& to, void* pointer, std::size_t nbytes,
                                         queue* on) noexcept {
  auto* lowest = to.as_pool();
  return lowest != nullptr ? lowest->deallocate_warm(pointer, nbytes, on)
                           : to.deallocate_warm(pointer, nbytes, on);
}

class adaptor : public memory_resource, public free_listener {
 public:
  explicit adaptor(memory_resource& upstream)
      : adaptor{upstream, {upstream.orders_frees(), upstream.kinds()}} {}
  adaptor(memory_resource& upstream, nature of)
      : memory_resource{upstream.home(), upstream.where(), upstream.kind(), of},
        upstream_{&upstream},
        upstream_pool_{upstream.as_pool()} {}

  void collect_bases(std::vector<memory_resource*>& out) override { upstream_->collect_bases(out); }
  [[nodiscard]] memory_resource& giver_of(const void* pointer,
                                          std::size_t nbytes) noexcept override {
    return upstream_->giver_of(pointer, nbytes);
  }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override {
    return upstream_->allocate(nbytes, alignment, on);
  }
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override {
    return upstream_->deallocate(pointer, nbytes, behind);
  }
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(*upstream_, pointer, nbytes);
  }
  [[nodiscard]] bool may_take_back() const noexcept override { return upstream_->may_take_back(); }
  [[nodiscard]] memory_usage usage() noexcept override { return upstream_->usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return upstream_->trim(keep); }
  [[nodiscard]] result<void> verify() override { return upstream_->verify(); }

 protected:
  [[nodiscard]] memory_resource& upstream() const noexcept { return *upstream_; }
  // Upstream if it is a pool, else null: one load instead of two dependent ones.
  [[nodiscard]] pool* upstream_pool() const noexcept { return upstream_pool_; }

 private:
  const ref<memory_resource> upstream_;
  pool* const upstream_pool_;
};

}  // namespace isthmus
