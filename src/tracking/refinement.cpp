// SPDX-License-Identifier: Apache-2.0
#include "tracking/refinement.hpp"

#include <algorithm>

#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

constexpr std::size_t k_chunk = os::k_huge_page;
// The older half of the samples is forgotten when there are this many.
constexpr std::size_t k_max_samples = 128;
// The share of dense samples, relative to `max_sparse_share`, that still indicates sparse writes.
// One more dense sample is assumed than there are.
constexpr double k_max_dense_share = 0.5;
// If at least this share of the samples indicates dense writes, one chunk in `k_dense_stride` is
// sampled in each scan.
constexpr std::size_t k_min_dense_samples = k_max_samples / 4;
constexpr double k_min_dense_share = 7.0 / 8;
constexpr std::size_t k_dense_stride = 8;
// Samples in a row of one chunk that indicate sparse writes by themselves, in units of
// 1 / `max_sparse_share`. A chunk that is written more densely than that share is mistaken for a
// sparse one with a probability of exp(-3), 5 %.
constexpr double k_samples_alone = 3;
constexpr double k_min_scans_after_failure = 8;
constexpr int k_max_failures = 5;  // more do not delay the next trial longer
// Trials that follow one successful trial.
constexpr double k_trials_after_success = 4;

}  // namespace

Refinement::Refinement(std::size_t nbytes, const PageCosts& costs)
    : nbytes_{nbytes},
      chunks_((nbytes + k_chunk - 1) / k_chunk),
      costs_{costs},
      max_small_{costs.max_small(chunks_.size())},
      begins_small_{nbytes != 0 &&
                    chunks_.size() <= std::min(PageCosts::k_free_chunks, max_small_)} {
  for (auto* each : {&touched_, &candidates_, &requested_, &changes_.split, &changes_.merge}) {
    each->reserve(chunks_.size());
  }
  if (begins_small_) {
    std::fill(chunks_.begin(), chunks_.end(), Chunk{.state = Resolution::initial});
    small_ = chunks_.size();
  }
}

const Refinement::Changes& Refinement::evaluate(const RangeSet& found,
                                                const TakeSample& take_sample) noexcept {
  for (auto* each : {&touched_, &candidates_, &changes_.split, &changes_.merge}) {
    each->clear();
  }
  ++scans_;
  copies_ = 0;
  count(found);
  for (const auto number : touched_) {
    evaluate_chunk(number, take_sample);
    end_scan(chunks_[number]);
  }
  update_budgets();
  select_candidates();
  split_candidates();
  return changes_;
}

void Refinement::update_budgets() noexcept {
  while (samples_ > k_max_samples) {
    samples_ /= 2;
    dense_samples_ /= 2;
  }
  const auto max_trials = std::max(trials_, costs_.max_trials(copies_));
  trials_ = std::min(max_trials, trials_ + costs_.trials_earned(copies_));
}

ByteRange Refinement::range_of(std::size_t number) const noexcept {
  return {number * k_chunk, std::min((number + 1) * k_chunk, nbytes_)};
}

void Refinement::count(const RangeSet& found) noexcept {
  for (const auto& range : found) {
    for (auto at = range.begin; at < std::min(range.end, nbytes_);) {
      const auto number = at / k_chunk;
      const auto end = std::min(range.end, range_of(number).end);
      if (chunks_[number].written == 0) {
        touched_.push_back(number);
      }
      chunks_[number].written += static_cast<std::uint32_t>(end - at);
      at = end;
    }
  }
}

void Refinement::evaluate_chunk(std::size_t number, const TakeSample& take_sample) noexcept {
  const auto& chunk = chunks_[number];
  const bool is_whole = chunk.state == Resolution::whole;
  if (is_whole && chunk.written < range_of(number).nbytes()) {
    keep_small(number);  // the kernel provided no huge page, or split it
  } else if (!is_whole && chunk.is_copied) {
    evaluate_small(number);
  } else if (chunk.is_copied) {
    ++copies_;
    if (is_sampled(number)) {
      evaluate_whole(number, take_sample(number));
    }
  }
}

// A chunk that becomes small in this scan was not written by small pages yet.
void Refinement::end_scan(Chunk& chunk) noexcept {
  if (chunk.is_copied || chunk.state == Resolution::whole) {
    chunk.round_written = 0;
  }
  if (chunk.state != Resolution::whole) {
    chunk.round_written = static_cast<std::uint32_t>(
        std::min<std::size_t>(std::size_t{chunk.round_written} + chunk.written, k_chunk));
  }
  chunk.written = 0;
  chunk.is_copied = false;
}

// The writes before the first copy usually fill the memory.
void Refinement::note_copied(const ByteRange& range) noexcept {
  const auto end = std::min((range.end + k_chunk - 1) / k_chunk, chunks_.size());
  for (auto number = range.begin / k_chunk; number < end; ++number) {
    auto& chunk = chunks_[number];
    chunk.round_written = chunk.was_copied ? chunk.round_written : 0;
    chunk.is_copied = true;
    chunk.was_copied = true;
  }
}

