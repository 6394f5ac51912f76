// SPDX-License-Identifier: Apache-2.0
#pragma once
// The resource that a pool obtains its memory from, if that is not the driver.
//
// It may be code of the program, which may call the library, and even the same pool. So it is
// called with no lock held. Memory that it returns gets an allocation record, as the chunks of
// sub-allocating resources do. The record keeps alive the allocation that the memory is part of.
// Thread-safe after `open`.

#include "memory/allocation.hpp"

namespace isthmus {

class PoolUpstream {
 public:
  // UNSUPPORTED for a resource that returns memory of several kinds or devices, may release memory
  // that was not freed, or allocates from a pool: the page map has one pool per page.
  [[nodiscard]] static Result<void> check(MemoryResource& resource);

  // `resource` may be null: then there is no upstream.
  explicit PoolUpstream(Ref<MemoryResource> resource) noexcept : resource_{std::move(resource)} {}
  [[nodiscard]] bool is_set() const noexcept { return static_cast<bool>(resource_); }

  // Pre: called once, before the other functions. Errors as `Context::create_queue`.
  [[nodiscard]] Result<void> open();
  // Allocates memory that is usable on any queue. Errors as upstream's; CALLBACK if it returns
  // memory of a pool.
  [[nodiscard]] Result<Ref<Allocation>> allocate(const AllocationRequest& request);
  std::size_t trim(std::size_t keep) const noexcept { return is_set() ? resource_->trim(keep) : 0; }
  [[nodiscard]] Result<void> verify() const {
    return is_set() ? resource_->verify() : Result<void>{};
  }

 private:
  Ref<MemoryResource> resource_;
  // Upstream returns memory that is usable on the queue of the request. This queue is used for
  // nothing else, so memory that is usable on it is usable on every queue.
  Ref<Queue> queue_;
};

}  // namespace isthmus
