#pragma once
// The blocks of a pool that no lane has: a list for each size class, in shards.
//
// A thread has one shard, so that threads which allocate and free much do not meet at one lock, and
// each mostly gets blocks of slabs that it alone uses. What its shard does not have it takes from
// others', unless all that is free in slabs is little beside what the pool holds: then it gets a
// slab of its own if there is room for one, since threads that have turns at the blocks of one slab
// write the same lines of the cache. A block goes back to the shard of its slab, a batch to that of
// who freed it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "memory/central_shard.hpp"
#include "memory/size_class.hpp"

namespace isthmus {

// Safe for threads.
class central_lists {
 public:
  static constexpr unsigned k_shards = 16;

  // `in_batch(block_bytes)`: blocks. Errors: `std::bad_alloc`.
  template <class InBatch>
  central_lists(queue_slots& slots, free_poison poison, const size_classes& classes,
                InBatch&& in_batch)
      : count_{classes.count()} {
    for (unsigned each = 0; each < count_; ++each) {
      const auto nbytes = classes.bytes_of(each);
      classes_.at(each).lay_out({&slots, poison, nbytes, in_batch(nbytes)});
    }
  }

  // Blocks that are good for the queue in slot `whom`; 0 if there are none.
  [[nodiscard]] std::size_t take_own(unsigned size_class, std::span<void*> out,
                                     queue_slots::slot whom, unsigned shard) noexcept;
  // The same, of other shards than this.
  [[nodiscard]] std::size_t take_others(unsigned size_class, std::span<void*> out,
                                        queue_slots::slot whom, unsigned shard) noexcept;
  // Whether `take_own` or `take_others` would find any.
  [[nodiscard]] bool has(unsigned size_class, queue_slots::slot whom) const noexcept;
  // Whether so many blocks that come back would be kept as they are, and not be put into slabs.
  [[nodiscard]] bool would_keep(unsigned size_class, std::size_t blocks,
                                unsigned shard) const noexcept {
    return classes_.at(size_class).at(shard).has_room_for(blocks);
  }
  // The blocks of a slab that are in it. Pre: the caller has one of the others.
  [[nodiscard]] central_shard::share share_of(unsigned size_class, const slab& of) const noexcept {
    return classes_.at(size_class).at(of.shard).share_of(of);
  }
  // The slabs that have all their blocks now, as a list by `after`: they go back to the run heap.
  [[nodiscard]] slab* give(unsigned size_class, std::span<void* const> blocks, ticket freed,
                           unsigned shard) noexcept;
  // Takes the first blocks of a slab just made, and adds it.
  [[nodiscard]] std::size_t add(unsigned size_class, slab& made, std::span<void*> out,
                                unsigned shard) noexcept;
  // All batches into their slabs; what `give` gives, and slabs that nobody took a block of.
  [[nodiscard]] slab* flush(unsigned size_class) noexcept;
  // Of that class, as they were a moment ago.
  [[nodiscard]] std::uint32_t slabs(unsigned size_class) const noexcept {
    return classes_[size_class].slabs.load(std::memory_order_relaxed);
  }
  // Of all blocks that are here, as they were a moment ago.
  [[nodiscard]] std::size_t free_bytes() const noexcept;
  // INTERNAL for a slab that contradicts itself, or a block in two places.
  [[nodiscard]] result<void> verify() noexcept;

 private:
  struct one_class {
    one_class() noexcept = default;
    one_class(const one_class&) = delete;
    one_class& operator=(const one_class&) = delete;
    ~one_class();

    void lay_out(const central_shard::layout& its);
    // Null if nobody took a block there yet.
    [[nodiscard]] central_shard* find(unsigned shard) const noexcept {
      return shards[shard].load(std::memory_order_acquire);
    }
    // The first where it is not there.
    [[nodiscard]] central_shard& at(unsigned shard) const noexcept {
      auto* const found = find(shard);
      return found != nullptr ? *found : *find(0);
    }
    // Made if need be, and if there is memory.
    [[nodiscard]] central_shard& open(unsigned shard) noexcept;
    [[nodiscard]] slab* put_into_slabs(std::span<void* const> blocks, ticket freed,
                                       slab* whole) const noexcept;

    std::array<std::atomic<central_shard*>, k_shards> shards{};
    central_shard::layout how{};
    std::atomic<std::uint32_t> slabs{0};
  };
  // What came less what went, of those who have a shard: together how much is here.
  struct alignas(64) account {
    std::atomic<std::int64_t> bytes{0};
  };

  void count(unsigned size_class, std::int64_t blocks, unsigned shard) noexcept {
    const auto nbytes = static_cast<std::int64_t>(classes_[size_class].how.block_bytes);
    accounts_[shard].bytes.fetch_add(blocks * nbytes, std::memory_order_relaxed);
  }
  [[nodiscard]] slab* let_go(unsigned size_class, slab* whole, unsigned shard) noexcept;

  const unsigned count_;
  std::array<one_class, size_classes::k_most> classes_;
  std::array<account, k_shards> accounts_{};
};

}  // namespace isthmus
