// SPDX-License-Identifier: Apache-2.0
// Counts exact writes when they end. If that fails, for example for lack of memory, the next call
// counts the write; until then no call copies bytes of the buffer. If the next call counts both a
// host write and a device write of the same bytes, the device write counts as the later one.

#include <algorithm>

#include "unified/unified_buffer.hpp"

namespace isthmus {
namespace {

// Counts and removes the ended writes, up to the first that cannot be counted.
template <class Writes, class Count>
Result<void> remove_ended(Writes& writes, Count&& count) {
  for (auto write = writes.begin(); write != writes.end();) {
    if (!write->has_ended) {
      ++write;
      continue;
    }
    ISTHMUS_TRY(count(*write));
    write = writes.erase(write);
  }
  return {};
}

}  // namespace

bool UnifiedBuffer::has_uncounted() const noexcept {
  const auto has_ended = [](const auto& write) { return write.has_ended; };
  return std::ranges::any_of(host_writes_, has_ended) ||
         std::ranges::any_of(device_writes_, has_ended);
}

std::vector<UnifiedBuffer::DeviceWrite>::iterator UnifiedBuffer::open_device_write(
    const ByteRange& range) noexcept {
  return std::ranges::find_if(device_writes_, [&](const DeviceWrite& write) {
    return write.range == range && !write.has_ended;
  });
}

// Makes the bytes visible in views. This happens only once, so that later writes through views are
// not overwritten.
Result<void> UnifiedBuffer::publish(ExactWrite& write) {
  if (!write.is_published) {
    ISTHMUS_TRY(host_->end_write(write.range, write.written, write.address, current_writers()));
    write.is_published = true;
  }
  return {};
}

// Without `contents_kept` the host wrote the complete range, so device writes there are obsolete.
Result<void> UnifiedBuffer::count_host_write(ExactWrite& write) {
  ISTHMUS_TRY(publish(write));
  host_held_.add(write.written);
  if (!write.contents_kept || one_memory_) {
    device_dirty_.remove(write.written);
  }
  return add_host_writes(write.written);
}

Result<void> UnifiedBuffer::count_ended_writes() {
  ISTHMUS_TRY(remove_ended(host_writes_, [this](auto& write) { return count_host_write(write); }));
  return remove_ended(device_writes_,
                      [this](const auto& write) { return count_device_write(write.range); });
}

// Returns the device's dirty ranges and the ranges of open device writes.
RangeSet UnifiedBuffer::written_by_device() const {
  auto ranges = device_dirty_;
  for (const auto& write : device_writes_) {
    ranges.add(write.range);
  }
  return ranges;
}

}  // namespace isthmus
