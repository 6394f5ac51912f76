// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory whose written pages the kernel reports. Thread safety: see tracked_memory.hpp; the
// arena's lock protects the results of the kernel's scans.
//
// Memory of `k_min_huge_bytes` or more lies in huge pages if the kernel provides them. A write to a
// huge page dirties 2 MiB, unless the huge page is tracked by small pages: because the memory is
// small or the writes are sparse (refinement.hpp), or on request (`refine`). In smaller memory, and
// where no huge page was available, a write dirties a small page.

#include <memory>
#include <span>
#include <vector>

#include "tracking/page_arena.hpp"
#include "tracking/tracked_memory.hpp"
#include "tracking/watched_pages.hpp"

namespace isthmus::tracking {

class PageMemory final : public TrackedMemory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  ~PageMemory() override;

  [[nodiscard]] std::size_t granule() const noexcept override { return pages_.granule(); }
  [[nodiscard]] std::size_t granule_of(const RangeSet& ranges) const noexcept override;
  void take(RangeSet& written) override;
  // All memories are `PageMemory`.
  static void take_all(std::span<const Taking> requests);
  [[nodiscard]] Result<const std::byte*> snapshot(const RangeSet& ranges, Writers writers) override;
  [[nodiscard]] bool is_snapshot_stable(Writers /*writers*/) const noexcept override {
    return true;
  }
  [[nodiscard]] Result<void> publish(const RangeSet& ranges, Writers writers) override;
  void refine(const ByteRange& range) override;
  void coarsen(const RangeSet& needed) override;

 private:
  PageMemory(PageArena& arena, const PageMappings& pages, const Request& request);
  [[nodiscard]] Result<void> fault_in() const;
  void note_reported(const RangeSet& written) noexcept;
  // Sets the flags of the huge pages that the range covers completely.
  void set_whole(const ByteRange& range, bool value) noexcept;

  PageArena& arena_;
  WatchedPages pages_;
  // Of each huge page, whether a report covered it completely that no snapshot covered since. Only
  // such a report can be that of a write elsewhere in the huge page.
  std::vector<bool> is_whole_;
};

}  // namespace isthmus::tracking
