// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/ranges.hpp"

#include <algorithm>
#include <memory>

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"

namespace isthmus::cuda {

RangeLists::RangeLists() {
  spare_.reserve(k_most_blocks);
  held_.reserve(k_most_blocks);
}

// Lists in flight are inspected outside the lock, since that queries the driver.
void RangeLists::sweep() {
  std::vector<Held> looked_at;
  looked_at.reserve(k_most_blocks);
  {
    const std::lock_guard hold{lock_};
    std::move(held_.begin(), held_.end(), std::back_inserter(looked_at));
    held_.clear();
  }
  const auto ended = std::partition(looked_at.begin(), looked_at.end(),
                                    [](const Held& each) { return each.reading->pending(); });
  const std::lock_guard hold{lock_};
  std::for_each(ended, looked_at.end(), [this](const Held& each) {
    spare_.insert(spare_.end(), each.blocks.begin(), each.blocks.end());
  });
  std::move(looked_at.begin(), ended, std::back_inserter(held_));
}

bool RangeLists::take_spare(std::size_t count, std::vector<Block>& out) {
  const std::lock_guard hold{lock_};
  const auto from = spare_.size() - std::min(count - out.size(), spare_.size());
  out.insert(out.end(), spare_.begin() + static_cast<std::ptrdiff_t>(from), spare_.end());
  spare_.resize(from);
  return out.size() == count;
}

// Null at the limit, or if the driver has no memory.
RangeLists::Block RangeLists::make(const Api& calls) noexcept {
  {
    const std::lock_guard hold{lock_};
    if (made_ == k_most_blocks) {
      return nullptr;
    }
    ++made_;
  }
  void* made = nullptr;
  if (calls.allocate_host(&made, k_entries * sizeof(RangeEntry),
                          cu::k_host_portable | cu::k_host_mapped) != cu::k_success) {
    const std::lock_guard hold{lock_};
    --made_;
    return nullptr;
  }
  return static_cast<Block>(made);
}

std::vector<RangeLists::Block> RangeLists::take(const Api& calls, std::size_t count) {
  std::vector<Block> taken;
  taken.reserve(count);
  Undo unused{[&] { give_back(taken); }};
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

void RangeLists::give_back(const std::vector<Block>& unused) noexcept {
  const std::lock_guard hold{lock_};
  spare_.insert(spare_.end(), unused.begin(), unused.end());
}

void RangeLists::give_back(std::vector<Block> used, Ref<Event> reading) noexcept {
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
constexpr Number k_warp = 32;

std::size_t entries_of(const CopyRange& range) noexcept {
  return (range.nbytes + k_entry_bytes - 1) / k_entry_bytes;
}

// One launch of the kernel.
struct Launch {
  RangeLists::Block list = nullptr;
  Number count = 0;
  Number lanes = k_threads;
};

// The commands that one operation submits to a stream.
struct RangePlan {
  FunctionHandle function = nullptr;
  std::vector<Launch> launches;
  std::vector<CopyRange> apart;
  Place destination = 0;
  Place source = 0;
  Number most_blocks = 0;
};

// Writes entries into consecutive blocks of the list.
class ListWriter {
 public:
  ListWriter(RangePlan& plan, const std::vector<RangeLists::Block>& blocks)
      : plan_{plan}, blocks_{blocks} {}

  void add(const CopyRange& range) {
    for (std::size_t at = 0; at < range.nbytes; at += k_entry_bytes) {
      if (written_ % RangeLists::k_entries == 0) {
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
  RangePlan& plan_;
  const std::vector<RangeLists::Block>& blocks_;
  std::size_t written_ = 0;
  std::size_t nbytes_ = 0;
};

Code put_launch(const Api& calls, const RangePlan& plan, const Launch& each, StreamHandle stream) {
  auto list = place_of(each.list);
  auto count = each.count;
  void* parameters[] = {&list, &count};
  const auto rows = k_threads / each.lanes;
  const auto blocks = std::min((count + rows - 1) / rows, plan.most_blocks);
  return calls.launch(plan.function, blocks, 1, 1, each.lanes, rows, 1, 0, stream, parameters,
                      nullptr);
}

// `copy` copies the bytes of ranges that are copied separately.
template <class Copy>
Code put_plan(const Api& calls, const RangePlan& plan, StreamHandle stream, const Copy& copy) {
  auto outcome = cu::k_success;
  for (std::size_t i = 0; i < plan.launches.size() && outcome == cu::k_success; ++i) {
    outcome = put_launch(calls, plan, plan.launches[i], stream);
  }
  for (std::size_t i = 0; i < plan.apart.size() && outcome == cu::k_success; ++i) {
    const auto& each = plan.apart[i];
    outcome = copy(plan.destination + each.destination_offset, plan.source + each.source_offset,
                   each.nbytes);
  }
  return outcome;
}

bool is_apart(const CopyRange& range) noexcept { return range.nbytes >= k_worth_a_copy; }

// Returns the blocks that hold the plan's lists; none if all ranges are copied separately. Pre: the
// device's context is current.
std::vector<RangeLists::Block> write_lists(Device& device, const RangedCopy& copy,
                                           RangePlan& plan) {
  std::size_t entries = 0;
  std::size_t ranges = 0;
  for (const auto& each : copy.ranges) {
    if (!is_apart(each)) {
      entries += entries_of(each);
      ++ranges;
    }
  }
  if (ranges <= k_few || !device.kernels_reach(copy.destination, copy.destination_extent()) ||
      !device.kernels_reach(copy.source, copy.source_extent())) {
    return {};
  }
  plan.function = device.ranges_kernel().loaded(device.calls());
  if (plan.function == nullptr) {
    return {};
  }
  auto blocks = device.lists_of_ranges().take(
      device.calls(), (entries + RangeLists::k_entries - 1) / RangeLists::k_entries);
  if (blocks.empty()) {
    return {};
  }
  plan.launches.reserve(blocks.size());
  ListWriter writer{plan, blocks};
  for (const auto& each : copy.ranges) {
    if (!is_apart(each)) {
      writer.add(each);
    }
  }
  writer.end();
  return blocks;
}

}  // namespace

bool Device::copies_pieces_better_staged(const void* first, const void* last) const noexcept {
  const MadeCurrent here{calls_, known_primary()};
  return (is_hosts_own(first) || is_hosts_own(last)) && ranges_kernel_.loaded(calls_) != nullptr;
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  auto plan = std::make_shared<RangePlan>();
  plan->destination = place_of(copy.destination);
  plan->source = place_of(copy.source);
  plan->most_blocks = device_.properties().compute_units * k_blocks_a_multiprocessor;
  plan->apart.reserve(copy.ranges.size());
  std::vector<RangeLists::Block> blocks;
  {
    const MadeCurrent here{calls(), device_.known_primary()};
    if (here.outcome() != cu::k_success) {
      return call_failed("cuCtxSetCurrent", here.outcome());
    }
    if (auto refused = refuse_capture()) {
      return refused;
    }
    blocks = write_lists(device_, copy, *plan);
  }
  auto& lists = device_.lists_of_ranges();
  Undo unused{[&] { lists.give_back(blocks); }};
  std::copy_if(copy.ranges.begin(), copy.ranges.end(), std::back_inserter(plan->apart),
               [&](const CopyRange& each) { return blocks.empty() || is_apart(each); });
  auto put = submit("a copy of ranges", after, [this, plan] {
    return put_plan(calls(), *plan, stream(),
                    [this](Place destination, Place source, std::size_t nbytes) {
                      return copy_bytes(destination, source, nbytes);
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
