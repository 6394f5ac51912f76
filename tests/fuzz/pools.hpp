// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options for pools that soon run out of memory and wait only briefly.

#include "infos.hpp"
#include "input.hpp"

namespace fuzz {

// Mostly at most 2 MiB, a few pages of the pool (64 KiB), so that pools have to request memory from
// one another; sometimes more than exists. NULL for a limit of 0.
inline isthmus_budget_t* new_budget(input& from) {
  isthmus_budget_t* budget = nullptr;
  const isthmus_status_t code = isthmus_budget_create(from.size() * 1024, &budget);
  require(code == ISTHMUS_OK || code == ISTHMUS_ERROR_INVALID_ARGUMENT);
  return budget;
}

inline isthmus_budget_info_t info_of(isthmus_budget_t* budget) {
  isthmus_budget_info_t info{};
  info.struct_size = sizeof info;
  require(isthmus_budget_info(budget, &info) == ISTHMUS_OK);
  return info;
}

inline void expect_sound(isthmus_budget_t* budget) {
  const isthmus_budget_info_t info = info_of(budget);
  require(info.held_bytes <= info.limit_bytes && info.held_bytes <= info.peak_held_bytes);
}

inline isthmus_pool_options_t pool_options(input& from, isthmus_budget_t* budget) {
  isthmus_pool_options_t options{};
  options.struct_size = from.byte() == 255 ? 1 : sizeof options;
  options.initial_bytes = from.byte() < 16 ? from.size() : 0;
  options.growth_bytes = from.byte() * std::size_t{4096};
  options.limit_bytes = from.byte() < 64 ? from.size() * 4096 : 0;
  options.flags = from.byte() % 16;
  options.soft_limit_bytes = from.byte() < 64 ? from.size() * 4096 : 0;
  options.budget = from.byte() < 128 ? nullptr : budget;
  options.decay_ns = from.byte() < 64 ? from.byte() : 0;
  options.wait_ns = from.byte() * 1000 - 1;  // never 0, which would mean one second
  return options;
}

// For tests that misuse blocks, which an unchecked pool cannot always detect.
inline isthmus_pool_options_t checked_pool_options(input& from, isthmus_budget_t* budget) {
  isthmus_pool_options_t options = pool_options(from, budget);
  options.flags &= ~std::uint32_t{ISTHMUS_POOL_UNCHECKED};
  return options;
}

// Invariants of a pool's counts, also in the snapshot of the last failed request.
inline void expect_sound(const isthmus_snapshot_t& of) {
  require(of.live_bytes + of.cached_bytes + of.waiting_bytes + of.free_bytes <= of.held_bytes);
  require(of.largest_free_bytes <= of.held_bytes);
  require(of.holder_count <= ISTHMUS_MAX_HOLDERS);
}

inline void expect_stage_counts(input& from, isthmus_resource_t* pool,
                                isthmus_oom_stage_t oom_stage) {
  isthmus_oom_stage_info_t info{};
  const isthmus_status_t code = read_info(from, info, isthmus_oom_stage_info, pool, oom_stage);
  require(info.served <= info.tried);
  if (code == ISTHMUS_OK) require(isthmus_oom_stage_name(oom_stage) != nullptr);
}

}  // namespace fuzz
