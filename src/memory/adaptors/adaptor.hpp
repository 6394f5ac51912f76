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
[[nodiscard]] inline void* take_warm(MemoryResource& resource, std::size_t nbytes,
                                     std::size_t alignment, Queue* queue) noexcept {
  auto* lowest = resource.as_pool();
  return lowest != nullptr ? lowest->allocate_warm(nbytes, alignment, queue)
                           : resource.allocate_warm(nbytes, alignment, queue);
}
[[nodiscard]] inline bool give_back_warm(MemoryResource& resource, void* pointer,
                                         std::size_t nbytes, Queue* queue) noexcept {
  auto* lowest = resource.as_pool();
  return lowest != nullptr ? lowest->deallocate_warm(pointer, nbytes, queue)
                           : resource.deallocate_warm(pointer, nbytes, queue);
}

class Adaptor : public MemoryResource, public FreeListener {
 public:
  explicit Adaptor(MemoryResource& upstream)
      : Adaptor{upstream, {upstream.orders_frees(), upstream.kinds()}} {}
  Adaptor(MemoryResource& upstream, Nature nature)
      : MemoryResource{upstream.context(), upstream.device(), upstream.kind(), nature},
        upstream_{&upstream},
        upstream_pool_{upstream.as_pool()} {}

  void collect_bases(std::vector<MemoryResource*>& out) override { upstream_->collect_bases(out); }
  [[nodiscard]] MemoryResource& giver_of(const void* pointer,
                                         std::size_t nbytes) noexcept override {
    return upstream_->giver_of(pointer, nbytes);
  }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override {
    return upstream_->allocate(nbytes, alignment, queue);
  }
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept override {
    return upstream_->deallocate(pointer, nbytes, behind);
  }
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(*upstream_, pointer, nbytes);
  }
  [[nodiscard]] bool may_take_back() const noexcept override { return upstream_->may_take_back(); }
  [[nodiscard]] MemoryUsage usage() noexcept override { return upstream_->usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return upstream_->trim(keep); }
  [[nodiscard]] Result<void> verify() override { return upstream_->verify(); }

 protected:
  [[nodiscard]] MemoryResource& upstream() const noexcept { return *upstream_; }
  // Upstream if it is a pool, else null: one load instead of two dependent ones.
  [[nodiscard]] Pool* upstream_pool() const noexcept { return upstream_pool_; }

 private:
  const Ref<MemoryResource> upstream_;
  Pool* const upstream_pool_;
};

}  // namespace isthmus
