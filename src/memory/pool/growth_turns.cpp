// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/growth_turns.hpp"

#include <utility>

#include "core/interrupt.hpp"

namespace isthmus {
namespace {

// The number of times that this thread has returned from the upstream of the pool whose
// `begin_upstream_wait` it called last. `wait_for_upstream` does not count these returns.
struct ThreadReturns {
  const GrowthTurns* turns = nullptr;
  std::uint32_t count = 0;
};
thread_local constinit ThreadReturns own_returns;

}  // namespace

GrowthTurns::Turn::Turn(GrowthTurns& turns) noexcept : turns_{turns} {
  if (turns_.has_upstream_) {
    turns_.at_upstream_.fetch_add(1, std::memory_order_relaxed);
  } else {
    turns_.growing_.lock();
  }
}

GrowthTurns::Turn::~Turn() {
  if (adds_memory_) {
    turns_.adding_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (turns_.has_upstream_) {
    own_returns.count += own_returns.turns == &turns_ ? 1 : 0;
    turns_.upstream_returns_.fetch_add(
        1, std::memory_order_release);  // before `at_upstream_` can become 0
    turns_.at_upstream_.fetch_sub(1, std::memory_order_release);
    os::futex_wake_all(turns_.upstream_returns_);
  } else {
    turns_.growing_.unlock();
  }
}

void GrowthTurns::Turn::begin_adding() noexcept {
  if (!std::exchange(adds_memory_, true)) {
    turns_.adding_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::uint32_t GrowthTurns::begin_upstream_wait() const noexcept {
  own_returns = {this, 0};
  return upstream_returns_.load(std::memory_order_acquire);
}

Result<bool> GrowthTurns::wait_for_upstream(std::uint32_t seen, const os::Deadline& until) const {
  seen += own_returns.turns == this ? own_returns.count : 0;
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

}  // namespace isthmus
