// SPDX-License-Identifier: Apache-2.0
// Measures how much threads slow down one another. All threads do the same work at the same time,
// on one pool of the host or with a general-purpose allocator (contestants.hpp). `<name>_ns` is the
// time per operation of the slowest thread. Up to the number of processors it must equal the time
// of one thread.
#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <utility>

#include "contestants.hpp"

namespace {

using namespace bench;
using steady = std::chrono::steady_clock;

double seconds_since(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

// The work of one thread; `k_operations` is the number of operations in one call. This one
// allocates and frees one block at a time.
struct hot {
  static constexpr std::size_t k_operations = 50'000;
  std::size_t nbytes;

  void operator()(const contestant& who, unsigned) const {
    for (std::size_t i = 0; i < k_operations; ++i) {
      void* memory = who.take(nbytes);
      benchmark::DoNotOptimize(memory);
      who.give(memory, nbytes);
    }
  }
};
// Allocates 512 blocks of 4 KiB, one after the other, and then frees them.
struct batches {
  static constexpr std::size_t k_operations = 100 * 512;

  void operator()(const contestant& who, unsigned) const {
    std::vector<void*> live(512);
    for (std::size_t round = 0; round < k_operations / live.size(); ++round) {
      for (void*& each : live) each = who.take(4096);
      for (void* each : live) who.give(each, 4096);
    }
  }
};
// Replaces random ones of `live` blocks. Their sizes of 256 B to 64 KiB are uniform in the
// logarithm.
struct random_sizes {
  static constexpr std::size_t k_operations = 50'000;
  std::size_t live;

  void operator()(const contestant& who, unsigned seed) const {
    struct block {
      void* memory;
      std::size_t nbytes;
    };
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> exponent(8, 16);
    std::vector<std::size_t> sizes(4096);
    for (auto& each : sizes) each = static_cast<std::size_t>(std::exp2(exponent(random)));
    std::vector<std::size_t> order(4096);
    for (auto& each : order) each = random() % live;
    std::vector<block> blocks(live);
    for (std::size_t i = 0; i < live; ++i) blocks[i] = {who.take(sizes[i % 4096]), sizes[i % 4096]};
    for (std::size_t i = 0; i < k_operations; ++i) {
      block& replaced = blocks[order[i % 4096]];
      who.give(replaced.memory, replaced.nbytes);
      const auto nbytes = sizes[(i * 31) % 4096];
      replaced = {who.take(nbytes), nbytes};
    }
    for (const block& each : blocks) who.give(each.memory, each.nbytes);
  }
};

// The time of the slowest of `threads` threads.
template <class Work>
double seconds_of(unsigned threads, const contestant& who, const Work& work) {
  std::atomic<unsigned> ready{0};
  std::vector<double> taken(threads);
  const auto run = [&](unsigned number) {
    work(who, number);  // warms up the thread
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();
    const auto start = steady::now();
    work(who, number);
    taken[number] = seconds_since(start);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(run, i);
  run(0);
  for (auto& each : others) each.join();
  return *std::max_element(taken.begin(), taken.end());
}

template <class Work>
void on_threads(benchmark::State& state, const Work& work) {
  const auto threads = static_cast<unsigned>(state.range(0));
  side_by_side(state, Work::k_operations,
               [&](const contestant& who, std::size_t) { return seconds_of(threads, who, work); });
}

void up_to_all_processors(benchmark::internal::Benchmark* rows) {
  const auto all = std::max(std::thread::hardware_concurrency(), 2U);
  for (unsigned threads = 1; threads < all; threads *= 2) rows->Arg(threads);
  rows->Arg(all)->ArgName("threads")->UseManualTime()->Iterations(5);
}
BENCHMARK_CAPTURE(on_threads, hot_256B, hot{256})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, hot_4KiB, hot{4096})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, hot_64KiB, hot{64 << 10})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, hot_1MiB, hot{1 << 20})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, batches, batches{})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, random_100, random_sizes{100})->Apply(up_to_all_processors);
BENCHMARK_CAPTURE(on_threads, random_4096, random_sizes{4096})->Apply(up_to_all_processors);

// In a large heap, where one bit marks an allocated block (slab.hpp). Measures only the pool.
void hot_beside_live(benchmark::State& state) {
  constexpr std::size_t k_bytes = 256;
  const contestant& pool = contestants().front();
  std::vector<void*> live(1'000'000);
  for (void*& each : live) each = pool.take(k_bytes);
  double least = std::numeric_limits<double>::max();
  for (auto _ : state) {
    const auto taken = seconds_of(static_cast<unsigned>(state.range(0)), pool, hot{k_bytes});
    least = std::min(least, taken / hot::k_operations);
    state.SetIterationTime(taken);
  }
  for (void* each : live) pool.give(each, k_bytes);
  state.counters["pool_ns"] = least * 1e9;
}
BENCHMARK(hot_beside_live)->Apply(up_to_all_processors);

}  // namespace
