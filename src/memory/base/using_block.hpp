// SPDX-License-Identifier: Apache-2.0
#pragma once
// A `using` block: selects the resource that serves the requests of a thread that name none.
//
// Blocks nest. A block is immutable, so several threads may be in it, and a coroutine runtime may
// move between blocks at each switch. Thread-safe.

#include <optional>

#include "core/tls.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/resource_key.hpp"

namespace isthmus {

class UsingBlock final : public RefCounted {
 public:
  // A block inside the calling thread's block. If `resource` is null, the default pools serve all
  // requests within it. Keeps the resource and the enclosing blocks alive.
  explicit UsingBlock(MemoryResource* resource);

  // Sets the block of this thread and returns the previous one; null: none. The caller keeps `next`
  // alive.
  static UsingBlock* swap_current(UsingBlock* next) noexcept;

  // The resource of the innermost block of this thread that decides about requests of that key;
  // null if these are for the default pool. Empty if no block decides.
  [[nodiscard]] static std::optional<MemoryResource*> find(const ResourceKey& key) noexcept;

 private:
  ~UsingBlock() override;

  const Ref<MemoryResource> resource_;
  Ref<UsingBlock> outer_;
  const std::optional<ResourceKey> key_;  // empty: every request

  ISTHMUS_TLS_MODEL static inline thread_local constinit UsingBlock* current_ = nullptr;
};

// While an object of this class exists, the calling thread has no current resource, except in
// blocks that it enters meanwhile. A resource creates one while it calls a function of the program,
// which could otherwise request memory from the same resource.
class WithoutCurrentResource {
 public:
  WithoutCurrentResource() noexcept : outer_{UsingBlock::swap_current(nullptr)} { ++depth_; }
  WithoutCurrentResource(const WithoutCurrentResource&) = delete;
  WithoutCurrentResource& operator=(const WithoutCurrentResource&) = delete;
  ~WithoutCurrentResource() {
    --depth_;
    UsingBlock::swap_current(outer_);
  }
  [[nodiscard]] static bool is_active() noexcept { return depth_ != 0; }

 private:
  ISTHMUS_TLS_MODEL static inline thread_local constinit int depth_ = 0;
  UsingBlock* const outer_;
};

}  // namespace isthmus
