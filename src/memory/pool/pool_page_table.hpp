// SPDX-License-Identifier: Apache-2.0
#pragma once
// All metadata of a pool's pages (`PoolPage`), in one reserved address range. Only its touched
// parts take memory: 24 bytes per page (0.037 %), and 16 more for the first page of a live run.
//
// A table is aligned to a power of two not below its size, so the address of a page's record, found
// in the page map, determines the table, and the table has a pointer to its pool. Tables are never
// unmapped, since look-ups take no lock. The table of a destroyed pool is cleared and reused by
// another pool.

#include <array>
#include <bit>

#include "core/ref.hpp"
#include "core/spin_lock.hpp"
#include "core/status.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/pool_page.hpp"
#include "memory/pool/pool_page_set.hpp"
#include "memory/pool/queue_fences.hpp"

namespace isthmus {

class Context;
class Device;
class MemoryResource;

class PoolPageTable {
 public:
  using Index = std::uint32_t;
  static constexpr Index k_none = 0;                // the first record is in no region
  static constexpr Index k_pages = Index{1} << 24;  // 1 TiB

  // OUT_OF_MEMORY if the host has no address space for it.
  [[nodiscard]] static Result<PoolPageTable*> acquire();
  void release() noexcept;

  [[nodiscard]] static PoolPageTable& of(const PoolPage* record) noexcept;
  [[nodiscard]] PoolPage& operator[](Index number) noexcept { return pages_[number]; }
  [[nodiscard]] Ticket& ticket_of(Index number) noexcept { return tickets_[number]; }
  // The pages at which one free run ends and another one begins.
  [[nodiscard]] PoolPageSet& borders() noexcept { return borders_; }
  [[nodiscard]] Index number_of(const PoolPage* record) const noexcept {
    return static_cast<Index>(record - pages_.data());
  }

  // The request that a live run was allocated for; stored for its first page.
  struct Origin {
    std::atomic<std::size_t> nbytes;
    std::atomic<std::uintptr_t> queue_key;

    void set(std::size_t requested, std::uintptr_t key) noexcept {
      nbytes.store(requested, k_relaxed);
      queue_key.store(key, k_relaxed);
    }
  };
  [[nodiscard]] Origin& origin_of(Index number) noexcept { return origins_[number]; }

  // The facts that all memory of the pool has in common.
  struct CommonFacts {
    std::atomic<Device*> device{nullptr};
    std::atomic<std::uintptr_t> context_key{0};
    std::atomic<UsmKind> kind{ISTHMUS_KIND_UNKNOWN};
    std::atomic<bool> has_live_marks{false};  // slabs record which of their blocks are live
    std::atomic<Context*> context{nullptr};
    std::atomic<MemoryResource*> resource{nullptr};  // the pool, while look-ups may find it
  };
  [[nodiscard]] CommonFacts& common() noexcept { return common_; }
  // Sets the pool that look-ups find. Called with null before the pool is destroyed.
  void set_owner(MemoryResource* owner) noexcept;
  [[nodiscard]] Ref<MemoryResource> owner() noexcept;

 private:
  friend class PoolPageTables;
  PoolPageTable() = default;

  std::array<PoolPage, k_pages> pages_;
  std::array<Ticket, k_pages> tickets_;
  std::array<Origin, k_pages> origins_;
  PoolPageSet borders_;
  CommonFacts common_;
  SpinLock lock_;
  MemoryResource* owner_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  PoolPageTable* next_spare_ = nullptr;
};

inline constexpr auto k_pool_page_table_alignment = std::bit_ceil(sizeof(PoolPageTable));

inline PoolPageTable& PoolPageTable::of(const PoolPage* record) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(record) & ~(k_pool_page_table_alignment - 1);
  return *reinterpret_cast<PoolPageTable*>(at);
}

}  // namespace isthmus
