// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host copy of an array: memory that a program writes through plain pointers, and whose written
// ranges are detected afterwards.
//
// The memory has two addresses. The program uses `view`: writes through it are detected. The
// library and device copies use `library`: data stored there does not count as written. The
// relation of the two depends on the mechanism:
//  - pages: both are mappings of the same memory; the kernel reports the written pages.
//  - bytes: `library` holds the bytes of the last synchronization, and the view is compared with
//    them.
//  - hashes: each chunk of the view has a hash as of its last synchronization; `library` holds
//    data in transit.
//
// The code that uses this class need not know the mechanism. It calls `snapshot` before it copies
// out of the memory, `publish` after it has written to `library`, and `expect_writers` before other
// threads may write through the view again.
//
// Bytes are "synchronized" as of the last `snapshot` or `publish` that covered them. Until the next
// write through the view they do not count as written.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "tracking/mechanism.hpp"

namespace isthmus::tracking {

// Whether other threads may write through the view during a call, apart from the ranges of open
// exact writes (`begin_write`).
enum class Writers : std::uint8_t { some, none };

struct Request {
  std::size_t nbytes = 0;  // at least 1
  Granularity granularity = Granularity::automatic;
  std::optional<TrackingMechanism> mechanism =
      std::nullopt;  // none: the process's choice for the size
  CopiedBy copied_by = CopiedBy::device;
};

// The program may write through the view at any time. Otherwise not thread-safe: the caller
// serializes calls on one memory. Calls on different memories may be concurrent.
class TrackedMemory {
 public:
  virtual ~TrackedMemory() = default;
  TrackedMemory(const TrackedMemory&) = delete;
  TrackedMemory& operator=(const TrackedMemory&) = delete;

  [[nodiscard]] std::byte* view() const noexcept { return view_; }
  [[nodiscard]] std::byte* library() const noexcept { return library_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] TrackingMechanism mechanism() const noexcept { return mechanism_; }
  // Largest number of bytes reported for a write of one byte.
  [[nodiscard]] virtual std::size_t granule() const noexcept = 0;
  // The same for the writes that were reported in `ranges`. May be too large, but not too small,
  // unless the ranges were synchronized since.
  [[nodiscard]] virtual std::size_t granule_of(const RangeSet& /*ranges*/) const noexcept {
    return granule();
  }
  // Whether `view` and `library` are two mappings of one memory, so that each always shows the
  // contents of the other.
  [[nodiscard]] bool is_one_memory() const noexcept {
    return mechanism_ == TrackingMechanism::pages;
  }

  // Adds to `written` the granules written through the view since they were last taken or
  // synchronized, clipped to the memory. If the mechanism fails the complete memory counts as
  // written.
  virtual void take(RangeSet& written) = 0;
  // The arguments of one of several calls (take_all.hpp).
  struct Taking {
    TrackedMemory* memory;
    RangeSet* written;
  };

  // Returns an address at which the ranges hold the contents that the view has, or had at some
  // moment during this call. The address is `library` or, without writers and if the mechanism
  // allows it, `view`. Later writes are reported by a later `take`. Without writers, earlier
  // writes were taken.
  [[nodiscard]] virtual Result<const std::byte*> snapshot(const RangeSet& ranges,
                                                          Writers writers) = 0;
  // Whether the result of `snapshot` is valid until the next write; otherwise it is valid only
  // until the next call.
  [[nodiscard]] virtual bool is_snapshot_stable(Writers writers) const noexcept = 0;
  // Combines `take` and `snapshot` for one sub-range of whole granules after another, from the
  // beginning of the memory. Calls visitor(part, found, source) on the calling thread while other
  // threads scan the next sub-ranges. If `visitor` fails it is not called again, its error is
  // returned, and all bytes that were not passed to it count as written.
  using PartVisitor =
      std::function<Result<void>(const ByteRange& part, RangeSet&& found, const std::byte* source)>;
  [[nodiscard]] virtual Result<void> take_in_parts(Writers writers, const PartVisitor& visitor);
  // Smallest sub-range in bytes, for mechanisms whose scan reads the complete memory. 0 if a scan
  // is cheap; the memory is then one sub-range.
  [[nodiscard]] virtual std::size_t min_part_bytes() const noexcept { return 0; }
  // Makes the contents of `library` in these ranges visible in the view. The ranges then count as
  // synchronized.
  [[nodiscard]] virtual Result<void> publish(const RangeSet& ranges, Writers writers) = 0;
  // Called before other threads may write through the view. Does the work that was deferred while
  // there were no writers. May be called repeatedly.
  virtual void expect_writers() {}

  // Begins a write of exactly `range` and returns the address to write to. `end_write` makes the
  // bytes visible in the view and synchronized. With `keep_contents` the address initially holds
  // the contents of the view.
  [[nodiscard]] virtual Result<std::byte*> begin_write(const ByteRange& range, bool keep_contents,
                                                       Writers writers);
  // `written` is the same range as a set, allocated in advance so that this needs no memory.
  // `begin_address` is the result of `begin_write`.
  [[nodiscard]] virtual Result<void> end_write(const ByteRange& range, const RangeSet& written,
                                               const std::byte* begin_address, Writers writers);
  // Divides the granules that `range` covers partly into the smallest granules available. Earlier
  // writes are still reported by the next `take`. Throws std::bad_alloc; a later call may then
  // complete the change.
  virtual void refine(const ByteRange& range) = 0;
  // Merges the granules divided by `refine` that `needed` does not overlap. Granules for whose
  // merge there is no memory remain small until a later call.
  virtual void coarsen(const RangeSet& needed) = 0;

 protected:
  TrackedMemory(TrackingMechanism mechanism, std::size_t nbytes) noexcept
      : mechanism_{mechanism}, nbytes_{nbytes} {}

  const TrackingMechanism mechanism_;
  const std::size_t nbytes_;
  std::byte* view_ = nullptr;
  std::byte* library_ = nullptr;
};

}  // namespace isthmus::tracking
