// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/cuda/copy.hpp"

namespace isthmus::cuda {
namespace {

// Ranges of at least this size are copied by separate commands. A command costs 2.4 us but reaches
// 55 GB/s on the bus; the kernel reaches 48 GB/s (H100).
constexpr std::size_t k_min_separate_copy = std::size_t{1} << 20;
// Up to this many separate copies cost less than a kernel with its list.
constexpr std::size_t k_max_without_kernel = 4;
// The maximum size of an entry, which one row of threads copies. Longer ranges are divided, so that
// they do not delay completion.
constexpr std::size_t k_entry_bytes = std::size_t{16} << 10;
// If entries are shorter on average, a warp copies each of them, otherwise a block of threads.
constexpr std::size_t k_min_block_entry = 1024;
constexpr unsigned k_warp = 32;

std::size_t entries_of(const CopyRange& range) noexcept {
  return (range.nbytes + k_entry_bytes - 1) / k_entry_bytes;
}

bool is_separate(const CopyRange& range) noexcept { return range.nbytes >= k_min_separate_copy; }

}  // namespace

// Writes entries into consecutive lists.
class RangePlan::ListWriter {
 public:
  explicit ListWriter(RangePlan& plan) : plan_{plan} {}

  void add(const CopyRange& range) {
    for (std::size_t offset = 0; offset < range.nbytes; offset += k_entry_bytes) {
      if (entry_count_ % RangeLists::k_entries_per_block == 0) {
        plan_.launches_.push_back({plan_.lists_[plan_.launches_.size()], 0, k_threads_per_block});
      }
      auto& launch = plan_.launches_.back();
      launch.list[launch.count++] = {plan_.destination_ + range.destination_offset + offset,
                                     plan_.source_ + range.source_offset + offset,
                                     std::min(range.nbytes - offset, k_entry_bytes)};
      ++entry_count_;
    }
    nbytes_ += range.nbytes;
  }
  void finish() {
    const bool are_short = nbytes_ / entry_count_ < k_min_block_entry;
    for (auto& launch : plan_.launches_) {
      launch.threads_per_entry = are_short ? k_warp : k_threads_per_block;
    }
  }

 private:
  RangePlan& plan_;
  std::size_t entry_count_ = 0;
  std::size_t nbytes_ = 0;
};

// Reserves memory before the lists are acquired, so that nothing can fail afterwards.
RangePlan::RangePlan(Device& device, const RangedCopy& copy)
    : device_{device},
      destination_{to_deviceptr(copy.destination)},
      source_{to_deviceptr(copy.source)} {
  separate_.reserve(copy.ranges.size());
  write_lists(copy);
  std::copy_if(copy.ranges.begin(), copy.ranges.end(), std::back_inserter(separate_),
               [&](const CopyRange& each) { return lists_.empty() || is_separate(each); });
}

// Acquires no lists if all ranges are copied separately.
void RangePlan::write_lists(const RangedCopy& copy) {
  std::size_t entries = 0;
  std::size_t ranges = 0;
  for (const auto& each : copy.ranges) {
    if (!is_separate(each)) {
      entries += entries_of(each);
      ++ranges;
    }
  }
  if (ranges <= k_max_without_kernel ||
      !device_.kernels_can_access(copy.destination, copy.destination_extent()) ||
      !device_.kernels_can_access(copy.source, copy.source_extent())) {
    return;
  }
  function_ = device_.ranges_kernel().get_function(device_.calls());
  if (function_ == nullptr) {
    return;
  }
  const auto count =
      (entries + RangeLists::k_entries_per_block - 1) / RangeLists::k_entries_per_block;
  launches_.reserve(count);
  lists_ = device_.range_lists().acquire(device_.calls(), count);
  if (lists_.empty()) {
    return;
  }
  ListWriter writer{*this};
  for (const auto& each : copy.ranges) {
    if (!is_separate(each)) {
      writer.add(each);
    }
  }
  writer.finish();
}

CUresult RangePlan::launch_kernel(const Launch& launch, CUstream stream) const noexcept {
  auto list = to_deviceptr(launch.list);
  auto count = launch.count;
  void* parameters[] = {&list, &count};
  const auto rows = k_threads_per_block / launch.threads_per_entry;
  const auto max_blocks = device_.properties().compute_units * k_max_blocks_per_multiprocessor;
  const auto blocks = std::min((count + rows - 1) / rows, max_blocks);
  return device_.calls().launch(function_, blocks, 1, 1, launch.threads_per_entry, rows, 1, 0,
                                stream, parameters, nullptr);
}

CUresult RangePlan::enqueue(CUstream stream) const noexcept {
  auto outcome = cu::k_success;
  for (std::size_t i = 0; i < launches_.size() && outcome == cu::k_success; ++i) {
    outcome = launch_kernel(launches_[i], stream);
  }
  for (std::size_t i = 0; i < separate_.size() && outcome == cu::k_success; ++i) {
    const auto& each = separate_[i];
    outcome = enqueue_copy(device_.calls(), stream, destination_ + each.destination_offset,
                           source_ + each.source_offset, each.nbytes);
  }
  return outcome;
}

void RangePlan::release_lists() noexcept { device_.range_lists().release(lists_); }

void RangePlan::release_lists_after(Ref<Event> reading) noexcept {
  if (!lists_.empty()) {
    device_.range_lists().release_after(std::move(lists_), std::move(reading));
  }
}

}  // namespace isthmus::cuda
