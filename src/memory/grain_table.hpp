// SPDX-License-Identifier: Apache-2.0
#pragma once
// All metadata of a pool's pages (`grain`), in one reserved range of which only what is touched
// takes memory: 24 bytes a page (0.037 %), and 16 more for the first page of a run in use.
//
// A table is aligned to a power of two not below its size, so that a page's record, found by the
// page map, leads to its table, and the table to its pool. Tables are never unmapped, since
// look-ups take no lock. The table of a destroyed pool is cleared and reused by another pool.

#include <array>
#include <bit>

#include "core/ref.hpp"
#include "core/spin_lock.hpp"
#include "core/status.hpp"
#include "memory/grain.hpp"
#include "memory/grain_set.hpp"
#include "memory/queue_slots.hpp"

namespace isthmus {

class context;
class device;
class memory_resource;
class pool;

class grain_table {
 public:
  using index = std::uint32_t;
  static constexpr index k_none = 0;                 // the first record is in no region
  static constexpr index k_grains = index{1} << 24;  // 1 TiB

  // OUT_OF_MEMORY if the host has no address space for it.
  [[nodiscard]] static result<grain_table*> take();
  void give_back() noexcept;

  [[nodiscard]] static grain_table& of(const grain* record) noexcept;
  [[nodiscard]] grain& operator[](index number) noexcept { return grains_[number]; }
  [[nodiscard]] ticket& ticket_of(index number) noexcept { return tickets_[number]; }
  // The pages at which one free run ends and another one begins.
  [[nodiscard]] grain_set& borders() noexcept { return borders_; }
  [[nodiscard]] index number_of(const grain* record) const noexcept {
    return static_cast<index>(record - grains_.data());
  }

  // The request that a live run was allocated for; stored for its first page.
  struct origin {
    std::atomic<std::size_t> nbytes;
    std::atomic<std::uintptr_t> queue_key;

    void set(std::size_t asked, std::uintptr_t key) noexcept {
      nbytes.store(asked, k_relaxed);
      queue_key.store(key, k_relaxed);
    }
  };
  [[nodiscard]] origin& origin_of(index number) noexcept { return origins_[number]; }

  // What all memory of the pool has in common.
  struct common_facts {
    std::atomic<device*> where{nullptr};
    std::atomic<std::uintptr_t> context_key{0};
    std::atomic<usm_kind> kind{ISTHMUS_KIND_UNKNOWN};
    std::atomic<bool> knows_live{false};  // slabs record which of their blocks are live
    std::atomic<context*> home{nullptr};
    std::atomic<memory_resource*> from{nullptr};  // the pool, while look-ups may find it
  };
  [[nodiscard]] common_facts& common() noexcept { return common_; }
  // Makes the pool findable by look-ups; null before it is destroyed.
  void set_owner(pool* owner) noexcept;
  [[nodiscard]] ref<pool> owner() noexcept;

 private:
  friend class grain_tables;
  grain_table() = default;

  std::array<grain, k_grains> grains_;
  std::array<ticket, k_grains> tickets_;
  std::array<origin, k_grains> origins_;
  grain_set borders_;
  common_facts common_;
  spin_lock lock_;
  pool* owner_ = nullptr;
  grain_table* next_spare_ = nullptr;
};

inline constexpr auto k_grain_table_alignment = std::bit_ceil(sizeof(grain_table));

inline grain_table& grain_table::of(const grain* record) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(record) & ~(k_grain_table_alignment - 1);
  return *reinterpret_cast<grain_table*>(at);
}

}  // namespace isthmus
