#pragma once
// Copies of many ranges by one kernel: 2,606 random pages of 4 KiB between the host and the device
// take 0.3 ms, as many copies 6.6 (H100, bench/micro/ranges.cpp). The kernel reads and writes the
// host's pinned memory where it lies.
//
// What it is to copy it reads from a list in pinned memory, in blocks that are kept for the next
// copy till the process ends: 32 MiB a device at most. Never cuMemcpyBatchAsync: of 23,676 copies
// some did not arrive, and of 55,122 the driver crashed (driver 580).

#include <mutex>
#include <vector>

#include "backend/cuda/api.hpp"
#include "backend/event.hpp"
#include "core/bytes.hpp"

namespace isthmus::cuda {

// As the kernel reads it.
struct range_entry {
  std::uint64_t destination;
  std::uint64_t source;
  std::uint64_t nbytes;
};

// A device's. Safe for threads.
class range_lists {
 public:
  static constexpr std::size_t k_entries = 10'920;  // of a block of 256 KiB
  static constexpr std::size_t k_most_blocks = 128;
  using block = range_entry*;

  range_lists();
  // As many blocks, or none where there is no memory for them. Pre: the device's context is
  // current.
  [[nodiscard]] std::vector<block> take(const api& calls, std::size_t count);
  // Whose entries nobody reads.
  void give_back(const std::vector<block>& unused) noexcept;
  // The same once `reading` has completed.
  void give_back(std::vector<block> used, ref<event> reading) noexcept;

 private:
  struct held {
    std::vector<block> blocks;
    ref<event> reading;
  };
  [[nodiscard]] bool take_spare(std::size_t count, std::vector<block>& into);
  void sweep();
  [[nodiscard]] block make(const api& calls) noexcept;

  std::mutex lock_;
  // With room for all that there will be, so that giving back never fails.
  std::vector<block> spare_;
  std::vector<held> held_;
  std::size_t made_ = 0;
};

}  // namespace isthmus::cuda
