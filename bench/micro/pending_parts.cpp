// SPDX-License-Identifier: Apache-2.0
// Measures the cost of one more operation on a unified buffer while many are pending, on a
// simulated device.
//
// Submits one operation for each of `pending` separate parts while the device waits: uploads of
// host writes, downloads of device writes, or uploads each followed by a mark of a device write.
// `us_each` is the mean time of one operation in the best of several rounds. It must grow no faster
// than log n.
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

// Calls `prepare(buffer, part)` for each part, and then `put(buffer, part)` for each part while the
// queue is blocked.
template <class Prepare, class Put>
void pending_parts(benchmark::State& state, const Prepare& prepare, const Put& put) {
  const im::sim_device device;
  const im::queue work{device};
  const auto count = static_cast<std::size_t>(state.range(0));
  const im::unified_buffer<std::byte> buffer(2 * count * k_each, {.queue = work, .separate = true});
  const std::vector<std::byte> zeros(buffer.size());
  std::vector<im::element_range> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back({2 * i * k_each, (2 * i + 1) * k_each});
  double best = std::numeric_limits<double>::max();
  for (auto _ : state) {
    buffer.copy_from(zeros);
    buffer.sync_to_device();
    for (const auto& each : parts) prepare(buffer, each);
    const im::host_event gate;
    static_cast<void>(work.fence({gate}));
    const auto began = steady::now();
    for (const auto& each : parts) put(buffer, each);
    const std::chrono::duration<double, std::micro> took = steady::now() - began;
    best = std::min(best, took.count());
    gate.complete();
    work.wait();
    buffer.resolve(im::winner::host);
  }
  state.counters["us_each"] = best / static_cast<double>(count);
}

void uploads(benchmark::State& state) {
  pending_parts(
      state, [](const auto& buffer, im::element_range part) { buffer.mark_host(part); },
      [](const auto& buffer, im::element_range part) {
        static_cast<void>(buffer.sync_to_device_async(part));
      });
}
void downloads(benchmark::State& state) {
  pending_parts(
      state, [](const auto& buffer, im::element_range part) { buffer.mark_device(part); },
      [](const auto& buffer, im::element_range part) {
        static_cast<void>(buffer.sync_to_host_async(part));
      });
}
void uploads_and_marks(benchmark::State& state) {
  pending_parts(
      state, [](const auto& buffer, im::element_range part) { buffer.mark_host(part); },
      [](const auto& buffer, im::element_range part) {
        static_cast<void>(buffer.sync_to_device_async(part));
        buffer.mark_device(part);
      });
}

void sizes(benchmark::internal::Benchmark* of) {
  of->ArgName("pending")->ArgsProduct({{1000, 2000, 4000, 8000}})->Unit(benchmark::kMillisecond);
}
BENCHMARK(uploads)->Apply(sizes);
BENCHMARK(downloads)->Apply(sizes);
BENCHMARK(uploads_and_marks)->Apply(sizes);

}  // namespace
