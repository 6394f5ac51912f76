// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of resources that have an upstream resource. An adaptor has the kind, context and
// device of its upstream, and forwards to it every call that the derived class does not override.
// Thread-safe, like all resources.
//
// A deallocation is forwarded to upstream and returns upstream's result, so misuse that upstream
// detects changes no counter of the adaptor. A fast path runs that of the pool at the bottom, with
// one virtual call for each resource above the pool.

#include "memory/base/free_listener.hpp"
#include "memory/pool/pool.hpp"

namespace isthmus {

// Call the fast paths of a resource. For a pool they make no virtual call, as in the C interface.
[[nodiscard]] inline void* allocate_fast_from(MemoryResource& resource, std::size_t nbytes,
                                              std::size_t alignment, Queue* queue) noexcept {
  auto* pool = resource.as_pool();
  return pool != nullptr ? pool->allocate_fast(nbytes, alignment, queue)
                         : resource.allocate_fast(nbytes, alignment, queue);
}
[[nodiscard]] inline bool deallocate_fast_to(MemoryResource& resource, void* pointer,
                                             std::size_t nbytes, Queue* queue) noexcept {
  auto* pool = resource.as_pool();
  return pool != nullptr ? pool->deallocate_fast(pointer, nbytes, queue)
                         : resource.deallocate_fast(pointer, nbytes, queue);
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
  [[nodiscard]] MemoryResource& resource_of(const void* pointer,
                                            std::size_t nbytes) noexcept override {
    return upstream_->resource_of(pointer, nbytes);
  }
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override {
    return upstream_->allocate(nbytes, alignment, queue);
  }
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override {
    return upstream_->deallocate(pointer, nbytes, after);
  }
  void freed(const void* pointer, std::size_t nbytes) noexcept override {
    notify_freed(*upstream_, pointer, nbytes);
  }
  [[nodiscard]] bool may_release_early() const noexcept override {
    return upstream_->may_release_early();
  }
  [[nodiscard]] MemoryUsage usage() noexcept override { return upstream_->usage(); }
  std::size_t trim(std::size_t keep) noexcept override { return upstream_->trim(keep); }
  [[nodiscard]] Result<void> verify() override { return upstream_->verify(); }

 protected:
  [[nodiscard]] MemoryResource& upstream() const noexcept { return *upstream_; }
  // Upstream if it is a pool, else null. Cached, so that reading it takes one load instead of two
  // dependent ones.
  [[nodiscard]] Pool* upstream_pool() const noexcept { return upstream_pool_; }

 private:
  const Ref<MemoryResource> upstream_;
  Pool* const upstream_pool_;
};

}  // namespace isthmus
