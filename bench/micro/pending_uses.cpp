// SPDX-License-Identifier: Apache-2.0
// Measures the cost of one more use of a buffer while many are pending, on a simulated device.
//
// Each of `pending` queues submits one operation on the same buffer, after an event that has not
// completed: writes of separate ranges, writes of the whole buffer, or reads of it; or as many
// events of the caller are recorded. `us_per_use` is the mean time of a submission in the best of
// several rounds. It must grow no faster than log n. `written_over` is one write of the whole
// buffer while writes of separate ranges are pending; `us_per_pending` is its time per pending
// write.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <isthmus/isthmus.hpp>
#include <limits>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

constexpr std::size_t k_each = 64;

double us_since(steady::time_point began) {
  return std::chrono::duration<double, std::micro>(steady::now() - began).count();
}

// Calls `put(buffer, queue, index)` once for each queue while all queues are blocked, and then
// `last(buffer, queue)`. Returns the best time of each, divided by the number of queues.
struct times {
  double put = std::numeric_limits<double>::max();
  double last = std::numeric_limits<double>::max();
};
template <class Put, class Last>
times pending_uses(benchmark::State& state, const Put& put, const Last& last) {
  const im::sim_device device;
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<im::queue> queues;
  for (std::size_t i = 0; i < count; ++i) queues.emplace_back(device);
  const im::buffer shared(count * k_each, im::kind::device, {.queue = queues.front()});
  times best;
  for (auto _ : state) {
    const im::host_event gate;
    for (const auto& each : queues) static_cast<void>(each.fence({gate}));
    const auto began = steady::now();
    for (std::size_t i = 0; i < count; ++i) put(shared, queues[i], i);
    best.put = std::min(best.put, us_since(began));
    const auto all_put = steady::now();
    last(shared, queues.front());
    best.last = std::min(best.last, us_since(all_put));
    gate.complete();
    for (const auto& each : queues) each.wait();
  }
  best.put /= static_cast<double>(count);
  best.last /= static_cast<double>(count);
  return best;
}
template <class Put>
void pending_uses(benchmark::State& state, const Put& put) {
  const auto nothing = [](const im::buffer&, const im::queue&) {};
  state.counters["us_per_use"] = pending_uses(state, put, nothing).put;
}

void write_own_range(const im::buffer& shared, const im::queue& on, std::size_t i) {
  static_cast<void>(im::fill_async(shared.slice(i * k_each, k_each), std::byte{1}, {.queue = on}));
}
void own_ranges(benchmark::State& state) { pending_uses(state, write_own_range); }
void written_over(benchmark::State& state) {
  const auto write_all = [](const im::buffer& shared, const im::queue& on) {
    static_cast<void>(im::fill_async(shared, std::byte{1}, {.queue = on}));
  };
  state.counters["us_per_pending"] = pending_uses(state, write_own_range, write_all).last;
}
void all_written(benchmark::State& state) {
  pending_uses(state, [](const im::buffer& shared, const im::queue& on, std::size_t) {
    static_cast<void>(im::fill_async(shared, std::byte{1}, {.queue = on}));
  });
}
void all_read(benchmark::State& state) {
  std::vector<std::byte> got(static_cast<std::size_t>(state.range(0)) * k_each);
  pending_uses(state, [&](const im::buffer& shared, const im::queue& on, std::size_t) {
    static_cast<void>(im::copy_async(std::span(got), shared, {.queue = on}));
  });
}
void recorded(benchmark::State& state) {
  pending_uses(state, [](const im::buffer& shared, const im::queue& on, std::size_t) {
    shared.record(on.fence());
  });
}

void sizes(benchmark::internal::Benchmark* of) {
  of->ArgName("pending")->ArgsProduct({{1000, 2000, 4000, 8000}})->Unit(benchmark::kMillisecond);
}
BENCHMARK(own_ranges)->Apply(sizes);
BENCHMARK(written_over)->Apply(sizes);
BENCHMARK(all_written)->Apply(sizes);
BENCHMARK(all_read)->Apply(sizes);
BENCHMARK(recorded)->Apply(sizes);

}  // namespace
