// SPDX-License-Identifier: Apache-2.0
#include "tracking/refinement.hpp"

#include <algorithm>

#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_chunk = os::k_huge_page;
constexpr std::size_t k_most_gained = k_chunk / 8;  // bytes written: above, a whole page is cheaper
// Trials cost at most a sixteenth of the copies before them.
constexpr std::size_t k_part_for_trials = 16;
constexpr std::size_t k_most_patience = 256;
constexpr std::uint16_t k_is_hot = 2;

}  // namespace

Refinement::Refinement(std::size_t chunks, std::size_t dense)
    : chunks_(chunks),
      most_small_{std::max<std::size_t>(1, chunks / (2 * dense))},
      least_price_{dense * k_part_for_trials},
      price_{least_price_} {
  for (auto* each : {&touched_, &hot_, &asked_, &changes_.split, &changes_.merge}) {
    each->reserve(chunks);
  }
}

const Refinement::Changes& Refinement::judge(const RangeSet& found) noexcept {
  for (auto* each : {&touched_, &hot_, &changes_.split, &changes_.merge}) {
    each->clear();
  }
  count(found);
  for (const auto number : touched_) {
    judge_one(number);
    chunks_[number].written = 0;
  }
  try_some();
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

void Refinement::judge_one(std::size_t number) noexcept {
  auto& one = chunks_[number];
  if (one.state != Told::whole) {
    judge_small(number);
  } else if (one.written < k_chunk) {
    keep_small(number);  // the kernel had no huge page, or split it
  } else {
    ++spent_;
    one.heat = static_cast<std::uint16_t>(std::min(one.heat + 1, 0xffff));
    if (one.heat >= k_is_hot) {
      hot_.push_back(number);
    }
  }
}

void Refinement::judge_small(std::size_t number) noexcept {
  auto& one = chunks_[number];
  const bool was_on_trial = one.state == Told::on_trial;
  if (one.state == Told::small_for_good || one.state == Told::asked_for) {
    return;
  }
  if (one.written <= k_most_gained) {
    one.state = Told::small;
    tries_ = was_on_trial ? std::min(2 * tries_, most_small_) : tries_;
    price_ = was_on_trial ? least_price_ / k_part_for_trials : price_;  // it was found to pay
    return;
  }
  one = {.written = one.written};
  --small_;
  changes_.merge.push_back(number);
  if (was_on_trial) {
    tries_ = 1;
    price_ = std::min(std::max(price_, least_price_) * 4, least_price_ * k_most_patience);
  }
}

void Refinement::try_some() noexcept {
  const auto room = most_small_ - std::min(small_, most_small_);
  const auto number = std::min({tries_, room, hot_.size(), spent_ / price_});
  if (number == 0 || 4 * touched_.size() > 3 * chunks_.size()) {
    return;
  }
  const auto hotter = [this](std::size_t one, std::size_t other) {
    return chunks_[one].heat > chunks_[other].heat;
  };
  const auto last = hot_.begin() + static_cast<std::ptrdiff_t>(number);
  std::partial_sort(hot_.begin(), last, hot_.end(), hotter);
  changes_.split.assign(hot_.begin(), last);
  for (const auto each : changes_.split) {
    chunks_[each].state = Told::on_trial;
  }
  small_ += number;
  spent_ = 0;
}

void Refinement::keep_small(std::size_t number) noexcept {
  if (number < chunks_.size()) {
    small_ += is_whole(number) ? 1U : 0U;
    chunks_[number].state = Told::small_for_good;
  }
}

void Refinement::ask_for_small(std::size_t number) noexcept {
  if (is_whole(number)) {
    ++small_;
    chunks_[number].state = Told::asked_for;
    asked_.push_back(number);
  }
}

const std::vector<std::size_t>& Refinement::need_small_only(const RangeSet& still) noexcept {
  changes_.merge.clear();
  std::erase_if(asked_, [&](std::size_t number) {
    if (still.overlaps({number * k_chunk, (number + 1) * k_chunk})) {
      return false;
    }
    const bool too_many = small_ > most_small_;
    if (chunks_[number].state != Told::asked_for) {
      return true;
    }
    chunks_[number].state = too_many ? Told::whole : Told::small;
    if (too_many) {
      --small_;
      changes_.merge.push_back(number);
    }
    return true;
  });
  return changes_.merge;
}

}  // namespace isthmus::tracking
