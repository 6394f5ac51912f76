// SPDX-License-Identifier: Apache-2.0
#include "unified/exact_writes.hpp"

#include <algorithm>

namespace isthmus {

ExactHostWrite* ExactWrites::open_host(const ByteRange& range) noexcept {
  const auto newest = std::find_if(host_.rbegin(), host_.rend(), [&](const ExactHostWrite& write) {
    return write.range == range && !write.has_ended;
  });
  return newest == host_.rend() ? nullptr : &*newest;
}

void ExactWrites::cancel_host(const ExactHostWrite& write) noexcept {
  host_.erase(host_.begin() + (&write - host_.data()));
}

void ExactWrites::cancel_ended_host() noexcept {
  std::erase_if(host_, [](const ExactHostWrite& write) { return write.has_ended; });
}

RangeSet ExactWrites::without_host_ranges(RangeSet ranges) const {
  for (const auto& write : host_) {
    ranges.remove(write.written);
  }
  return ranges;
}

std::vector<ExactDeviceWrite>::iterator ExactWrites::find_device(const ByteRange& range) noexcept {
  return std::ranges::find_if(device_, [&](const ExactDeviceWrite& write) {
    return write.range == range && !write.has_ended;
  });
}

bool ExactWrites::begin_device(const ByteRange& range) {
  if (find_device(range) != device_.end()) {
    return false;
  }
  device_.push_back({range});
  return true;
}

bool ExactWrites::end_device(const ByteRange& range) noexcept {
  const auto write = find_device(range);
  if (write == device_.end()) {
    return false;
  }
  write->has_ended = true;
  return true;
}

void ExactWrites::cancel_device(const ByteRange& range) noexcept {
  if (const auto write = find_device(range); write != device_.end()) {
    device_.erase(write);
  }
}

RangeSet ExactWrites::with_device_ranges(RangeSet ranges) const {
  for (const auto& write : device_) {
    ranges.add(write.range);
  }
  return ranges;
}

bool ExactWrites::has_unrecorded() const noexcept {
  const auto has_ended = [](const auto& write) { return write.has_ended; };
  return std::ranges::any_of(host_, has_ended) || std::ranges::any_of(device_, has_ended);
}

}  // namespace isthmus
