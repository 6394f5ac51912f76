// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a buffer on the host compared with malloc and aligned_alloc, with many live
// buffers and on several threads.
//
// Each benchmark runs its peer in the same loop of rounds, so that both run under the same load.
// `ratio` is the time of Isthmus over the peer's. `live` is the number of live buffers: the cost
// must not grow with that number.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <optional>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

const im::queue& host_queue() {
  static const im::queue queue(im::device("host"));
  return queue;
}

constexpr int k_round = 100;  // calls of one contestant, then of the other
// An iteration counts as one call of Isthmus. Its real time is that of a hundred calls, plus the
// peer's.
constexpr double k_min_seconds = 0.005;

template <class Function>
double seconds(Function&& function) {
  const auto start = steady::now();
  for (int i = 0; i < k_round; ++i) function();
  return std::chrono::duration<double>(steady::now() - start).count();
}

void ours(std::size_t nbytes, isthmus_resource_t* resource = nullptr) {
  isthmus_buffer_t* buffer = nullptr;
  if (isthmus_buffer_create(nbytes, ISTHMUS_KIND_HOST, 0, host_queue().get(), resource, &buffer) !=
      ISTHMUS_OK) {
    std::abort();
  }
  benchmark::DoNotOptimize(buffer);
  isthmus_buffer_release(buffer);
}

template <class Peer>
void beside(benchmark::State& state, Peer&& peer) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  double mine = 0;
  double others = 0;
  for (auto _ : state) {
    const double one = seconds([&] { ours(nbytes); });
    others += seconds([&] { peer(nbytes); });
    mine += one;
    state.SetIterationTime(one / k_round);
  }
  const double calls = static_cast<double>(state.iterations()) * k_round;
  state.counters["peer_ns"] = others / calls * 1e9;
  state.counters["ratio"] = mine / others;
}

void create_release_malloc(benchmark::State& state) {
  beside(state, [](std::size_t nbytes) {
    void* memory = std::malloc(nbytes);
    benchmark::DoNotOptimize(memory);
    std::free(memory);
  });
}
BENCHMARK(create_release_malloc)
    ->Arg(64)
    ->Arg(1024)
    ->Arg(4096)
    ->Arg(1 << 20)
    ->Arg(4 << 20)  // from the warm default pool, without a query of available memory
    ->UseManualTime()
    ->MinTime(k_min_seconds);

void create_release_aligned_alloc(benchmark::State& state) {
  beside(state, [](std::size_t nbytes) {
    void* memory = std::aligned_alloc(64, nbytes);
    benchmark::DoNotOptimize(memory);
    std::free(memory);
  });
}
BENCHMARK(create_release_aligned_alloc)
    ->Arg(64)
    ->Arg(1024)
    ->Arg(4096)
    ->UseManualTime()
    ->MinTime(k_min_seconds);

// The C++ interface adds only a reference-counted handle.
void create_release_cpp(benchmark::State& state) {
  for (auto _ : state) {
    const im::buffer buffer(1024, im::kind::host, {.queue = host_queue()});
    benchmark::DoNotOptimize(buffer.get());
  }
}
BENCHMARK(create_release_cpp);

// A pool as the current resource, set for the process or in a block of the thread, compared with the
// same pool named by the call.
void create_release_current(benchmark::State& state) {
  const im::resource pool = im::resource::pool(host_queue(), im::kind::host);
  const bool in_block = state.range(0) != 0;
  if (!in_block) im::set_resource(pool);
  std::optional<im::using_resource> block;
  if (in_block) block.emplace(pool);
  double mine = 0;
  double named = 0;
  for (auto _ : state) {
    const double one = seconds([] { ours(1024); });
    named += seconds([&] { ours(1024, pool.get()); });
    mine += one;
    state.SetIterationTime(one / k_round);
  }
  im::set_resource({});
  state.counters["ratio"] = mine / named;
}
BENCHMARK(create_release_current)
    ->ArgName("block")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->MinTime(k_min_seconds);

void create_release_beside_live(benchmark::State& state) {
  std::vector<im::buffer> live;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    live.emplace_back(256, im::kind::host, im::buffer_options{.queue = host_queue()});
  }
  for (auto _ : state) ours(256);
  state.counters["live"] = static_cast<double>(state.range(0));
}
BENCHMARK(create_release_beside_live)->Arg(1)->Arg(1000)->Arg(100000);

void create_release_on_threads(benchmark::State& state) {
  for (auto _ : state) ours(256);
}
BENCHMARK(create_release_on_threads)->Threads(1)->Threads(2)->UseRealTime();

void slice_release(benchmark::State& state) {
  const im::buffer base(1 << 20, im::kind::host, {.queue = host_queue()});
  for (auto _ : state) benchmark::DoNotOptimize(base.slice(100, 100).get());
}
BENCHMARK(slice_release);

void pointer_query(benchmark::State& state) {
  std::vector<im::buffer> live;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    live.emplace_back(256, im::kind::host, im::buffer_options{.queue = host_queue()});
  }
  const auto* inner = static_cast<const std::byte*>(live[live.size() / 2].pointer()) + 100;
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  for (auto _ : state) {
    if (isthmus_pointer_info(nullptr, inner, &info) != ISTHMUS_OK) std::abort();
    benchmark::DoNotOptimize(info.kind);
  }
}
BENCHMARK(pointer_query)->Arg(1)->Arg(1000)->Arg(100000);

}  // namespace
