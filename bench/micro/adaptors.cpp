// SPDX-License-Identifier: Apache-2.0
// Measures the overhead of memory resources over a pool: the time of an allocation and its
// deallocation through the C interface, on one thread and on two concurrent threads.
//
// All contestants run the same window alternately in one process, and no block is touched. The
// counter `<name>_ns` is the minimum over all windows of the time for an allocation and its
// deallocation: the cost without disturbance by other work. `pool_ns` is the time of the pool
// alone. The time of debug resources includes their writes to blocks. A monotonic resource releases
// its memory between windows and serves a window from one chunk.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <isthmus/isthmus.hpp>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

constexpr int k_window = 4096;
constexpr std::size_t k_bytes = 1024;
constexpr std::size_t k_chunk = 4 * k_window * k_bytes;  // enough for four threads

struct contestant {
  std::string name;
  im::resource resource;
  void (*between)(const im::resource&) = [](const im::resource&) {};  // between windows
};

const im::queue& on_host() {
  static const im::queue queue(im::device("host"));
  return queue;
}

const std::vector<contestant>& contestants() {
  static const std::vector<contestant> all = [] {
    const im::resource pool = im::resource::pool(on_host().context(), im::kind::host);
    return std::vector<contestant>{
        {"pool", pool},
        {"statistics", im::resource::statistics(pool)},
        {"limit", im::resource::limit(pool, std::uint64_t{1} << 40)},
        {"fallback", im::resource::fallback(pool, pool)},
        {"failure_callback",
         im::resource::failure_callback(pool, [](std::size_t) { return false; })},
        {"statistics_over_limit",
         im::resource::statistics(im::resource::limit(pool, std::uint64_t{1} << 40))},
        {"tracking", im::resource::tracking(pool)},
        {"prefetch", im::resource::prefetch(pool)},
        {"monotonic", im::resource::monotonic(pool, k_chunk), &im::release_monotonic},
        {"fixed_size", im::resource::fixed_size(pool, k_bytes)},
        {"arena", im::resource::arena(pool)},
        {"debug", im::resource::debug(pool)}};
  }();
  return all;
}

void window(const im::resource& of) {
  isthmus_queue_t* queue = on_host().get();
  for (int i = 0; i < k_window; ++i) {
    void* memory = nullptr;
    isthmus_resource_allocate(of.get(), k_bytes, 0, queue, &memory);
    isthmus_resource_deallocate(of.get(), memory, k_bytes, 0, queue);
  }
}

void warm_pair(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  std::vector<double> least(contestants().size(), std::numeric_limits<double>::max());
  for (auto _ : state) {
    for (std::size_t i = 0; i < least.size(); ++i) {
      std::barrier together(threads);
      const auto timed = [&] {
        together.arrive_and_wait();
        const auto start = steady::now();
        window(contestants()[i].resource);
        return std::chrono::duration<double>(steady::now() - start).count();
      };
      std::vector<std::thread> others;
      for (int k = 1; k < threads; ++k) others.emplace_back([&] { (void)timed(); });
      const double taken = timed();
      for (std::thread& each : others) each.join();
      contestants()[i].between(contestants()[i].resource);
      least[i] = std::min(least[i], taken / k_window);
      if (i == 0) state.SetIterationTime(taken);
    }
  }
  for (std::size_t i = 0; i < least.size(); ++i) {
    state.counters[contestants()[i].name + "_ns"] = least[i] * 1e9;
  }
}
BENCHMARK(warm_pair)->Arg(1)->Arg(2)->Iterations(1000)->UseManualTime();

}  // namespace
