// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory that detects writes by comparison: `library` holds the bytes of the last
// synchronization, and the view is compared with them byte by byte. This is exact, and for small
// memory cheaper than a query of the kernel. It needs twice the memory. Thread safety: see
// tracked_memory.hpp.
//
// Each `take` reports written bytes again until `snapshot` or `publish` is called for them.

#include <memory>

#include "core/status.hpp"
#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

class ByteMemory final : public TrackedMemory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  ~ByteMemory() override;

  [[nodiscard]] std::size_t granule() const noexcept override { return 1; }
  void take(RangeSet& written) override;
  [[nodiscard]] Result<const std::byte*> snapshot(const RangeSet& ranges, Writers writers) override;
  [[nodiscard]] bool is_snapshot_stable(Writers /*writers*/) const noexcept override {
    return false;
  }
  [[nodiscard]] Result<void> publish(const RangeSet& ranges, Writers writers) override;
  void refine(const ByteRange& /*range*/) override {}
  void coarsen(const RangeSet& /*needed*/) override {}

 private:
  explicit ByteMemory(std::size_t nbytes) noexcept
      : TrackedMemory{TrackingMechanism::bytes, nbytes} {}
};

}  // namespace isthmus::tracking
