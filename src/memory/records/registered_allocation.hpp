// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of an allocation record (allocation.hpp) that the registry stores and compares: what the
// memory is, where it came from, and how it is nested.
//
// The facts do not change after the record was registered; the flags for division only become true.
// Thread-safe from then on.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "memory/base/memory_resource.hpp"

namespace isthmus {

struct RegistryEntry;

class RegisteredAllocation : public RefCounted {
 public:
  struct Facts {
    void* base = nullptr;
    std::size_t nbytes = 0;
    std::size_t alignment = 0;
    UsmKind kind = ISTHMUS_KIND_DEVICE;
    // Base and size were passed by the code that adopted the memory: the owner's memory may begin
    // before the base and extend past the end.
    bool is_stated = false;
  };

  [[nodiscard]] const Facts& facts() const noexcept { return facts_; }
  [[nodiscard]] bool contains(const void* pointer) const noexcept {
    return address(pointer) - address(facts_.base) < facts_.nbytes;
  }
  [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
  [[nodiscard]] Context& context() const noexcept { return queue_->context(); }
  [[nodiscard]] Device& device() const noexcept { return *device_; }
  // The resource that the memory is returned to; null: the driver, or the owner of adopted memory.
  [[nodiscard]] MemoryResource* resource() const noexcept { return resource_.get(); }
  [[nodiscard]] bool came_from(const MemoryResource& candidate) const noexcept {
    return resource_.get() == &candidate;
  }
  // Whether it is a block of a pool, whose memory may have a record itself.
  [[nodiscard]] bool is_block() const noexcept { return is_block_; }
  // Whether this allocation lies in another one that has a record. Not for blocks of pools.
  [[nodiscard]] bool is_nested() const noexcept { return is_nested_; }
  // Whether other allocations lie, or once lay, in this one. False for a nested allocation: the
  // outermost one is marked instead.
  [[nodiscard]] bool is_divided() const noexcept {
    return is_divided_.load(std::memory_order_relaxed);
  }
  // Whether a resource sub-allocates the memory. It then does not count as a block itself.
  [[nodiscard]] bool is_chunk() const noexcept { return is_chunk_.load(std::memory_order_relaxed); }

 protected:
  RegisteredAllocation(Queue& queue, const Facts& facts) noexcept
      : facts_{facts}, queue_{&queue}, device_{&queue.device()} {}
  ~RegisteredAllocation() override = default;

  [[nodiscard]] bool is_registered() const noexcept { return entry_ != nullptr; }

  Facts facts_;
  Ref<Queue> queue_;
  Device* device_;  // kept alive by the queue, the resource or the outer allocation
  Ref<MemoryResource> resource_;
  std::atomic<bool> is_divided_{false};
  std::atomic<bool> is_chunk_{false};
  bool is_nested_ = false;
  bool is_block_ = false;

 private:
  friend class Registry;
  RegistryEntry* entry_ = nullptr;  // null: not in the registry
  std::uint64_t hashed_ = 0;        // hash of its key in the registry, set by `Registry::add`
};

}  // namespace isthmus
