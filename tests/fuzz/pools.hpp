#pragma once
// Options of pools that are short of memory soon and wait for little.

#include "input.hpp"

namespace fuzz {

// Of 2 MiB at most, a few grains of pools that come to ask one another, but where it is of more than
// there is; NULL where it would be one of nothing.
inline isthmus_budget_t* new_budget(input& from) {
  isthmus_budget_t* made = nullptr;
  const isthmus_status_t code = isthmus_budget_create(from.size() * 1024, &made);
  require(code == ISTHMUS_OK || code == ISTHMUS_ERROR_INVALID_ARGUMENT);
  return made;
}

inline isthmus_budget_info_t info_of(isthmus_budget_t* budget) {
  isthmus_budget_info_t info{};
  info.struct_size = sizeof info;
  require(isthmus_budget_query(budget, &info) == ISTHMUS_OK);
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
  options.wait_ns = from.byte() * 1000 - 1;  // not 0, which would be a second
  return options;
}

// For who misuses what the pool gave: an unchecked one cannot always tell.
inline isthmus_pool_options_t checked_pool_options(input& from, isthmus_budget_t* budget) {
  isthmus_pool_options_t options = pool_options(from, budget);
  options.flags &= ~std::uint32_t{ISTHMUS_POOL_UNCHECKED};
  return options;
}

// All that a pool counts of itself, and what it tells of the last request that it did not meet.
inline void expect_sound(const isthmus_snapshot_t& of) {
  require(of.live_bytes + of.cached_bytes + of.waiting_bytes + of.free_bytes <= of.held_bytes);
  require(of.largest_free_bytes <= of.held_bytes);
  require(of.holder_count <= ISTHMUS_MOST_HOLDERS);
}

inline void expect_rungs(isthmus_resource_t* pool, isthmus_rung_t rung) {
  std::uint64_t tried = 0;
  std::uint64_t served = 0;
  const isthmus_status_t code = isthmus_resource_rung(pool, rung, &tried, &served);
  expect_documented(code);
  require(served <= tried);
  if (code == ISTHMUS_OK) require(isthmus_rung_name(rung) != nullptr);
}

}  // namespace fuzz
