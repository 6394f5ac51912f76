// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/ranges.hpp"

#include <algorithm>
#include <memory>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus::cuda {

range_lists::range_lists() {
  spare_.reserve(k_most_blocks);
  held_.reserve(k_most_blocks);
}

// Lists in flight are inspected outside the lock, since that queries the driver.
void range_lists::sweep() {
  std::vector<held> looked_at;
  looked_at.reserve(k_most_blocks);
  {
    const std::lock_guard hold{lock_};
    std::move(held_.begin(), held_.end(), std::back_inserter(looked_at));
    held_.clear();
  }
  const auto ended = std::partition(looked_at.begin(), looked_at.end(),
                                    [](const held& each) { return each.reading->pending(); });
  const std::lock_guard hold{lock_};
  std::for_each(ended, looked_at.end(), [this](const held& each) {
    spare_.insert(spare_.end(), each.blocks.begin(), each.blocks.end());
  });
  std::move(looked_at.begin(), ended, std::back_inserter(held_));
}

bool range_lists::take_spare(std::size_t count, std::vector<block>& into) {
  const std::lock_guard hold{lock_};
  const auto from = spare_.size() - std::min(count - into.size(), spare_.size());
  into.insert(into.end(), spare_.begin() + static_cast<std::ptrdiff_t>(from), spare_.end());
  spare_.resize(from);
  return into.size() == count;
}

// Null at the limit, or if the driver has no memory.
range_lists::block range_lists::make(const api& calls) noexcept {
  {
    const std::lock_guard hold{lock_};
    if (made_ == k_most_blocks) {
      return nullptr;
    }
    ++made_;
  }
  void* made = nullptr;
  if (calls.allocate_host(&made, k_entries * sizeof(range_entry),
                          cu::k_host_portable | cu::k_host_mapped) != cu::k_success) {
    const std::lock_guard hold{lock_};
    --made_;
    return nullptr;
  }
  return static_cast<block>(made);
}

std::vector<range_lists::block> range_lists::take(const api& calls, std::size_t count) {
  std::vector<block> taken;
  taken.reserve(count);
  undo unused{[&] { give_back(taken); }};
  if (!take_spare(count, taken)) {
    sweep();
    while (!take_spare(count, taken)) {
      auto* const made = make(calls);
      if (made == nullptr) {
        return {};
      }
      taken.push_back(made);
    }
  }
  unused.dismiss();
  return taken;
}

void range_lists::give_back(const std::vector<block>& unused) noexcept {
  const std::lock_guard hold{lock_};
  spare_.insert(spare_.end(), unused.begin(), unused.end());
}

void range_lists::give_back(std::vector<block> used, ref<event> reading) noexcept {
  const std::lock_guard hold{lock_};
  held_.push_back({std::move(used), std::move(reading)});
}

namespace {

// From this size a range gets a copy of its own, which costs 2.4 us and then reaches 55 GB/s of the
// bus where the kernel reaches 48 (H100).
constexpr std::size_t k_worth_a_copy = std::size_t{1} << 20;
// Up to this many copies cost less than a kernel with its list.
constexpr std::size_t k_few = 4;
// Bytes that a row of threads copies at a time: limited, so that long ranges do not delay the end.
constexpr std::size_t k_entry_bytes = std::size_t{16} << 10;
// Shorter entries are processed by a warp each.
constexpr std::size_t k_worth_a_block = 1024;
constexpr number k_warp = 32;

std::size_t entries_of(const copy_range& range) noexcept {
  return (range.nbytes + k_entry_bytes - 1) / k_entry_bytes;
}

// One launch of the kernel.
struct launch {
  range_lists::block list = nullptr;
  number count = 0;
  number lanes = k_threads;
};

// The commands that one operation submits to a stream.
struct range_plan {
  function_handle function = nullptr;
  std::vector<launch> launches;
  std::vector<copy_range> apart;
  place destination = 0;
  place source = 0;
  number most_blocks = 0;
};

// Writes entries into consecutive blocks of the list.
class list_writer {
 public:
  list_writer(range_plan& plan, const std::vector<range_lists::block>& blocks)
      : plan_{plan}, blocks_{blocks} {}

  void add(const copy_range& range) {
    for (std::size_t at = 0; at < range.nbytes; at += k_entry_bytes) {
      if (written_ % range_lists::k_entries == 0) {
        plan_.launches.push_back({blocks_[plan_.launches.size()], 0, k_threads});
      }
      auto& into = plan_.launches.back();
      into.list[into.count++] = {plan_.destination + range.destination_offset + at,
                                 plan_.source + range.source_offset + at,
                                 std::min(range.nbytes - at, k_entry_bytes)};
      ++written_;
    }
    nbytes_ += range.nbytes;
  }
  void end() {
    const bool are_short = nbytes_ / written_ < k_worth_a_block;
    for (auto& each : plan_.launches) {
      each.lanes = are_short ? k_warp : k_threads;
    }
  }

