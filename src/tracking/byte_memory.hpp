// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory that finds writes by comparison: `library` keeps the bytes of the last
// synchronization, and the view is compared with them byte by byte. This is exact, and for small
// memory cheaper than a query of the kernel. It takes twice the memory. Thread safety: see
// tracked_memory.
//
// Bytes that were taken are found again by each `take` until they are snapshotted or published.

#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

class byte_memory final : public tracked_memory {
 public:
  [[nodiscard]] static result<std::unique_ptr<tracked_memory>> create(const request& wanted);
  ~byte_memory() override;

  [[nodiscard]] std::size_t granule() const noexcept override { return 1; }
  void take(range_set& written) override;
  [[nodiscard]] result<const std::byte*> snapshot(const range_set& ranges, writers who) override;
  [[nodiscard]] bool snapshot_stays(writers /*who*/) const noexcept override { return false; }
  [[nodiscard]] result<void> publish(const range_set& ranges, writers who) override;
  void refine(const byte_range& /*range*/) override {}
  void coarsen(const range_set& /*still*/) override {}

 private:
  explicit byte_memory(std::size_t nbytes) noexcept : tracked_memory{means::bytes, nbytes} {}
};

}  // namespace isthmus::tracking
