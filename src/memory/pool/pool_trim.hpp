// SPDX-License-Identifier: Apache-2.0
#pragma once
// Returns the free memory of a pool to the driver: on request (`trim`), by decay (decay.hpp), and
// before the pool grows (`shrink`).

#include <atomic>
#include <chrono>
#include <cstddef>

#include "memory/pool/decay.hpp"
#include "memory/pool/pool_collector.hpp"
#include "memory/pool/region_heap.hpp"
#include "memory/pool/region_trim.hpp"

namespace isthmus {

// Thread-safe. Calls the driver, so the caller holds no lock.
class PoolTrim {
 public:
  // All references must outlive the object. `decay`: the length of a decay window; 0: no decay.
  PoolTrim(RegionSource& source, RegionHeap& regions, RegionTrim& trim, PoolCollector& collector,
           std::chrono::nanoseconds decay) noexcept
      : source_{source}, regions_{regions}, trim_{trim}, collector_{collector}, window_{decay} {}

  // As `trim_free`, after pending releases and decay. Then trims the upstream resource too. Returns
  // the bytes released.
  std::size_t trim(std::size_t keep) noexcept;
  // As `RegionTrim::trim`, after flushing the thread caches of all threads.
  std::size_t trim_free(std::size_t keep) noexcept;
  // If the decay window has ended, returns the memory that was not needed during it to the driver.
  std::size_t decay(DecayWindow::Clock::time_point now) noexcept;
  // Releases memory before the pool grows by about `needed` bytes.
  void shrink(std::size_t needed) noexcept;
  // Waits until no thread collects free memory for decay, for at most 5 ms.
  void wait_for_collection() const noexcept;
  [[nodiscard]] const DecayWindow& window() const noexcept { return window_; }

 private:
  RegionSource& source_;
  RegionHeap& regions_;
  RegionTrim& trim_;
  PoolCollector& collector_;
  DecayWindow window_;
  // The number of threads that are collecting free memory for decay. While memory moves from thread
  // caches and slabs to the run heap, no request can use it. Without `wait_for_collection`, a
  // program in steady state would then grow its pool.
  std::atomic<int> collecting_{0};
};

}  // namespace isthmus
