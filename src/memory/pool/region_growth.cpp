// SPDX-License-Identifier: Apache-2.0
// Growth of a region heap: obtains memory from the driver or from upstream.

#include <new>
#include <utility>

#include "core/interrupt.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/pool/region_heap.hpp"

namespace isthmus {

namespace {

// The number of times that this thread has returned from the upstream of the heap whose
// `begin_upstream_wait` it called last. `wait_for_upstream` does not count these returns.
struct ThreadReturns {
  const RegionHeap* heap = nullptr;
  std::uint32_t count = 0;
};
thread_local constinit ThreadReturns own_returns;

}  // namespace

RegionHeap::Turn::Turn(RegionHeap& heap) noexcept : heap_{heap} {
  if (heap_.source_.upstream() != nullptr) {
    heap_.at_upstream_.fetch_add(1, std::memory_order_relaxed);
  } else {
    heap_.growing_.lock();
  }
}

RegionHeap::Turn::~Turn() {
  if (adds_memory_) {
    heap_.turns_adding_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (heap_.source_.upstream() != nullptr) {
    own_returns.count += own_returns.heap == &heap_ ? 1 : 0;
    heap_.upstream_returns_.fetch_add(
        1, std::memory_order_release);  // before `at_upstream_` can become 0
    heap_.at_upstream_.fetch_sub(1, std::memory_order_release);
    os::futex_wake_all(heap_.upstream_returns_);
  } else {
    heap_.growing_.unlock();
  }
}

void RegionHeap::Turn::begin_adding() noexcept {
  if (!std::exchange(adds_memory_, true)) {
    heap_.turns_adding_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint32_t RegionHeap::begin_upstream_wait() const noexcept {
  own_returns = {this, 0};
  return upstream_returns_.load(std::memory_order_acquire);
}

Result<bool> RegionHeap::wait_for_upstream(std::uint32_t seen, const os::Deadline& until) const {
  seen += own_returns.heap == this ? own_returns.count : 0;
  const auto is_over = [&] {
    return at_upstream() == 0 || upstream_returns_.load(std::memory_order_acquire) != seen;
  };
  ISTHMUS_TRY(wait_in_slices(until, [&](const os::Deadline& slice) {
    while (!is_over() && os::futex_wait(upstream_returns_, seen, slice)) {
    }
    return is_over();
  }));
  return upstream_returns_.load(std::memory_order_acquire) != seen;
}

Error RegionHeap::exceeds_max(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a pool cannot hold {}: the maximum is {}",
              describe_bytes(nbytes), describe_bytes(k_max_bytes));
}

// Chunks that one thread has removed in order to move them are invisible to other threads. So
// threads grow the heap one at a time, and each first tries the memory that the previous thread
// added.
Result<RegionHeap::PageRun> RegionHeap::grow(Index count, std::size_t alignment,
                                             QueueSlots::EntryIndex entry) {
  Turn turn{*this};
  for (auto cut = Cut::sparing_idle;; cut = Cut::any) {
    if (const auto found = allocate(count, alignment, entry, cut); found.count != 0) {
      return found;
    }
    ISTHMUS_TRY(grow_for(count, alignment, entry, turn));
  }
}

Result<void> RegionHeap::grow_for(Index count, std::size_t alignment, QueueSlots::EntryIndex entry,
                                  Turn& turn) {
  const auto slack = alignment > k_pool_page_bytes ? alignment - k_pool_page_bytes : 0;
  const auto needed = count * k_pool_page_bytes + slack;
  if (needed > k_max_bytes) {
    return exceeds_max(needed);
  }
  const auto wanted = source_.growth_for(needed);
  if (source_.moves()) {
    return assemble(needed, wanted, entry);
  }
  return wanted > needed && add_region(wanted, turn) ? Result<void>{} : add_region(needed, turn);
}

Result<void> RegionHeap::grow_by(std::size_t nbytes) {
  Turn turn{*this};
  return add_region(nbytes, turn);
}

Result<void> RegionHeap::add_region(std::size_t nbytes, Turn& turn) try {
  if (nbytes > k_max_bytes) {
    return exceeds_max(nbytes);
  }
  if (source_.moves()) {
    return assemble(nbytes, nbytes, QueueSlots::k_no_queue);
  }
  std::vector<Piece> row(1);
  auto region = source_.allocate(nbytes);
  ISTHMUS_TRY(region);
  row.front().region = *region;
  Undo undo{[&] { source_.deallocate(*region); }};
  turn.begin_adding();
  ISTHMUS_TRY(enter(row));
  undo.dismiss();
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
