#pragma once
// Tracked memory that is compared with what it held as it was last the same, byte by byte: exact,
// and for small memory cheaper than to ask the kernel. It takes twice the room.
//
// What was taken is found again till it is the same.

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
