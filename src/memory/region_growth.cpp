// SPDX-License-Identifier: Apache-2.0
// How a region heap obtains more memory.

#include <new>
#include <utility>

#include "core/interrupt.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/region_heap.hpp"

namespace isthmus {

namespace {

// How often this thread has returned from the upstream of the heap whose `look_upstream` it called
// last. `wait_for_upstream` does not count these returns.
struct OwnTurns {
  const RegionHeap* of = nullptr;
  std::uint32_t count = 0;
};
thread_local constinit OwnTurns turns_of_this_thread;

}  // namespace

RegionHeap::Turn::Turn(RegionHeap& heap) noexcept : of_{heap} {
  if (of_.source_.upstream().is_there()) {
    of_.at_upstream_.fetch_add(1, std::memory_order_relaxed);
  } else {
    of_.growing_.lock();
  }
}

RegionHeap::Turn::~Turn() {
  if (brings_) {
    of_.fresh_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (of_.source_.upstream().is_there()) {
    turns_of_this_thread.count += turns_of_this_thread.of == &of_ ? 1 : 0;
    of_.came_back_.fetch_add(1, std::memory_order_release);  // before `at_upstream_` can become 0
    of_.at_upstream_.fetch_sub(1, std::memory_order_release);
    os::futex_wake_all(of_.came_back_);
  } else {
    of_.growing_.unlock();
  }
}

void RegionHeap::Turn::bring() noexcept {
  if (!std::exchange(brings_, true)) {
    of_.fresh_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint32_t RegionHeap::look_upstream() const noexcept {
  turns_of_this_thread = {this, 0};
  return came_back_.load(std::memory_order_acquire);
}

Result<bool> RegionHeap::wait_for_upstream(std::uint32_t seen, const os::Deadline& until) const {
  seen += turns_of_this_thread.of == this ? turns_of_this_thread.count : 0;
  const auto is_over = [&] {
    return at_upstream() == 0 || came_back_.load(std::memory_order_acquire) != seen;
  };
  ISTHMUS_TRY(wait_in_slices(until, [&](const os::Deadline& slice) {
    while (!is_over() && os::futex_wait(came_back_, seen, slice)) {
    }
    return is_over();
  }));
  return came_back_.load(std::memory_order_acquire) != seen;
}

Error RegionHeap::beyond_all(std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a pool can hold at most {}, not {}",
              describe_bytes(k_most_bytes), describe_bytes(nbytes));
}

// Chunks that one thread has taken out to move are invisible to other threads. So threads grow the
// heap one at a time, and each first tries the memory that the one before it added.
Result<RegionHeap::PageRun> RegionHeap::grow(Index count, std::size_t alignment,
                                             QueueSlots::Slot slot) {
  Turn mine{*this};
  for (auto from = Cut::sparing_idle;; from = Cut::any) {
    if (const auto found = take(count, alignment, slot, from); found.count != 0) {
      return found;
    }
    ISTHMUS_TRY(grow_for(count, alignment, slot, mine));
  }
}

Result<void> RegionHeap::grow_for(Index count, std::size_t alignment, QueueSlots::Slot slot,
                                  Turn& mine) {
  const auto slack = alignment > k_pool_page_bytes ? alignment - k_pool_page_bytes : 0;
  const auto needed = count * k_pool_page_bytes + slack;
  if (needed > k_most_bytes) {
    return beyond_all(needed);
  }
  const auto wanted = source_.growth_for(needed);
  if (source_.moves()) {
    return assemble(needed, wanted, slot);
  }
  return wanted > needed && add_region(wanted, mine) ? Result<void>{} : add_region(needed, mine);
}

Result<void> RegionHeap::grow_by(std::size_t nbytes) {
  Turn mine{*this};
  return add_region(nbytes, mine);
}

Result<void> RegionHeap::add_region(std::size_t nbytes, Turn& mine) try {
  if (nbytes > k_most_bytes) {
    return beyond_all(nbytes);
  }
  if (source_.moves()) {
    return assemble(nbytes, nbytes, QueueSlots::k_quiet);
  }
  std::vector<Piece> row(1);
  auto made = source_.allocate(nbytes);
  ISTHMUS_TRY(made);
  row.front().what = *made;
  Undo back{[&] { source_.give_back(*made); }};
  mine.bring();
  ISTHMUS_TRY(enter(row));
  back.dismiss();
  return {};
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus
