// What one more use of a buffer costs beside many that are pending, on a simulated device.
//
// Each of `pending` queues puts one operation on the same buffer, behind a gate that stays closed:
// writes of ranges that no other touches, writes of all of it, reads of all of it; and as many
// events of the caller's are recorded. `us_per_use` is the mean time of a submission in the best of
// several rounds: it is to grow no faster than log n.
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

// `put(queue, index)` once for each queue, while nothing on them may run.
template <class Put>
void pending_uses(benchmark::State& state, const Put& put) {
  const im::sim_device device;
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<im::queue> queues;
  for (std::size_t i = 0; i < count; ++i) queues.emplace_back(device);
  const im::buffer shared(count * k_each, im::kind::device, {.on = queues.front()});
  double best = std::numeric_limits<double>::max();
  for (auto _ : state) {
    const im::host_event gate;
    for (const auto& each : queues) static_cast<void>(each.fence({gate}));
    const auto began = steady::now();
    for (std::size_t i = 0; i < count; ++i) put(shared, queues[i], i);
    const std::chrono::duration<double, std::micro> took = steady::now() - began;
    best = std::min(best, took.count());
    gate.complete();
    for (const auto& each : queues) each.wait();
  }
  state.counters["us_per_use"] = best / static_cast<double>(count);
}

void own_ranges(benchmark::State& state) {
  pending_uses(state, [](const im::buffer& shared, const im::queue& on, std::size_t i) {
    static_cast<void>(im::fill_async(shared.slice(i * k_each, k_each), std::byte{1}, {.on = on}));
  });
}
void all_written(benchmark::State& state) {
  pending_uses(state, [](const im::buffer& shared, const im::queue& on, std::size_t) {
    static_cast<void>(im::fill_async(shared, std::byte{1}, {.on = on}));
  });
}
void all_read(benchmark::State& state) {
  std::vector<std::byte> got(static_cast<std::size_t>(state.range(0)) * k_each);
  pending_uses(state, [&](const im::buffer& shared, const im::queue& on, std::size_t) {
    static_cast<void>(im::copy_async(std::span(got), shared, {.on = on}));
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
BENCHMARK(all_written)->Apply(sizes);
BENCHMARK(all_read)->Apply(sizes);
BENCHMARK(recorded)->Apply(sizes);

}  // namespace