 private:
  range_plan& plan_;
  const std::vector<range_lists::block>& blocks_;
  std::size_t written_ = 0;
  std::size_t nbytes_ = 0;
};

code put_launch(const api& calls, const range_plan& plan, const launch& each, stream_handle on) {
  auto list = place_of(each.list);
  auto count = each.count;
  void* parameters[] = {&list, &count};
  const auto rows = k_threads / each.lanes;
  const auto blocks = std::min((count + rows - 1) / rows, plan.most_blocks);
  return calls.launch(plan.function, blocks, 1, 1, each.lanes, rows, 1, 0, on, parameters, nullptr);
}

// `copy` copies the bytes of ranges that are copied separately.
template <class Copy>
code put_plan(const api& calls, const range_plan& plan, stream_handle on, const Copy& copy) {
  auto outcome = cu::k_success;
  for (std::size_t i = 0; i < plan.launches.size() && outcome == cu::k_success; ++i) {
    outcome = put_launch(calls, plan, plan.launches[i], on);
  }
  for (std::size_t i = 0; i < plan.apart.size() && outcome == cu::k_success; ++i) {
    const auto& each = plan.apart[i];
    outcome = copy(plan.destination + each.destination_offset, plan.source + each.source_offset,
                   each.nbytes);
  }
  return outcome;
}

bool is_apart(const copy_range& range) noexcept { return range.nbytes >= k_worth_a_copy; }

// Returns the blocks that hold the plan's lists; none if all ranges are copied separately. Pre: the
// device's context is current.
std::vector<range_lists::block> write_lists(device& where, const ranged_copy& what,
                                            range_plan& plan) {
  std::size_t entries = 0;
  std::size_t ranges = 0;
  for (const auto& each : what.ranges) {
    if (!is_apart(each)) {
      entries += entries_of(each);
      ++ranges;
    }
  }
  if (ranges <= k_few || !where.kernels_reach(what.destination, what.destination_extent()) ||
      !where.kernels_reach(what.source, what.source_extent())) {
    return {};
  }
  plan.function = where.ranges_kernel().loaded(where.calls());
  if (plan.function == nullptr) {
    return {};
  }
  auto blocks = where.lists_of_ranges().take(
      where.calls(), (entries + range_lists::k_entries - 1) / range_lists::k_entries);
  if (blocks.empty()) {
    return {};
  }
  plan.launches.reserve(blocks.size());
  list_writer writer{plan, blocks};
  for (const auto& each : what.ranges) {
    if (!is_apart(each)) {
      writer.add(each);
    }
  }
  writer.end();
  return blocks;
}

}  // namespace

bool device::copies_pieces_better_staged(const void* first, const void* last) const noexcept {
  const made_current here{calls_, known_primary()};
  return (is_hosts_own(first) || is_hosts_own(last)) && ranges_kernel_.loaded(calls_) != nullptr;
}

result<ref<event>> queue::do_copy_ranges(const ranged_copy& what, wait_list after) {
  auto plan = std::make_shared<range_plan>();
  plan->destination = place_of(what.destination);
  plan->source = place_of(what.source);
  plan->most_blocks = device_.properties().compute_units * k_blocks_a_multiprocessor;
  plan->apart.reserve(what.ranges.size());
  std::vector<range_lists::block> blocks;
  {
    const made_current here{calls(), device_.known_primary()};
    if (here.outcome() != cu::k_success) {
      return call_failed("cuCtxSetCurrent", here.outcome());
    }
    if (auto refused = refuse_capture()) {
      return refused;
    }
    blocks = write_lists(device_, what, *plan);
  }
  auto& lists = device_.lists_of_ranges();
  undo unused{[&] { lists.give_back(blocks); }};
  std::copy_if(what.ranges.begin(), what.ranges.end(), std::back_inserter(plan->apart),
               [&](const copy_range& each) { return blocks.empty() || is_apart(each); });
  auto put = submit("a copy of ranges", after, [this, plan] {
    return put_plan(calls(), *plan, stream(), [this](place to, place from, std::size_t nbytes) {
      return copy_bytes(to, from, nbytes);
    });
  });
  ISTHMUS_TRY(put);
  unused.dismiss();
  if (!blocks.empty()) {
    lists.give_back(std::move(blocks), *put);
  }
  return put;
}

}  // namespace isthmus::cuda
