#pragma once
// Where a pool's regions come from: the driver's allocations, chunks that can move, or another
// resource.

#include <atomic>

#include "memory/budget.hpp"
#include "memory/driver_counts.hpp"
#include "memory/free_poison.hpp"
#include "memory/grain_table.hpp"
#include "memory/live_counts.hpp"
#include "memory/memory_resource.hpp"
#include "memory/page_map.hpp"
#include "memory/pool_upstream.hpp"

namespace isthmus {

// Addresses for chunks that lie side by side. Where chunks divide each owns the addresses that it
// lies at; elsewhere all go when the last user does.
struct reservation {
  std::byte* base;
  std::size_t nbytes;
  std::size_t filled = 0;               // by chunks, from the first byte on
  std::atomic<std::uint32_t> users{1};  // its chunks, and whoever is putting them there
};

// Whole grains of the driver's memory, which go back, or move, as a whole; of a pool over another
// resource, of that one's.
struct region {
  void* from_driver = nullptr;
  std::size_t driver_bytes = 0;
  std::byte* base = nullptr;
  grain_table::index count = 0;
  reservation* in = nullptr;   // of a chunk that does not divide
  allocation* lent = nullptr;  // upstream's, held
  grain_table::index first = grain_table::k_none;
  std::uint32_t chunk = 0;  // its number, as it may be at several places; of one that divides 0
  // Of upstream's memory, an order (core/order.hpp): of what is noted with one, the pool's blocks
  // in it have greater ones, and upstream's block lesser ones.
  std::uint64_t since = 0;

  [[nodiscard]] std::size_t nbytes() const noexcept { return std::size_t{count} * k_grain_bytes; }
};

// Safe for threads. Every call but the counts may call the driver: outside all locks.
class region_source {
 public:
  struct sizes {
    std::size_t growth_bytes;  // asked of the driver at a time, at least; 0: by itself
    std::size_t
        soft_limit_bytes;       // of the driver's, beyond which it asks for no more than is needed
    std::size_t limit_bytes;    // never more
    std::size_t initial_bytes;  // asked for at once; not given back for others
  };
  // `shared`: what it holds together with other sources; may be null, as may `upstream`. `live`
  // counts what the driver gave; null: nothing does.
  region_source(context& home, device& where, usm_kind kind, const sizes& how, ref<budget> shared,
                ref<memory_resource> upstream, bool remaps, live_counts* live) noexcept;

  [[nodiscard]] pool_upstream& upstream() noexcept { return upstream_; }
  [[nodiscard]] const pool_upstream& upstream() const noexcept { return upstream_; }
  // Whether its regions are chunks.
  [[nodiscard]] bool moves() const noexcept { return chunks_ != nullptr; }
  // Bytes that a chunk is a multiple of. Pre: it moves.
  [[nodiscard]] std::size_t unit() const noexcept { return chunks_->granularity(); }
  [[nodiscard]] bool divides() const noexcept { return moves() && chunks_->divides(); }
  // Cuts `count` grains off the front of a chunk; the rest stays in `whole`. Pre: it divides.
  [[nodiscard]] region cut(region& whole, grain_table::index count) noexcept;
  // How much to ask for where so much is needed.
  [[nodiscard]] std::size_t growth_for(std::size_t needed) const noexcept;

  // One that cannot move. OUT_OF_MEMORY beyond the limit or the budget; errors as the driver's.
  [[nodiscard]] result<region> allocate(std::size_t nbytes);
  void give_back(const region& gone) noexcept;

  // Pre, from here on: it moves. One thread fills a reservation, from the first byte on, and then
  // lets go of it.
  [[nodiscard]] result<reservation*> reserve(std::size_t nbytes);
  void let_go(reservation& of) noexcept;
  // A new chunk; errors as `allocate`.
  [[nodiscard]] result<region> create(reservation& in, std::size_t nbytes);
  // Whether what work still uses can move: whoever comes behind that work uses it at the new place.
  [[nodiscard]] bool moves_in_order() const noexcept { return moves() && chunks_->stays_behind(); }
  // Gives the old place, to be left once nothing uses it. In an error it stays where it is, and
  // nothing more may come into the reservation. Pre: nothing uses it, unless it moves in order. May
  // throw std::bad_alloc, and then nothing was done.
  [[nodiscard]] result<region> move(region& which, reservation& to);
  void leave(const region& old) noexcept;

  // A chunk that moves counts in both maps and unmaps.
  // OUT_OF_MEMORY for more than the limit, or the budget's, ever allows.
  [[nodiscard]] result<void> fits(std::size_t nbytes) const;
  // What to do where so much was needed and refused, while so much of what is held was free.
  [[nodiscard]] const char* remedy(std::size_t needed, std::size_t free) const noexcept;
  [[nodiscard]] const driver_counts& counts() const noexcept { return counts_; }
  [[nodiscard]] const sizes& how() const noexcept { return how_; }
  [[nodiscard]] budget* shared() const noexcept { return shared_.get(); }
  [[nodiscard]] const free_poison& poison() const noexcept { return poison_; }

 private:
  // The driver is asked for so much where so much is needed.
  [[nodiscard]] std::size_t asked_for(std::size_t needed) const noexcept;
  [[nodiscard]] result<void> claim(std::size_t nbytes);
  [[nodiscard]] result<region> take(const allocation_request& request);
  void fill(reservation& in, std::size_t nbytes) noexcept;
  void unclaim(std::size_t nbytes) noexcept;

  context& home_;
  device& where_;
  const usm_kind kind_;
  const sizes how_;
  const ref<budget> shared_;
  pool_upstream upstream_;
  chunk_source* const chunks_;
  live_counts* const live_;
  const free_poison poison_;
  driver_counts counts_;
  std::atomic<std::uint32_t> last_chunk_{0};
};

}  // namespace isthmus
