// SPDX-License-Identifier: Apache-2.0
// The state of a unified buffer, compared with a model of each byte: the contents of both copies,
// and which side has written the byte since they were the same. Random writes, transfers that
// succeed, fail or are pending, conflicts, and exact writes whose recording fails at first. Every
// change is also attempted without memory for each of its allocations, and then has no effect.
#include "unified/dirty_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/no_memory.hpp"
#include "unified/exact_writes.hpp"

namespace isthmus::dirty_state_test {
namespace {

constexpr std::size_t k_bytes = 48;
constexpr ByteRange k_all{0, k_bytes};

using contents = std::array<int, k_bytes>;  // the number of the write that each byte holds
using flags = std::array<bool, k_bytes>;

flags flags_of(const RangeSet& ranges) {
  flags result{};
  for (const auto& range : ranges) {
    std::fill(result.begin() + static_cast<std::ptrdiff_t>(range.begin),
              result.begin() + static_cast<std::ptrdiff_t>(range.end), true);
  }
  return result;
}

template <class Visit>
void for_each_byte(const RangeSet& ranges, Visit visit) {
  for (const auto& range : ranges) {
    for (auto at = range.begin; at < range.end; ++at) {
      visit(at);
    }
  }
}

struct transfer {
  RangeSet ranges;
  bool succeeds = true;
  RangeSet outdated{};
  contents copied{};  // of a download

  [[nodiscard]] RangeSet current() const {
    auto left = ranges;
    left.remove(outdated);
    return left;
  }
};

struct setup {
  const char* name;
  Winner winner = Winner::none;
  bool one_memory = false;
};

// Both copies, as the simplest correct implementation knows them.
struct byte_model {
  flags host_wrote{}, device_wrote{};  // not copied to the other side
  flags failed_upload{};               // and not written by the host since
  flags host_held{}, device_held{};
  contents host{}, device{};
  contents newest{};  // unknown for a conflict
  bool host_valid = false, device_valid = false;
};

class dirty_state : public testing::TestWithParam<setup> {
 protected:
  // Everything that a caller sees of the state.
  struct seen {
    RangeSet host_dirty, device_dirty, host_held, device_held;
    BufferState summary;
    bool operator==(const seen&) const = default;
  };
  [[nodiscard]] seen look() const {
    return {state_.host_dirty(), state_.device_dirty(), state_.host_held(), state_.device_held(),
            state_.summary()};
  }

  // Calls `change` with memory for more and more allocations, until it succeeds.
  template <class Change>
  auto applied(Change change) {
    for (long served = 0;; ++served) {
      const auto before = look();
      std::optional<RangeSet> result;
      try {
        const support::without_memory now{served};
        result = change();
      } catch (const std::bad_alloc&) {
        result.reset();
      }
      if (result) {
        return *std::move(result);
      }
      EXPECT_TRUE(look() == before) << "changed without memory after " << served << " allocations";
    }
  }
  template <class Change>
  void apply(Change change) {
    static_cast<void>(applied([&] {
      change();
      return RangeSet{};
    }));
  }

  std::size_t below(std::size_t end) { return random_() % end; }
  bool maybe() { return below(2) == 0; }
  ByteRange any_range() {
    const auto begin = below(k_bytes);
    return {begin, begin + 1 + below(std::min<std::size_t>(k_bytes - begin, 12))};
  }
  RangeSet any_ranges() {
    RangeSet ranges;
    for (auto left = 1 + below(4); left != 0; --left) {
      ranges.add(any_range());
    }
    return ranges;
  }

  // A new write by one side, or by both sides of one memory.
  void put(std::size_t at, bool by_host) {
    const auto number = next_write_;
    if (by_host || one_memory_) {
      model_.host[at] = number;
    }
    if (!by_host || one_memory_) {
      model_.device[at] = number;
    }
  }

  void begin_host() {
    if (model_.host_valid) {
      return;
    }
    apply([&] { state_.begin_host(); });
    if (model_.device_valid) {
      model_.device_wrote.fill(true);
    } else {
      ++next_write_;
      for (std::size_t at = 0; at < k_bytes; ++at) {
        put(at, true);
      }
      model_.newest = model_.host;
    }
    model_.host_held.fill(!model_.device_valid || one_memory_);
    model_.host_valid = true;
  }
  void begin_device() {
    if (model_.device_valid) {
      return;
    }
    apply([&] { state_.begin_device(); });
    if (model_.host_valid && !one_memory_) {
      model_.host_wrote.fill(true);
      model_.failed_upload.fill(false);
      model_.device_held.fill(false);
    } else {
      model_.device_held.fill(true);
      if (!model_.host_valid) {
        model_.newest = model_.device;
      }
    }
    model_.device_valid = true;
  }
  void end_device() {
    if (!model_.device_valid || !model_.host_valid || one_memory_ || !uploads_.empty() ||
        !downloads_.empty() || writes_.has_device_writes() || !state_.device_dirty().empty()) {
      return;
    }
    state_.end_device();
    model_.host_wrote.fill(false);
    model_.failed_upload.fill(false);
    model_.device_held.fill(false);
    model_.device.fill(-1);
    model_.device_valid = false;
  }

  // The host write of a byte that is not in an exact write, or that does not replace device writes.
  void model_host_write(std::size_t at) {
    model_.failed_upload[at] = false;
    put(at, true);
    if (model_.device_wrote[at] && (one_memory_ || winner_ == Winner::device)) {
      model_.newest[at] = model_.device[at];
      return;
    }
    model_.host_wrote[at] = true;
    model_.device_wrote[at] = model_.device_wrote[at] && winner_ != Winner::host;
    model_.newest[at] = model_.host[at];
  }
  void discard(const RangeSet& losing_ranges) {
    apply([&] { state_.discard_host_writes(losing_ranges); });
    for_each_byte(losing_ranges, [&](std::size_t at) { model_.host_wrote[at] = false; });
  }
  void detect_writes() {
    if (!model_.host_valid) {
      return;
    }
    const auto written = writes_.without_host_ranges(any_ranges());
    ++next_write_;
    for_each_byte(written, [&](std::size_t at) {
      if (model_.host_held[at]) {
        model_host_write(at);
      }
    });
    discard(applied([&] { return state_.add_detected_writes(written); }));
  }
  void record_host_write(const RangeSet& written, bool replaces) {
    ++next_write_;
    for_each_byte(written, [&](std::size_t at) {
      model_.host_held[at] = true;
      model_.device_wrote[at] = model_.device_wrote[at] && !replaces;
      model_host_write(at);
    });
    discard(applied([&] { return state_.add_host_writes(written, replaces); }));
  }
  void mark_host() {
    if (model_.host_valid) {
      record_host_write(any_ranges(), one_memory_);
    }
  }
  void record_device_write(const RangeSet& written) {
    ++next_write_;
    if (!model_.host_valid) {
      for_each_byte(written, [&](std::size_t at) { put(at, false); });
      model_.newest = model_.device;
      return;
    }
    for (auto* pending : {&uploads_, &downloads_}) {
      for (auto& each : *pending) {
        each.outdated.add(written);
      }
    }
    apply([&] { state_.add_device_held(written); });
    for_each_byte(written, [&](std::size_t at) { model_device_write(at); });
    discard(applied([&] { return state_.add_device_writes(written); }));
  }
  void model_device_write(std::size_t at) {
    model_.device_held[at] = true;
    put(at, false);
    if (std::exchange(model_.failed_upload[at], false)) {
      model_.host_wrote[at] = false;
    }
    const bool overlaps = model_.host_wrote[at];
    model_.device_wrote[at] = one_memory_ || !overlaps || winner_ != Winner::host;
    model_.host_wrote[at] = overlaps && !one_memory_ && winner_ != Winner::device;
    model_.newest[at] = model_.device_wrote[at] ? model_.device[at] : model_.host[at];
  }
  void mark_device() {
    if (model_.device_valid) {
      record_device_write({any_range()});
    }
  }

  // Exact writes. Their end is recorded by the next call that finds memory.
  void begin_exact_write() {
    const auto range = any_range();
    if (maybe()) {
      if (model_.device_valid) {
        static_cast<void>(writes_.begin_device(range));
      }
      return;
    }
    begin_host();
    complete_downloads(range);
    writes_.reserve_host();
    writes_.begin_host({range, {range}, nullptr});
    open_ranges_.push_back(range);
  }
  void end_exact_write() {
    if (!open_ranges_.empty()) {
      const auto range = open_ranges_[below(open_ranges_.size())];
      std::erase(open_ranges_, range);
      while (auto* const write = writes_.open_host(range)) {
        write->contents_kept = maybe();
        write->has_ended = true;
      }
    }
    static_cast<void>(writes_.end_device(any_range()));
    if (maybe()) {
      const auto refuse = [](const auto&) -> Result<void> { return Error::no_memory(); };
      EXPECT_EQ(static_cast<bool>(writes_.record_ended(refuse, refuse)), !writes_.has_unrecorded());
    }
  }
  void record_ended() {
    const auto outcome = writes_.record_ended(
        [&](const ExactHostWrite& write) -> Result<void> {
          record_host_write(write.written, !write.contents_kept || one_memory_);
          return {};
        },
        [&](const ExactDeviceWrite& write) -> Result<void> {
          record_device_write({write.range});
          return {};
        });
    EXPECT_TRUE(outcome);
    EXPECT_FALSE(writes_.has_unrecorded());
  }

  [[nodiscard]] bool is_conflict(const ByteRange& range) {
    const auto conflict = flags_of(state_.conflict(range));
    bool any = false;
    for (std::size_t at = 0; at < k_bytes; ++at) {
      const bool both =
          range.begin <= at && at < range.end && model_.host_wrote[at] && model_.device_wrote[at];
      EXPECT_EQ(conflict[at], both) << at;
      any = any || both;
    }
    return any;
  }

  void upload() {
    begin_device();
    if (!model_.host_valid) {
      return;
    }
    if (one_memory_) {
      return discard(RangeSet{state_.host_dirty()});
    }
    const auto range = any_range();
    if (is_conflict(range)) {
      return;
    }
    const auto ranges = writes_.without_host_ranges(state_.host_dirty().common({range}));
    EXPECT_TRUE(state_.host_held().covers(ranges));
    submit_upload(ranges);
  }
  // The copy runs before all later device writes, so it is carried out at once.
  void submit_upload(const RangeSet& ranges) {
    if (ranges.empty()) {
      return;
    }
    DirtyState::Upload change;
    apply([&] { change = state_.prepare_upload(ranges); });
    const auto outcome = below(4);  // success, failure of the call, success or failure later
    for_each_byte(ranges, [&](std::size_t at) {
      if (outcome % 2 == 0 || maybe()) {
        model_.device[at] = model_.host[at];
      }
    });
    if (outcome == 1) {
      return;
    }
    state_.submit_upload(change);
    for_each_byte(ranges, [&](std::size_t at) { model_.host_wrote[at] = false; });
    if (outcome == 0) {
      state_.finish_upload(change);
      for_each_byte(ranges, [&](std::size_t at) { model_.device_held[at] = true; });
      return;
    }
    uploads_.push_back({ranges, outcome == 2});
  }
  // As TransferCompletion does it.
  void complete_upload(std::size_t index) {
    auto& upload = uploads_[index];
    for (std::size_t earlier = 0; earlier < index; ++earlier) {
      uploads_[earlier].outdated.add(upload.ranges);
    }
    if (upload.succeeds) {
      apply([&] { state_.add_device_held(upload.ranges); });
      for_each_byte(upload.ranges, [&](std::size_t at) { model_.device_held[at] = true; });
    } else {
      auto restored = upload.current();
      for (auto later = index + 1; later < uploads_.size(); ++later) {
        restored.remove(uploads_[later].ranges);
      }
      apply([&] { state_.restore_upload(restored); });
      for_each_byte(restored, [&](std::size_t at) {
        model_.failed_upload[at] = model_.failed_upload[at] || !model_.host_wrote[at];
        model_.host_wrote[at] = true;
      });
    }
    uploads_.erase(uploads_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void complete_any_upload() {
    if (!uploads_.empty()) {
      complete_upload(below(uploads_.size()));
    }
  }

  void download() {
    if (!model_.device_valid) {
      return;
    }
    const bool is_first = !model_.host_valid;
    begin_host();
    const auto range = any_range();
    if (is_conflict(range)) {
      return;
    }
    const bool blocks = maybe();
    if (blocks) {
      complete_downloads(range);
    }
    auto ranges = writes_.without_host_ranges(state_.device_dirty().common({range}));
    for (const auto& pending : downloads_) {
      ranges.remove(pending.current());
    }
    EXPECT_TRUE(state_.device_held().covers(ranges));
    if (!ranges.empty() && below(4) == 0) {
      if (is_first) {
        cancel_host();
      }
      return;
    }
    downloads_.push_back({ranges, blocks || below(4) != 0, {}, model_.device});
    if (blocks) {
      complete_download(downloads_.size() - 1);
    }
  }
  void cancel_host() {
    state_.cancel_host();
    model_.host_valid = false;
    model_.device_wrote.fill(false);
    model_.host_held.fill(false);
  }
  void complete_download(std::size_t index) {
    const auto& download = downloads_[index];
    auto downloaded = writes_.without_host_ranges(download.current().common(state_.device_dirty()));
    downloaded.remove(state_.host_dirty());
    if (download.succeeds) {
      apply([&] { state_.finish_download(downloaded); });
      for_each_byte(downloaded, [&](std::size_t at) {
        model_.device_wrote[at] = false;
        model_.host_held[at] = true;
        model_.host[at] = one_memory_ ? model_.host[at] : download.copied[at];
      });
    }
    downloads_.erase(downloads_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void complete_downloads(const ByteRange& range) {
    for (auto index = downloads_.size(); index-- != 0;) {
      if (downloads_[index].ranges.overlaps(range)) {
        complete_download(index);
      }
    }
  }

  void resolve() {
    const auto range = any_range();
    const bool for_host = maybe();
    complete_downloads(range);
    if (for_host) {
      apply([&] { state_.resolve_for_host(range); });
    } else {
      while (!uploads_.empty()) {
        complete_upload(0);
      }
      const auto losing_ranges = state_.losing_to_device(range);
      apply([&] { state_.resolve_for_device(losing_ranges); });
    }
    for (auto at = range.begin; at < range.end; ++at) {
      if (for_host && model_.device_wrote[at] && model_.host_held[at]) {
        model_.host_wrote[at] = true;
        model_.device_wrote[at] = model_.failed_upload[at] = false;
        model_.newest[at] = model_.host[at];
      } else if (!for_host && model_.host_wrote[at] && model_.device_held[at]) {
        model_.device_wrote[at] = true;
        model_.host_wrote[at] = false;
        model_.newest[at] = model_.device[at];
      }
    }
  }
  void forget() {
    complete_downloads(k_all);
    apply([&] { state_ = state_.synchronized(); });
    for (auto& upload : uploads_) {
      upload.outdated = {k_all};
    }
    writes_.cancel_all_device();
    ++next_write_;
    model_.host_wrote = model_.device_wrote = model_.failed_upload = {};
    for (std::size_t at = 0; at < k_bytes; ++at) {
      model_.host_held[at] = model_.host_held[at] || model_.host_valid;
      model_.device_held[at] = model_.device_held[at] || model_.device_valid;
      model_.host[at] = model_.device[at] = model_.newest[at] = next_write_;
    }
  }

  void check() {
    ASSERT_EQ(state_.host_is_valid(), model_.host_valid);
    ASSERT_EQ(state_.device_is_valid(), model_.device_valid);
    ASSERT_EQ(flags_of(state_.host_dirty()), model_.host_wrote);
    ASSERT_EQ(flags_of(state_.device_dirty()), model_.device_wrote);
    ASSERT_EQ(flags_of(state_.host_held()), model_.host_held);
    ASSERT_EQ(flags_of(state_.device_held()), model_.device_held);
    ASSERT_EQ(state_.summary(), summary());
    RangeSet uploading;
    for (const auto& upload : uploads_) {
      uploading.add(upload.current());
    }
    const auto may_differ = flags_of(uploading);
    for (std::size_t at = 0; at < k_bytes; ++at) {
      check_contents(at, may_differ[at]);
    }
  }
  // No write is lost: the copy that counts holds the newest bytes, and bytes that are dirty on
  // neither side are the same in both copies.
  void check_contents(std::size_t at, bool is_uploading) {
    const auto& m = model_;
    if (m.host_wrote[at] && m.device_wrote[at]) {
      return;
    }
    if (m.host_valid && !m.device_wrote[at]) {
      ASSERT_EQ(m.host[at], m.newest[at]) << "byte " << at;
      ASSERT_TRUE(m.host_held[at]) << "byte " << at;
    }
    if (m.device_valid && !m.host_wrote[at] && !is_uploading) {
      ASSERT_EQ(m.device[at], m.newest[at]) << "byte " << at;
      ASSERT_TRUE(m.device_held[at]) << "byte " << at;
    }
  }
  [[nodiscard]] BufferState summary() const {
    const auto any = [](const flags& of) { return std::ranges::find(of, true) != of.end(); };
    if (!model_.host_valid) {
      return model_.device_valid ? BufferState::device_only : BufferState::uninitialized;
    }
    if (any(model_.device_wrote)) {
      return BufferState::device_dirty;
    }
    if (any(model_.host_wrote)) {
      return BufferState::host_dirty;
    }
    return model_.device_valid ? BufferState::synchronized : BufferState::host_only;
  }

  // Like the calls of a unified buffer, each first records the exact writes that have ended.
  void step() {
    using member = void (dirty_state::*)();
    static constexpr member k_calls[] = {
        &dirty_state::detect_writes,
        &dirty_state::detect_writes,
        &dirty_state::mark_host,
        &dirty_state::mark_device,
        &dirty_state::mark_device,
        &dirty_state::upload,
        &dirty_state::upload,
        &dirty_state::download,
        &dirty_state::download,
        &dirty_state::complete_any_upload,
        &dirty_state::begin_exact_write,
        &dirty_state::end_exact_write,
        &dirty_state::resolve,
        &dirty_state::begin_host,
    };
    record_ended();
    if (const auto rare = below(40); rare < 3) {
      return rare == 0 ? end_device() : rare == 1 ? forget() : complete_downloads(any_range());
    }
    (this->*k_calls[below(std::size(k_calls))])();
  }
  void reset() {
    state_ = DirtyState{k_bytes, winner_, one_memory_};
    writes_ = {};
    open_ranges_.clear();
    uploads_.clear();
    downloads_.clear();
    model_ = {};
  }

  const Winner winner_ = GetParam().winner;
  const bool one_memory_ = GetParam().one_memory;
  std::mt19937_64 random_{5};
  DirtyState state_{k_bytes, winner_, one_memory_};
  ExactWrites writes_;
  std::vector<ByteRange> open_ranges_;  // of host writes that have not ended
  std::vector<transfer> uploads_;       // pending, in the order of their submission
  std::vector<transfer> downloads_;
  byte_model model_;
  int next_write_ = 0;
};
constexpr std::array k_setups{setup{"no_winner", Winner::none}, setup{"host_wins", Winner::host},
                              setup{"device_wins", Winner::device},
                              setup{"one_memory", Winner::none, true}};
INSTANTIATE_TEST_SUITE_P(each, dirty_state, testing::ValuesIn(k_setups),
                         [](const auto& of) { return std::string{of.param.name}; });

TEST_P(dirty_state, random_operations) {
  for (int round = 0; round < 60 && !HasFailure(); ++round) {
    reset();
    for (int i = 0; i < 120 && !HasFailure(); ++i) {
      SCOPED_TRACE("round " + std::to_string(round) + ", step " + std::to_string(i));
      step();
      check();
    }
  }
}

}  // namespace
}  // namespace isthmus::dirty_state_test
