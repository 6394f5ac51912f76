// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects writes next to live blocks and to freed blocks, in memory that the host can access.
//
// A block lies between two red zones, which are checked when it is freed. A freed block is poisoned
// and quarantined, and is checked again before it returns to upstream. An allocation waits for its
// queue, whose work may still use an earlier block at that address. In a callback, where an
// allocation must not wait, the block is not checked. The library frees a block only when nothing
// uses the block. Damage is reported by `verify`, and at once on the standard error stream, since
// the destruction of a buffer cannot return an error. The method is that of AddressSanitizer
// (Serebryany et al., 2012), for memory that AddressSanitizer does not cover.

#include <cstdint>

#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "memory/records/cut_areas.hpp"
#include "memory/resources/caching_adaptor.hpp"
#include "memory/resources/pointer_table.hpp"

namespace isthmus {

class DebugResource final : public CachingAdaptor {
 public:
  static constexpr std::size_t k_min_zone = 64;  // bytes; or the alignment of a request, if greater

  // UNSUPPORTED if `upstream` may return memory that the host cannot access, or may release blocks
  // that were not freed. At most `max_quarantined_bytes` of freed blocks are quarantined.
  [[nodiscard]] static Result<Ref<DebugResource>> create(MemoryResource& upstream,
                                                         std::size_t max_quarantined_bytes);
  // Called by `create`.
  DebugResource(MemoryResource& upstream, std::size_t max_quarantined_bytes)
      : CachingAdaptor{upstream, {false, upstream.kinds()}},
        max_quarantined_bytes_{max_quarantined_bytes} {}

  [[nodiscard]] MemoryResource& resource_of(const void*, std::size_t) noexcept override {
    return *this;
  }
  [[nodiscard]] bool suballocates() const noexcept override { return true; }
  // Not forwarded: upstream's block includes the red zones, and is quarantined before it returns to
  // upstream.
  void freed(const void*, std::size_t) noexcept override {}
  // CALLBACK, with nothing allocated, if the thread's interrupt function ended the wait.
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // INVALID_ARGUMENT also if a red zone was written to. The block then remains allocated until the
  // resource is destroyed.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  // Releases the quarantined blocks first.
  std::size_t trim(std::size_t keep) noexcept override;
  std::size_t release_unused() noexcept override { return release_oldest(0); }
  [[nodiscard]] std::vector<Ref<Event>> running() override { return {}; }
  // INVALID_ARGUMENT with the first damage found, by this call or earlier; else upstream's result.
  [[nodiscard]] Result<void> verify() override;

 private:
  struct BlockRecord {
    std::byte* start;  // the caller's pointer
    std::size_t nbytes;
    std::size_t zone;             // 0: the block is not checked
    BlockRecord* next = nullptr;  // freed after this one
    bool is_damaged = false;
    CutAreas::Entry area = {};  // covers all its bytes

    [[nodiscard]] std::byte* base() const noexcept { return start - zone; }
    [[nodiscard]] std::size_t all_bytes() const noexcept { return nbytes + 2 * zone; }
  };

  ~DebugResource() override;
  [[nodiscard]] Result<std::byte*> allocate_block(std::size_t nbytes, std::size_t alignment,
                                                  Queue& queue);
  [[nodiscard]] static Error damage_of_live(const BlockRecord& record) noexcept;
  [[nodiscard]] static Error damage_of_freed(const BlockRecord& record) noexcept;
  [[nodiscard]] static Error written_to(const BlockRecord& record, const std::byte* at,
                                        const char* text) noexcept;
  void report(const Error& error) noexcept;
  void quarantine(PointerTable<BlockRecord>::Entry freed) noexcept;
  // Returns the number of bytes released to upstream.
  std::size_t release_oldest(std::size_t max) noexcept;
  void insert(BlockRecord& record);
  // Returns the block to upstream and removes its area. If upstream refuses the block, its area is
  // reinserted.
  Result<void> return_to_upstream(BlockRecord& record, Queue* after) noexcept;
  [[nodiscard]] BlockRecord* pop_oldest(std::size_t max) noexcept;

  const std::size_t max_quarantined_bytes_;
  PointerTable<BlockRecord> live_;
  PointerTable<BlockRecord> freed_;
  Mutex lock_;
  BlockRecord* oldest_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  BlockRecord* newest_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  std::size_t quarantined_bytes_ ISTHMUS_GUARDED_BY(lock_) = 0;
  Error first_error_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus
