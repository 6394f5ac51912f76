// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exact writes of a unified buffer, those whose range the caller states: each is open from the
// call that begins it until it is recorded, which the call that ends it does or, if that fails, the
// next call. Not thread-safe: the buffer's lock guards it.

#include <cstddef>
#include <utility>
#include <vector>

#include "core/range_set.hpp"
#include "core/status.hpp"

namespace isthmus {

struct ExactHostWrite {
  ByteRange range;
  RangeSet written;    // the range as a set, allocated at the beginning of the write
  std::byte* address;  // the address that the writer received
  bool contents_kept = false;
  bool has_ended = false;  // not recorded yet; the next call records it
  bool is_published = false;
};

struct ExactDeviceWrite {
  ByteRange range;
  bool has_ended = false;
};

class ExactWrites {
 public:
  // The bytes of open host writes are reserved for the writer: they are not scanned, uploaded or
  // discarded.
  [[nodiscard]] bool has_host_writes() const noexcept { return !host_.empty(); }
  // `reserve_host` allocates what `begin_host` needs.
  void reserve_host() { host_.reserve(host_.size() + 1); }
  void begin_host(ExactHostWrite write) noexcept { host_.push_back(std::move(write)); }
  // The newest write of exactly this range that has not ended, or null.
  [[nodiscard]] ExactHostWrite* open_host(const ByteRange& range) noexcept;
  // Ends a write that `open_host` returned, without recording it.
  void cancel_host(const ExactHostWrite& write) noexcept;
  // Removes the ended host writes without recording them.
  void cancel_ended_host() noexcept;
  // Returns `ranges` without the ranges of open host writes.
  [[nodiscard]] RangeSet without_host_ranges(RangeSet ranges) const;

  // All open device writes have different ranges. While a write is open the device copy is not
  // released. If there was a host copy when it began, host writes next to its range are detected in
  // the smallest granules.
  [[nodiscard]] bool has_device_writes() const noexcept { return !device_.empty(); }
  // Returns false if a write of exactly this range is open already.
  [[nodiscard]] bool begin_device(const ByteRange& range);
  // Returns false if no write of exactly this range is open.
  bool end_device(const ByteRange& range) noexcept;
  // Removes the open write of exactly this range, if there is one.
  void cancel_device(const ByteRange& range) noexcept;
  void cancel_all_device() noexcept { device_.clear(); }
  // Returns `ranges` and the ranges of open device writes.
  [[nodiscard]] RangeSet with_device_ranges(RangeSet ranges) const;

  // Whether a write has ended and is not recorded yet.
  [[nodiscard]] bool has_unrecorded() const noexcept;
  // Records and removes the ended writes, up to the first that cannot be recorded: host writes by
  // `record_host(write)`, then device writes by `record_device(write)`. If both sides wrote the
  // same bytes, the device write therefore counts as the later one.
  template <class RecordHost, class RecordDevice>
  [[nodiscard]] Result<void> record_ended(RecordHost&& record_host, RecordDevice&& record_device) {
    ISTHMUS_TRY(record_each(host_, record_host));
    return record_each(device_, record_device);
  }

 private:
  template <class Writes, class Record>
  [[nodiscard]] static Result<void> record_each(Writes& writes, Record& record) {
    for (auto write = writes.begin(); write != writes.end();) {
      if (!write->has_ended) {
        ++write;
        continue;
      }
      ISTHMUS_TRY(record(*write));
      write = writes.erase(write);
    }
    return {};
  }
  [[nodiscard]] std::vector<ExactDeviceWrite>::iterator find_device(
      const ByteRange& range) noexcept;

  std::vector<ExactHostWrite> host_;
  std::vector<ExactDeviceWrite> device_;
};

}  // namespace isthmus
