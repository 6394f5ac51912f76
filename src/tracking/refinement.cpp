// SPDX-License-Identifier: Apache-2.0
#include "tracking/refinement.hpp"

#include <algorithm>

#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_chunk = os::k_huge_page;
// If more bytes than this are written per scan, tracking the chunk whole is cheaper.
constexpr std::size_t k_max_gained_bytes = k_chunk / 8;
// Trials cost at most a sixteenth of the copies of whole chunks since the previous trial.
constexpr std::size_t k_trial_divisor = 16;
constexpr std::size_t k_max_price_factor = 256;
constexpr std::uint16_t k_min_hot_scans = 2;

}  // namespace

Refinement::Refinement(std::size_t chunks, std::size_t dense)
    : chunks_(chunks),
      max_small_{std::max<std::size_t>(1, chunks / (2 * dense))},
      min_price_{dense * k_trial_divisor},
      price_{min_price_} {
  for (auto* each : {&touched_, &hot_, &requested_, &changes_.split, &changes_.merge}) {
    each->reserve(chunks);
  }
}

const Refinement::Changes& Refinement::evaluate(const RangeSet& found) noexcept {
  for (auto* each : {&touched_, &hot_, &changes_.split, &changes_.merge}) {
    each->clear();
  }
  count(found);
  for (const auto number : touched_) {
    evaluate_chunk(number);
    chunks_[number].written = 0;
  }
  start_trials();
  return changes_;
}

void Refinement::count(const RangeSet& found) noexcept {
  for (const auto& range : found) {
    for (auto at = range.begin; at < std::min(range.end, chunks_.size() * k_chunk);) {
      const auto number = at / k_chunk;
      const auto end = std::min(range.end, (number + 1) * k_chunk);
      if (chunks_[number].written == 0) {
        touched_.push_back(number);
      }
      chunks_[number].written += static_cast<std::uint32_t>(end - at);
      at = end;
    }
  }
}

void Refinement::evaluate_chunk(std::size_t number) noexcept {
  auto& chunk = chunks_[number];
  if (chunk.state != Resolution::whole) {
    evaluate_small(number);
  } else if (chunk.written < k_chunk) {
    keep_small(number);  // the kernel provided no huge page, or split it
  } else {
    ++copies_since_trial_;
    chunk.heat = static_cast<std::uint16_t>(std::min(chunk.heat + 1, 0xffff));
    if (chunk.heat >= k_min_hot_scans) {
      hot_.push_back(number);
    }
  }
}

void Refinement::evaluate_small(std::size_t number) noexcept {
  auto& chunk = chunks_[number];
  const bool was_on_trial = chunk.state == Resolution::on_trial;
  if (chunk.state == Resolution::always_small || chunk.state == Resolution::requested) {
    return;
  }
  if (chunk.written <= k_max_gained_bytes) {
    chunk.state = Resolution::small;
    trial_size_ = was_on_trial ? std::min(2 * trial_size_, max_small_) : trial_size_;
    price_ = was_on_trial ? min_price_ / k_trial_divisor : price_;  // the trial succeeded
    return;
  }
  chunk = {.written = chunk.written};
  --small_;
  changes_.merge.push_back(number);
  if (was_on_trial) {
    trial_size_ = 1;
    price_ = std::min(std::max(price_, min_price_) * 4, min_price_ * k_max_price_factor);
  }
}

void Refinement::start_trials() noexcept {
  const auto capacity = max_small_ - std::min(small_, max_small_);
  const auto number = std::min({trial_size_, capacity, hot_.size(), copies_since_trial_ / price_});
  if (number == 0 || 4 * touched_.size() > 3 * chunks_.size()) {
    return;
  }
  const auto is_hotter = [this](std::size_t one, std::size_t other) {
    return chunks_[one].heat > chunks_[other].heat;
  };
  const auto last = hot_.begin() + static_cast<std::ptrdiff_t>(number);
  std::partial_sort(hot_.begin(), last, hot_.end(), is_hotter);
  changes_.split.assign(hot_.begin(), last);
  for (const auto each : changes_.split) {
    chunks_[each].state = Resolution::on_trial;
  }
  small_ += number;
  copies_since_trial_ = 0;
}

void Refinement::keep_small(std::size_t number) noexcept {
  if (number < chunks_.size()) {
    small_ += is_whole(number) ? 1U : 0U;
    chunks_[number].state = Resolution::always_small;
  }
}

void Refinement::request_small(std::size_t number) noexcept {
  if (is_whole(number)) {
    ++small_;
    chunks_[number].state = Resolution::requested;
    requested_.push_back(number);
  }
}

const std::vector<std::size_t>& Refinement::release_small_except(const RangeSet& needed) noexcept {
  changes_.merge.clear();
  std::erase_if(requested_, [&](std::size_t number) {
    if (needed.overlaps({number * k_chunk, (number + 1) * k_chunk})) {
      return false;
    }
    const bool too_many = small_ > max_small_;
    if (chunks_[number].state != Resolution::requested) {
      return true;
    }
    chunks_[number].state = too_many ? Resolution::whole : Resolution::small;
    if (too_many) {
      --small_;
      changes_.merge.push_back(number);
    }
    return true;
  });
  return changes_.merge;
}

}  // namespace isthmus::tracking
