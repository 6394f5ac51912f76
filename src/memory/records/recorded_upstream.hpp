// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource as the upstream of a pool.
//
// Memory that the resource returns gets an allocation record, as the chunks of sub-allocating
// resources do. The record keeps alive the allocation that the memory is part of. Thread-safe.

#include <memory>

#include "memory/base/memory_resource.hpp"
#include "memory/base/pool_upstream.hpp"

namespace isthmus {

class RecordedUpstream final : public PoolUpstream {
 public:
  // UNSUPPORTED for a resource that returns memory of several kinds or devices, may release memory
  // that was not freed, or allocates from a pool: the page map has one pool per page. Other errors
  // as `Queue::create`.
  [[nodiscard]] static Result<std::shared_ptr<PoolUpstream>> create(Ref<MemoryResource> resource);

  // Only for `create`.
  RecordedUpstream(Ref<MemoryResource> resource, Ref<Queue> queue) noexcept
      : resource_{std::move(resource)}, queue_{std::move(queue)} {}

  [[nodiscard]] Result<Chunk> allocate(const AllocationRequest& request) override;
  std::size_t trim(std::size_t keep) noexcept override { return resource_->trim(keep); }
  [[nodiscard]] Result<void> verify() override { return resource_->verify(); }

 private:
  const Ref<MemoryResource> resource_;
  // Upstream returns memory that is usable on the queue of the request. This queue is used for
  // nothing else, so memory that is usable on it is usable on every queue.
  const Ref<Queue> queue_;
};

}  // namespace isthmus
