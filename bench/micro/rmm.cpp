// SPDX-License-Identifier: Apache-2.0
// A pool of a CUDA device's memory compared with RMM's resources, in C++. Here RMM logs messages of
// level INFO and above; its Python package is built to log a line for each call. All contestants
// allocate in stream order and submit nothing to the device. Without a CUDA device every benchmark
// reports that it is absent.
//
// All contestants run the same window of operations alternately. The counter `<name>_ns` is the
// median time per operation, and `ratio` is the pool's time over the best of RMM's.

#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <functional>
#include <isthmus/rmm.hpp>
#include <random>
#include <thread>

#include "cuda_driver.hpp"

namespace {

using namespace bench;

constexpr std::size_t k_gib = std::size_t{1} << 30;
constexpr std::size_t k_window = 2000;

using any_resource = cuda::mr::any_resource<cuda::mr::device_accessible>;

struct contestant {
  const char* name;
  std::function<any_resource()> make;
};

std::vector<contestant> contestants(const im::device& device) {
  return {
      {"isthmus",
       [device] {
         return any_resource{im::rmm_resource(
             im::resource::pool(im::context::of(device), im::kind::device), im::streams::stay)};
       }},
      {"rmm_pool",
       [] {
         return any_resource{
             rmm::mr::pool_memory_resource(rmm::mr::cuda_memory_resource(), 8 * k_gib)};
       }},
      {"rmm_async", [] { return any_resource{rmm::mr::cuda_async_memory_resource()}; }},
  };
}

// Runs `work` with each contestant in every round. The time of an iteration is that of Isthmus.
void compare(benchmark::State& state, const im::device& device, double operations,
             const std::function<void(any_resource&)>& work) {
  const auto all = contestants(device);
  std::vector<any_resource> memory;
  for (const auto& each : all) {
    memory.push_back(each.make());
    work(memory.back());
  }
  std::vector<std::vector<double>> times(all.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      times[i].push_back(seconds([&] { work(memory[i]); }) / operations);
    }
    state.SetIterationTime(times.front().back());
  }
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < all.size(); ++i) {
    state.counters[std::string(all[i].name) + "_ns"] = median(times[i]) * 1e9;
    if (i != 0) best = std::min(best, median(times[i]));
  }
  state.counters["ratio"] = median(times.front()) / best;
}

// Allocates one block and frees it at once.
void pair(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const rmm::cuda_stream stream;
  const cuda::stream_ref on(stream.value());
  compare(state, device, k_window, [&](any_resource& memory) {
    for (std::size_t i = 0; i < k_window; ++i) {
      void* const block = memory.allocate(on, nbytes, 256);
      benchmark::DoNotOptimize(block);
      memory.deallocate(on, block, nbytes, 256);
    }
  });
}
BENCHMARK(pair)->Arg(256)->Arg(64 << 10)->Arg(1 << 20)->Arg(64 << 20)->UseManualTime()->Iterations(
    50);

// Creates and destroys a container of RMM.
void device_buffer(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const rmm::cuda_stream stream;
  const cuda::stream_ref on(stream.value());
  compare(state, device, k_window, [&](any_resource& memory) {
    for (std::size_t i = 0; i < k_window; ++i) {
      const rmm::device_buffer made(nbytes, on, memory);
      benchmark::DoNotOptimize(made.data());
    }
  });
}
BENCHMARK(device_buffer)->Arg(1024)->UseManualTime()->Iterations(50);

// Allocates blocks of 64 B to 1 MiB while the given number of blocks is live; frees the oldest one
// each time.
void among_live(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto live = static_cast<std::size_t>(state.range(0));
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(6, 20);
  std::vector<std::size_t> sizes(live);
  for (auto& each : sizes) each = static_cast<std::size_t>(std::exp2(exponent(random)));
  const rmm::cuda_stream stream;
  const cuda::stream_ref on(stream.value());
  compare(state, device, static_cast<double>(live + k_window), [&](any_resource& memory) {
    std::vector<void*> blocks(live);
    for (std::size_t i = 0; i < live + k_window; ++i) {
      const auto slot = i % live;
      if (i >= live) memory.deallocate(on, blocks[slot], sizes[slot], 256);
      blocks[slot] = memory.allocate(on, sizes[slot], 256);
    }
    for (std::size_t i = 0; i < live; ++i) memory.deallocate(on, blocks[i], sizes[i], 256);
  });
}
BENCHMARK(among_live)->Arg(1000)->Arg(10000)->UseManualTime()->Iterations(20);

// Pairs of 4 KiB on threads that have a stream each. Nanoseconds are wall time over the operations
// of all threads.
void threads(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<rmm::cuda_stream> streams(count);
  constexpr std::size_t k_rounds = 20;
  const auto operations = static_cast<double>(count * k_rounds * k_window);
  compare(state, device, operations, [&](any_resource& memory) {
    std::vector<std::thread> all;
    for (const auto& stream : streams) {
      all.emplace_back([&, mine = memory]() mutable {
        const cuda::stream_ref on(stream.value());
        for (std::size_t i = 0; i < k_rounds * k_window; ++i) {
          void* const block = mine.allocate(on, 4096, 256);
          benchmark::DoNotOptimize(block);
          mine.deallocate(on, block, 4096, 256);
        }
      });
    }
    for (auto& each : all) each.join();
  });
}
BENCHMARK(threads)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseManualTime()->Iterations(9);

}  // namespace
