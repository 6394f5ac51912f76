// SPDX-License-Identifier: Apache-2.0
// Measures how the costs of a pool on the host grow: a pair beside many live blocks, on many queues
// and in many pools, a failed request, and the memory for metadata.
//
// `pair_beside_live` must cost as much with many live blocks as with one. In `pair_on_queues` and
// `pair_of_pools` one thread alternates over queues or pools; the cost must not grow from two of
// them on. `host_metadata` reports the process's additional pages as `percent` of the blocks'
// bytes; blocks are not touched, so these pages are metadata. Later pools reuse metadata memory, so
// only the first row of a process reports all of it: run single rows with --benchmark_filter.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <thread>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

class host_pool {
 public:
  explicit host_pool(bool checked)
      : pool_{im::resource::pool(queue_.context(), im::kind::host, {.checked = checked})} {}

  void* take(std::size_t nbytes) {
    void* memory = nullptr;
    if (isthmus_resource_allocate(pool_.get(), nbytes, 0, queue_.get(), &memory) != ISTHMUS_OK) {
      std::abort();
    }
    return memory;
  }
  void give(void* memory, std::size_t nbytes) {
    isthmus_resource_deallocate(pool_.get(), memory, nbytes, 0, queue_.get());
  }

 private:
  im::queue queue_{im::device("host")};
  im::resource pool_;
};

std::size_t resident_bytes() {
  unsigned long all = 0;
  unsigned long resident = 0;
  std::FILE* told = std::fopen("/proc/self/statm", "r");
  if (told == nullptr || std::fscanf(told, "%lu %lu", &all, &resident) != 2) std::abort();
  std::fclose(told);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void host_metadata(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t k_total = std::size_t{1} << 30;
  std::vector<void*> live(k_total / nbytes, &state);  // touches the pages of the vector first
  double percent = 0;
  for (auto _ : state) {
    host_pool from(true);
    from.give(from.take(nbytes), nbytes);
    const auto before = resident_bytes();
    for (void*& each : live) each = from.take(nbytes);
    const auto gained = static_cast<double>(resident_bytes() - before);
    percent = std::max(percent, gained / static_cast<double>(k_total) * 100);
    for (void* each : live) from.give(each, nbytes);
  }
  state.counters["percent"] = percent;
}
BENCHMARK(host_metadata)
    ->ArgName("bytes")
    ->ArgsProduct({{128, 256, 512, 1024, 4096, 65536, 1 << 20}})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void pair_beside_live(benchmark::State& state) {
  host_pool from(state.range(1) != 0);
  constexpr std::size_t k_live_bytes = 64;
  std::vector<void*> live(static_cast<std::size_t>(state.range(0)));
  for (void*& each : live) each = from.take(k_live_bytes);
  for (auto _ : state) {
    void* memory = from.take(4096);
    benchmark::DoNotOptimize(memory);
    from.give(memory, 4096);
  }
  for (void* each : live) from.give(each, k_live_bytes);
}
BENCHMARK(pair_beside_live)
    ->ArgNames({"live", "checked"})
    ->ArgsProduct({{1, 100'000, 10'000'000}, {0, 1}});

void pair_by_turns(benchmark::State& state, const std::vector<im::resource>& pools,
                   const std::vector<im::queue>& queues) {
  std::size_t turn = 0;
  for (auto _ : state) {
    isthmus_resource_t* const from = pools[turn % pools.size()].get();
    isthmus_queue_t* const on = queues[turn % queues.size()].get();
    ++turn;
    void* memory = nullptr;
    if (isthmus_resource_allocate(from, 4096, 0, on, &memory) != ISTHMUS_OK) std::abort();
    benchmark::DoNotOptimize(memory);
    isthmus_resource_deallocate(from, memory, 4096, 0, on);
  }
}

void pair_on_queues(benchmark::State& state) {
  const im::device host("host");
  std::vector<im::queue> queues;
  for (auto i = state.range(0); i != 0; --i) queues.emplace_back(host);
  pair_by_turns(state, {im::resource::pool(queues[0].context(), im::kind::host)}, queues);
}
BENCHMARK(pair_on_queues)->ArgName("queues")->ArgsProduct({{1, 2, 4, 16, 64, 200}});

void pair_of_pools(benchmark::State& state) {
  const im::queue on(im::device("host"));
  std::vector<im::resource> pools;
  for (auto i = state.range(0); i != 0; --i) {
    pools.push_back(im::resource::pool(on.context(), im::kind::host));
  }
  pair_by_turns(state, pools, {on});
}
BENCHMARK(pair_of_pools)->ArgName("pools")->ArgsProduct({{1, 2, 4, 16, 64, 200}});

// A request to a pool at its limit. `runs` blocks of 320 KiB are free, and each waits for work of
// another queue than its neighbours. `worst_us` is the longest pair of another thread meanwhile.
void refused_request(benchmark::State& state) {
  const im::device host("host");
  const std::array<im::queue, 2> busy{im::queue(host), im::queue(host)};
  const im::queue asking(host);
  constexpr std::size_t k_block = 320 << 10;  // larger than the blocks of slabs
  std::vector<void*> blocks(static_cast<std::size_t>(state.range(0)));
  const auto all_bytes = (blocks.size() + 64) * k_block;
  const auto pool = im::resource::pool(
      asking.context(), im::kind::host,
      {.initial_bytes = all_bytes, .limit_bytes = all_bytes, .wait = std::chrono::nanoseconds{0}});
  const auto take = [&](std::size_t nbytes, const im::queue& on, void** memory) {
    return isthmus_resource_allocate(pool.get(), nbytes, 0, on.get(), memory) == ISTHMUS_OK;
  };
  for (void*& each : blocks) {
    if (!take(k_block, asking, &each)) std::abort();
  }
  const im::host_event gate;
  for (const auto& each : busy) static_cast<void>(each.fence({gate}));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    isthmus_resource_deallocate(pool.get(), blocks[i], k_block, 0, busy.at(i % 2).get());
  }
  std::atomic<bool> stop{false};
  double worst_us = 0;
  std::thread other([&] {
    const im::queue on(host);
    while (!stop) {
      const auto began = steady::now();
      void* memory = nullptr;
      if (take(2 * k_block, on, &memory)) {  // fails while the other request holds all of it
        isthmus_resource_deallocate(pool.get(), memory, 2 * k_block, 0, on.get());
      }
      const std::chrono::duration<double, std::micro> took = steady::now() - began;
      worst_us = std::max(worst_us, took.count());
    }
  });
  for (auto _ : state) {
    void* memory = nullptr;
    if (take(128 * k_block, asking, &memory)) std::abort();
  }
  stop = true;
  other.join();
  state.counters["worst_us"] = worst_us;
  gate.complete();
  for (const auto& each : busy) each.wait();
}
BENCHMARK(refused_request)->ArgName("runs")->ArgsProduct({{200, 2'000, 20'000}});

}  // namespace