bool Refinement::is_sampled(std::size_t number) const noexcept {
  const bool is_dense =
      samples_ >= k_min_dense_samples &&
      static_cast<double>(dense_samples_) >= k_min_dense_share * static_cast<double>(samples_);
  return max_small_ != 0 && (!is_dense || (number + scans_) % k_dense_stride == 0);
}

// The first change usually fills the memory and says nothing about later writes.
void Refinement::evaluate_whole(std::size_t number, bool has_changed) noexcept {
  auto& chunk = chunks_[number];
  const bool fills = has_changed && !chunk.is_filled;
  chunk.is_filled = chunk.is_filled || has_changed;
  samples_ += fills ? 0U : 1U;
  dense_samples_ += has_changed && !fills ? 1U : 0U;
  if (has_changed) {
    chunk.sparse_scans = 0;
    return;
  }
  chunk.sparse_scans = static_cast<std::uint16_t>(std::min(chunk.sparse_scans + 1, 0xffff));
  candidates_.push_back(number);
}

void Refinement::evaluate_small(std::size_t number) noexcept {
  auto& chunk = chunks_[number];
  if (chunk.state == Resolution::always_small || chunk.state == Resolution::requested) {
    return;
  }
  const auto share = static_cast<double>(std::max(chunk.written, chunk.round_written)) /
                     static_cast<double>(range_of(number).nbytes());
  if (chunk.state != Resolution::initial) {
    saved_ = std::max(saved_ + 1 - share / costs_.max_sparse_share(), 0.0);
  }
  if (share <= costs_.max_sparse_share() || chunk.state == Resolution::initial) {
    trials_ += chunk.state == Resolution::on_trial ? k_trials_after_success : 0;
    chunk.state = Resolution::small;
    return;
  }
  const auto failures = static_cast<std::uint8_t>(std::min(chunk.failures + 1, k_max_failures));
  chunk = {.written = chunk.written, .failures = failures, .is_filled = true, .was_copied = true};
  has_failed_ = true;
  --small_;
  changes_.merge.push_back(number);
}

std::size_t Refinement::capacity() const noexcept {
  return std::max(max_small_, std::min(chunks_.size(), costs_.small_earned(saved_)));
}

bool Refinement::is_sparse() const noexcept {
  const auto samples = static_cast<double>(samples_), dense = static_cast<double>(dense_samples_);
  return dense + 1 <= samples * costs_.max_sparse_share() * k_max_dense_share;
}

double Refinement::required_scans(const Chunk& chunk) const noexcept {
  const auto alone = k_samples_alone / costs_.max_sparse_share();
  if (chunk.failures != 0) {
    const auto scans = is_sparse() ? k_min_scans_after_failure : alone;
    return std::max(scans, k_min_scans_after_failure) * (1 << (chunk.failures - 1));
  }
  return is_sparse() ? 1 : alone;
}

// If not all candidates can be split, those with the most sparse samples are.
void Refinement::select_candidates() noexcept {
  std::erase_if(candidates_, [this](std::size_t number) {
    return chunks_[number].sparse_scans < required_scans(chunks_[number]);
  });
  const auto available = capacity() - std::min(small_, capacity());
  if (candidates_.size() > available) {
    const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(available);
    std::partial_sort(candidates_.begin(), last, candidates_.end(),
                      [this](std::size_t one, std::size_t other) {
                        return chunks_[one].sparse_scans > chunks_[other].sparse_scans;
                      });
    candidates_.resize(available);
  }
}

void Refinement::split_candidates() noexcept {
  for (const auto number : candidates_) {
    if (has_failed_ && trials_ < 1) {
      return;
    }
    trials_ -= has_failed_ ? 1 : 0;
    chunks_[number].state = has_failed_ ? Resolution::on_trial : Resolution::small;
    ++small_;
    changes_.split.push_back(number);
  }
}

void Refinement::keep_small(std::size_t number) noexcept {
  if (number < chunks_.size()) {
    small_ += is_whole(number) ? 1U : 0U;
    chunks_[number].state = Resolution::always_small;
  }
}

void Refinement::keep_all() noexcept {
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    keep_small(number);
  }
}

void Refinement::request_small(std::size_t number) noexcept {
  if (number >= chunks_.size() || chunks_[number].state == Resolution::requested ||
      chunks_[number].state == Resolution::always_small) {
    return;
  }
  small_ += is_whole(number) ? 1U : 0U;
  chunks_[number].state = Resolution::requested;
  requested_.push_back(number);
}

const std::vector<std::size_t>& Refinement::release_small_except(const RangeSet& needed) noexcept {
  changes_.merge.clear();
  std::erase_if(requested_, [&](std::size_t number) {
    if (needed.overlaps(range_of(number))) {
      return false;
    }
    const bool too_many = small_ > capacity();
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
