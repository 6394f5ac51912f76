// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a snapshot of a pool with many slabs that one thread uses on many queues.
//
// All blocks of each of `slabs` slabs of 512 KiB are free. The thread caches one block of each slab
// for one of `queues` queues, so a snapshot must determine whether the complete slab could become
// free. `us_per_snapshot` is the best of several snapshots. It must grow with the sum of both
// numbers, not with their product.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <isthmus/isthmus.hpp>
#include <limits>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

constexpr std::size_t k_block = std::size_t{16} << 10;
constexpr std::size_t k_blocks_in_slab = 32;

void snapshot(benchmark::State& state) {
  const im::sim_device device;
  std::vector<im::queue> queues;
  for (std::int64_t i = 0; i < state.range(0); ++i) queues.emplace_back(device);
  const auto& first = queues.front();
  const auto pool = im::resource::pool(first.context(), im::kind::device, {}, device);
  std::vector<void*> live(static_cast<std::size_t>(state.range(1)) * k_blocks_in_slab);
  for (auto& each : live) each = pool.allocate(k_block, 0, first);
  for (const auto& each : queues) {  // creates a thread cache for each
    pool.deallocate(pool.allocate(k_block, 0, each), k_block, 0, each);
  }
  for (const bool is_kept : {false, true}) {
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (is_kept != (i % k_blocks_in_slab == 0)) continue;
      const auto& on = is_kept ? queues[i / k_blocks_in_slab % queues.size()] : first;
      pool.deallocate(live[i], k_block, 0, on);
    }
  }
  double best = std::numeric_limits<double>::max();
  for (auto _ : state) {
    const auto began = steady::now();
    benchmark::DoNotOptimize(im::snapshot_of(pool).largest_free);
    best = std::min(best, std::chrono::duration<double, std::micro>(steady::now() - began).count());
  }
  state.counters["us_per_snapshot"] = best;
}

BENCHMARK(snapshot)
    ->ArgNames({"queues", "slabs"})
    ->ArgsProduct({{1, 100, 400}, {100, 1000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
