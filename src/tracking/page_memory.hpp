// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory whose written pages the kernel reports. Thread safety: see tracked_memory; the
// arena's lock protects what the kernel's scans record.
//
// Memory of 2 MiB or more lies in huge pages where the kernel has some, and one write counts for 2
// MiB until such a page proves to be written sparsely (refinement.hpp) or is refined (`refine`). In
// smaller memory, and where there was no huge page, a write counts for a small page.

#include <vector>

#include "tracking/page_arena.hpp"
#include "tracking/refinement.hpp"

namespace isthmus::tracking {

class PageMemory final : public TrackedMemory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  ~PageMemory() override;

  [[nodiscard]] std::size_t granule() const noexcept override;
  void take(RangeSet& written) override;
  // Pre: all are `PageMemory`, and the process is not a forked child.
  static void take_all(std::span<const Taking> requests);
  [[nodiscard]] Result<const std::byte*> snapshot(const RangeSet& ranges, Writers writers) override;
  [[nodiscard]] bool is_snapshot_stable(Writers /*who*/) const noexcept override { return true; }
  [[nodiscard]] Result<void> publish(const RangeSet& ranges, Writers writers) override;
  void refine(const ByteRange& range) override;
  void coarsen(const RangeSet& needed) override;

  // For the arena, which holds its lock.
  [[nodiscard]] const PageArena::Mappings& pages() const noexcept { return pages_; }
  [[nodiscard]] Result<void> begin(os::WrittenPages& kernel) const;
  // Reserves capacity for the result of one step of the kernel's scan. Throws std::bad_alloc.
  void reserve_records();
  // Pre: capacity is reserved. The kernel reports a page once, so this must not fail.
  void record(const std::byte* source, const std::byte* destination) noexcept;
  void record_all() noexcept { all_found_ = true; }
  void take_locked(os::WrittenPages& kernel, RangeSet& written);
  void refine_locked(os::WrittenPages& kernel, const ByteRange& range);
  void coarsen_locked(os::WrittenPages& kernel, const RangeSet& needed);

 private:
  PageMemory(PageArena& arena, const PageArena::Mappings& pages, const Request& request);
  [[nodiscard]] Result<void> fault_in() const;
  void collect(std::vector<ByteRange>& records);
  template <class Change>
  void change_unwritten(os::WrittenPages& kernel, std::size_t chunk, Change change);
  void record_differences(std::size_t first, const std::byte* before) noexcept;
  void change(os::WrittenPages& kernel, const Refinement::Changes& changes);

  PageArena& arena_;
  const PageArena::Mappings pages_;
  const Granularity granularity_;
  RangeSet found_;                   // by scans, not taken yet
  std::vector<ByteRange> recorded_;  // the same, since the last `collect`, in order
  bool all_found_ = false;
  // Pages written before or during a change of their page size, and not taken yet. They show
  // nothing about how the memory was written since, so `refinement_` does not count them.
  std::vector<ByteRange> unevaluated_;
  Refinement refinement_;
};

}  // namespace isthmus::tracking
