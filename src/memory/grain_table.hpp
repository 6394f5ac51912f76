#pragma once
// All that a pool notes about its grains, in one table of address space of which only what is
// touched takes memory: 24 bytes a grain, 0.037 %, and 16 for
// runs that are in use.
//
// A table begins at a multiple of its size, so that a record found by the page map leads to its
// table, and that to its pool. Tables are never unmapped, since who looks a pointer up takes no
// lock: that of a pool that has gone is cleared and serves the next.

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
  static constexpr index k_none = 0;                 // the first record is of no region
  static constexpr index k_grains = index{1} << 24;  // 1 TiB

  // OUT_OF_MEMORY where the host has no address space for it.
  [[nodiscard]] static result<grain_table*> take();
  void give_back() noexcept;

  [[nodiscard]] static grain_table& of(const grain* record) noexcept;
  [[nodiscard]] grain& operator[](index number) noexcept { return grains_[number]; }
  [[nodiscard]] ticket& ticket_of(index number) noexcept { return tickets_[number]; }
  // Where one free run ends and another begins.
  [[nodiscard]] grain_set& borders() noexcept { return borders_; }
  [[nodiscard]] index number_of(const grain* record) const noexcept {
    return static_cast<index>(record - grains_.data());
  }

  // Of a run that a caller has, at its first grain: how it was asked for.
  struct origin {
    std::atomic<std::size_t> nbytes;
    std::atomic<std::uintptr_t> queue_key;

    void set(std::size_t asked, std::uintptr_t key) noexcept {
      nbytes.store(asked, k_relaxed);
      queue_key.store(key, k_relaxed);
    }
  };
  [[nodiscard]] origin& origin_of(index number) noexcept { return origins_[number]; }

  // What all its memory has in common.
  struct common_facts {
    std::atomic<device*> where{nullptr};
    std::atomic<std::uintptr_t> context_key{0};
    std::atomic<usm_kind> kind{ISTHMUS_KIND_UNKNOWN};
    std::atomic<bool> knows_live{false};  // whether slabs tell which of their blocks a caller has
    std::atomic<context*> home{nullptr};
    std::atomic<memory_resource*> from{nullptr};  // the pool, for as long as it may be found
  };
  [[nodiscard]] common_facts& common() noexcept { return common_; }
  // From when on, and till when, its pool may be found. Null: it has gone, or is going.
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
