// SPDX-License-Identifier: Apache-2.0
#pragma once
// A memory resource: allocates memory in one context, on one device, usually of one kind.
//
// The interface of the provider, of pools and of adaptors. Resources compose: an adaptor allocates
// from an upstream resource. Allocation and deallocation are ordered by a queue, so that memory may
// be freed and reused before the work that uses it has completed. Implementations are thread-safe.

#include <algorithm>
#include <vector>

#include "backend/context.hpp"
#include "backend/queue.hpp"
#include "memory/base/cut_block.hpp"

namespace isthmus {

class Pool;

class MemoryResource : public RefCounted {
 public:
  MemoryResource(Context& context, Device& device, UsmKind kind, Pool* self = nullptr)
      : MemoryResource{context, device, kind, {self != nullptr, set_of(kind)}, self} {}

  [[nodiscard]] Context& context() const noexcept { return *context_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] UsmKind kind() const noexcept { return kind_; }
  // A set of kinds: bit 1 << kind for each.
  using KindSet = std::uint32_t;
  [[nodiscard]] static constexpr KindSet set_of(UsmKind kind) noexcept {
    return KindSet{1} << static_cast<unsigned>(kind);
  }
  // The kinds of memory that `allocate` may return.
  [[nodiscard]] KindSet kinds() const noexcept { return nature_.kinds; }
  // Whether this is a pool: it checks requests, recovers from a lack of memory and orders frees by
  // itself, and its frees never wait.
  [[nodiscard]] bool is_pool() const noexcept { return self_ != nullptr; }
  // This resource, if it is a pool, else null. For `memory` alone; other layers use `pool_of`
  // (memory/pool/pool_of.hpp). Avoids virtual calls, each of which would take as long as a pool's
  // fast path.
  [[nodiscard]] Pool* as_pool() const noexcept { return self_; }
  // Adds the resources at the ends of its chains of upstreams to `out`, each once. Adds itself if
  // it has no upstream.
  virtual void collect_bases(std::vector<MemoryResource*>& out) {
    if (std::find(out.begin(), out.end(), this) == out.end()) {
      out.push_back(this);
    }
  }

  // The memory may be used by work that is submitted later to `queue`, a queue of this context.
  // `nbytes` is not 0. Any alignment is accepted; 0 requests the device's base alignment.
  [[nodiscard]] virtual Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                               Queue& queue) = 0;
  // Fast paths of `allocate` and `deallocate`, which cost as much as those of a pool. They return
  // null or false for every request that they cannot serve and for every error; the caller then
  // calls the full function. Not called in a forked child.
  [[nodiscard]] virtual void* allocate_fast([[maybe_unused]] std::size_t nbytes,
                                            [[maybe_unused]] std::size_t alignment,
                                            [[maybe_unused]] Queue* queue) noexcept {
    return nullptr;
  }
  [[nodiscard]] virtual bool deallocate_fast([[maybe_unused]] void* pointer,
                                             [[maybe_unused]] std::size_t nbytes,
                                             [[maybe_unused]] Queue* queue) noexcept {
    return false;
  }
  // Whether all memory of this resource may be deallocated while work on the queue still uses it.
  // If false, the resource that allocated a block (`resource_of`) may still allow it; otherwise the
  // caller must wait until nothing uses the block.
  [[nodiscard]] bool orders_frees() const noexcept { return nature_.orders_frees; }
  // The memory is reused only after all work submitted so far to `after`, a queue of this context.
  // `after` is null if nothing uses the memory, which is so if `orders_frees` is false.
  // Fails with INVALID_ARGUMENT, without effect, for a pointer that this resource did not allocate
  // or that was freed before, as far as the resource can detect that.
  virtual Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept = 0;
  // The resource at the end of the chain of upstreams from which a block was allocated.
  [[nodiscard]] virtual MemoryResource& resource_of([[maybe_unused]] const void* pointer,
                                                    [[maybe_unused]] std::size_t nbytes) noexcept {
    return *this;
  }
  // Whether the memory that it returns may be part of an allocation that has a record.
  [[nodiscard]] virtual bool suballocates() const noexcept { return false; }
  // The block at an address inside an area that this resource added to the table of cut areas
  // (cut_areas.hpp). Called under that table's lock, so it calls no driver and takes only locks of
  // this resource.
  [[nodiscard]] virtual CutBlock block_at([[maybe_unused]] const void* pointer) noexcept {
    return {};
  }

  // Whether its memory comes from the driver, directly or through a pool. A free then calls no
  // other resource, so the caller may hold locks of other resources.
  [[nodiscard]] virtual bool is_driver_backed() const noexcept { return false; }
  // Whether it may release blocks that the caller has not freed, as a monotonic resource does.
  [[nodiscard]] virtual bool may_release_early() const noexcept { return false; }

  struct MemoryUsage {
    std::size_t held_bytes = 0;  // obtained from the driver
    std::size_t free_bytes = 0;  // part of these: in no block, thread cache or slab
    std::uint64_t maps = 0;      // allocations by the driver so far, and mappings at a new address
    std::uint64_t unmaps = 0;    // releases to the driver so far, and removed mappings

    MemoryUsage& operator+=(const MemoryUsage& other) noexcept {
      held_bytes += other.held_bytes;
      free_bytes += other.free_bytes;
      maps += other.maps;
      unmaps += other.unmaps;
      return *this;
    }
  };
  [[nodiscard]] virtual MemoryUsage usage() noexcept { return {}; }
  // Returns free memory to the driver while more than `keep` bytes are held. Returns the bytes
  // released.
  virtual std::size_t trim([[maybe_unused]] std::size_t keep) noexcept { return 0; }
  // Checks all metadata of the resource. Fails with INTERNAL for damage by the resource itself, and
  // INVALID_ARGUMENT for damage by the caller. Slow; may block other threads.
  [[nodiscard]] virtual Result<void> verify() { return {}; }

 protected:
  struct Nature {
    bool orders_frees;
    KindSet kinds;
  };
  MemoryResource(Context& context, Device& device, UsmKind kind, Nature nature,
                 Pool* self = nullptr)
      : context_{&context}, device_{device}, kind_{kind}, nature_{nature}, self_{self} {}

 private:
  Ref<Context> context_;
  Device& device_;
  UsmKind kind_;
  const Nature nature_;
  Pool* const self_;
};

}  // namespace isthmus
