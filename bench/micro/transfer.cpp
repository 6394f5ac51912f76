// SPDX-License-Identifier: Apache-2.0
// Measures the cost of copies, events and host functions, compared with memcpy in the same rounds.
//
// `ratio` is the time of Isthmus over memcpy's for the same number of bytes. A copy of memory that
// the host can access must cost a memcpy and a small constant (budget: 4 KiB in 1 us in total).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <isthmus/isthmus.hpp>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

const im::queue& host_queue() {
  static const im::queue queue(im::device("host"));
  return queue;
}
im::buffer make(std::size_t nbytes, im::kind of) {
  im::buffer made(nbytes, of, {.queue = host_queue()});
  im::fill(made, std::byte{2});  // unwritten pages share one zero page, which the cache serves
  return made;
}

void require(isthmus_status_t code) {
  if (code != ISTHMUS_OK) std::abort();
}

template <class Function>
double seconds(int rounds, Function&& function) {
  const auto start = steady::now();
  for (int i = 0; i < rounds; ++i) function();
  return std::chrono::duration<double>(steady::now() - start).count();
}

// An iteration counts as one call of Isthmus. Its real time is that of up to a hundred calls, plus
// the peer's.
constexpr double k_min_seconds = 0.02;

// Compares `ours` with memcpy between two vectors of the same size. All memory was touched before.
template <class Ours>
void beside_memcpy(benchmark::State& state, std::size_t nbytes, Ours&& ours) {
  const std::vector<std::byte> source(nbytes, std::byte{1});
  std::vector<std::byte> target(nbytes);
  const int rounds = static_cast<int>(std::clamp<std::size_t>((1u << 20) / nbytes, 1, 100));
  double mine = 0;
  double others = 0;
  ours();
  for (auto _ : state) {
    const double one = seconds(rounds, ours);
    others += seconds(rounds, [&] {
      std::memcpy(target.data(), source.data(), nbytes);
      benchmark::ClobberMemory();
    });
    mine += one;
    state.SetIterationTime(one / rounds);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(nbytes));
  state.counters["memcpy_ns"] = others / (static_cast<double>(state.iterations()) * rounds) * 1e9;
  state.counters["ratio"] = mine / others;
}

void to_buffer(benchmark::State& state, im::kind kind) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer buffer = make(nbytes, kind);
  std::vector<std::byte> data(nbytes, std::byte{1});
  const isthmus_endpoint_t there{buffer.get(), nullptr, 0};
  const isthmus_endpoint_t here{nullptr, data.data(), 0};
  beside_memcpy(state, nbytes,
                [&] { require(isthmus_copy(nullptr, &there, &here, nbytes, nullptr, nullptr)); });
}
void from_buffer(benchmark::State& state, im::kind kind) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer buffer = make(nbytes, kind);
  std::vector<std::byte> data(nbytes, std::byte{1});
  const isthmus_endpoint_t there{buffer.get(), nullptr, 0};
  const isthmus_endpoint_t here{nullptr, data.data(), 0};
  beside_memcpy(state, nbytes,
                [&] { require(isthmus_copy(nullptr, &here, &there, nbytes, nullptr, nullptr)); });
}
#define EVERY_SIZE \
  Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20)->Arg(64 << 20)->UseManualTime()->MinTime(k_min_seconds)
BENCHMARK_CAPTURE(to_buffer, host, im::kind::host)->EVERY_SIZE;
BENCHMARK_CAPTURE(from_buffer, host, im::kind::host)->EVERY_SIZE;
BENCHMARK_CAPTURE(to_buffer, device, im::kind::device)->EVERY_SIZE;
BENCHMARK_CAPTURE(from_buffer, device, im::kind::device)->EVERY_SIZE;

// The C++ interface additionally looks up a size and checks bounds.
void copy_cpp(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer buffer = make(nbytes, im::kind::host);
  const std::vector<std::byte> data(nbytes, std::byte{1});
  const std::span<const std::byte> all(data);
  beside_memcpy(state, nbytes, [&] { im::copy(buffer, all); });
}
BENCHMARK(copy_cpp)->EVERY_SIZE;

// A small copy on an idle queue runs in the calling thread.
void copy_async_inline(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer buffer = make(nbytes, im::kind::host);
  const std::vector<std::byte> data(nbytes, std::byte{1});
  const std::span<const std::byte> all(data);
  beside_memcpy(state, nbytes, [&] { im::copy_async(buffer, all).wait(); });
}
BENCHMARK(copy_async_inline)->Arg(64)->Arg(4 << 10)->UseManualTime()->MinTime(k_min_seconds);

void fill(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer buffer = make(nbytes, im::kind::host);
  beside_memcpy(state, nbytes, [&] { im::fill(buffer, std::byte{1}); });
}
BENCHMARK(fill)->Arg(4 << 10)->Arg(1 << 20)->UseManualTime()->MinTime(k_min_seconds);

void fence_and_wait(benchmark::State& state) {
  for (auto _ : state) host_queue().fence().wait();
}
BENCHMARK(fence_and_wait);

void wait_for_a_done_event(benchmark::State& state) {
  const im::event done = host_queue().fence();
  done.wait();
  for (auto _ : state) benchmark::DoNotOptimize(done.done());
}
BENCHMARK(wait_for_a_done_event);

void submit_and_wait(benchmark::State& state) {
  for (auto _ : state) host_queue().submit([] {}).wait();
}
BENCHMARK(submit_and_wait)->UseRealTime();

void export_and_back(benchmark::State& state) {
  const im::buffer buffer = make(4096, im::kind::host);
  for (auto _ : state) benchmark::DoNotOptimize(buffer.host().data());
}
BENCHMARK(export_and_back);

}  // namespace
