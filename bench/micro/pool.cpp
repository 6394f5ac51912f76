// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a block of a pool on the host through the C interface, compared with
// general-purpose allocators (contestants.hpp). An allocation and its deallocation count as one
// operation.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>

#include "contestants.hpp"

namespace {

using namespace bench;

constexpr int k_window = 4096;

void pair(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  side_by_side(state, k_window, [nbytes](const contestant& who, std::size_t) {
    for (int i = 0; i < k_window; ++i) {
      void* memory = who.take(nbytes);
      benchmark::DoNotOptimize(memory);
      who.give(memory, nbytes);
    }
  });
}
BENCHMARK(pair)
    ->Arg(256)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(64 << 20)
    ->Arg(1 << 30)
    ->UseManualTime()
    ->Iterations(200);

struct block {
  void* memory;
  std::size_t nbytes;
};

// Sizes of 256 B to 64 KiB, uniform in their logarithm.
std::vector<std::pair<std::size_t, std::size_t>> random_operations(std::size_t live) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(8, 16);
  std::vector<std::pair<std::size_t, std::size_t>> all(k_window);
  for (auto& [which, nbytes] : all) {
    which = random() % live;
    nbytes = static_cast<std::size_t>(std::exp2(exponent(random)));
  }
  return all;
}

// Replaces a random live block.
void random_sizes(benchmark::State& state) {
  const auto operations = random_operations(4096);
  std::vector<std::vector<block>> live(contestants().size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    for (const auto& [which, nbytes] : operations) {
      live[i].push_back({contestants()[i].take(nbytes), nbytes});
    }
  }
  side_by_side(state, k_window, [&](const contestant& who, std::size_t i) {
    for (const auto& [which, nbytes] : operations) {
      block& replaced = live[i][which];
      who.give(replaced.memory, replaced.nbytes);
      replaced = {who.take(nbytes), nbytes};
    }
  });
  for (std::size_t i = 0; i < live.size(); ++i) {
    for (const block& each : live[i]) contestants()[i].give(each.memory, each.nbytes);
  }
}
BENCHMARK(random_sizes)->UseManualTime()->Iterations(200);

// One thread allocates blocks that another thread frees. `ring_ns` is the cost of the ring between
// them alone. To exclude disturbances, as in the other rows, the result is the third lowest of 60
// windows.
template <class Take, class Give>
double seconds_of_handing_over(Take&& take, Give&& give) {
  using steady = std::chrono::steady_clock;
  constexpr std::size_t k_ring = 256;
  constexpr std::size_t k_windows = 60;
  std::vector<std::atomic<void*>> ring(k_ring);
  std::thread consumer([&] {
    for (std::size_t i = 0; i < k_windows * k_window; ++i) {
      void* memory = nullptr;
      while ((memory = ring[i % k_ring].load(std::memory_order_acquire)) == nullptr) {
      }
      ring[i % k_ring].store(nullptr, std::memory_order_release);
      give(memory);
    }
  });
  std::vector<double> taken(k_windows);
  for (double& seconds : taken) {
    const auto start = steady::now();
    for (std::size_t i = 0; i < k_window; ++i) {
      void* memory = take();
      while (ring[i % k_ring].load(std::memory_order_relaxed) != nullptr) {
      }
      ring[i % k_ring].store(memory, std::memory_order_release);
    }
    seconds = std::chrono::duration<double>(steady::now() - start).count();
  }
  consumer.join();
  std::sort(taken.begin(), taken.end());
  return taken[2] / k_window;
}

void producer_consumer(benchmark::State& state) {
  constexpr std::size_t k_bytes = 4096;
  side_by_side(state, 1, [](const contestant& who, std::size_t) {
    return seconds_of_handing_over([&] { return who.take(k_bytes); },
                                   [&](void* memory) { who.give(memory, k_bytes); });
  });
  char block = 0;
  state.counters["ring_ns"] = seconds_of_handing_over([&] { return &block; }, [](void*) {}) * 1e9;
}
BENCHMARK(producer_consumer)->UseManualTime()->Iterations(5);

// A pair while many blocks are live: the cost must not grow with their number.
void pair_beside_live(benchmark::State& state) {
  std::vector<void*> live;
  for (std::int64_t i = 0; i < state.range(0); ++i) live.push_back(contestants()[0].take(256));
  for (auto _ : state) {
    void* memory = contestants()[0].take(4096);
    benchmark::DoNotOptimize(memory);
    contestants()[0].give(memory, 4096);
  }
  for (void* each : live) contestants()[0].give(each, 256);
}
BENCHMARK(pair_beside_live)->Arg(1)->Arg(100'000)->Arg(1'000'000);

}  // namespace
