// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a unified buffer in C++ if nothing must be copied: access without changes,
// with and without a host view, the constructor, and many live buffers of which few were written.
//
// Runs on the host, with two copies. Bounds: `host` and `device` take 100 ns without a view. With
// one they take 5 us below 64 KiB, where bytes are compared, and 3 us for the scan at 64 KiB. The
// constructor takes 2 us. `live` is the number of live buffers: the cost must not grow with it.
// `fetch_behind_pending` must not grow with the number of copies in flight. `synchronize` reports
// in `copies` the number of copies in one call, and in `ratio` its time over that of one scan of as
// many pages and as many separate copies.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <vector>

namespace im = isthmus;
using unified = im::unified_buffer<std::byte>;
using view = im::unified_view<std::byte>;

namespace {

constexpr std::size_t k_kib = 1024, k_mib = 1024 * k_kib;
constexpr std::size_t k_fetches = 200;

const im::queue& host_queue() {
  static const im::queue queue(im::device("host"));
  return queue;
}

im::unified_options two_copies(bool by_page = false) {
  im::unified_options options;
  options.queue = host_queue();
  options.separate = true;
  options.by_page = by_page;
  return options;
}

unified synchronized(std::size_t nbytes, bool by_page = false) {
  unified made(nbytes, two_copies(by_page));
  std::ranges::fill(made.host(), std::byte{1});
  made.sync_to_device();
  return made;
}

std::size_t bytes_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void host_without_view(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(buffer.host().data());
}

void host_read(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(buffer.host_read().data());
}

void device_without_view(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(buffer.device().get());
}

void host_with_view(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  const auto out = buffer.host();
  for (auto _ : state) benchmark::DoNotOptimize(buffer.host().data());
}

void device_with_view(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  const auto out = buffer.host();
  for (auto _ : state) benchmark::DoNotOptimize(buffer.device().get());
}

void state_with_view(benchmark::State& state) {
  const auto buffer = synchronized(bytes_of(state));
  const auto out = buffer.host();
  for (auto _ : state) benchmark::DoNotOptimize(buffer.state());
}

void every_size(benchmark::internal::Benchmark* of) {
  of->ArgName("bytes");
  for (const auto nbytes : {64 * k_kib - 64, 64 * k_kib, k_mib, 64 * k_mib}) {
    of->Arg(static_cast<std::int64_t>(nbytes));
  }
}
BENCHMARK(host_without_view)->ArgName("bytes")->Arg(64)->Arg(4096)->Apply(every_size);
BENCHMARK(host_read)->ArgName("bytes")->Arg(64)->Arg(4096);
BENCHMARK(device_without_view)->ArgName("bytes")->Arg(64)->Arg(4096)->Apply(every_size);
BENCHMARK(host_with_view)->ArgName("bytes")->Arg(4096)->Apply(every_size);
BENCHMARK(device_with_view)->ArgName("bytes")->Arg(4096)->Apply(every_size);
BENCHMARK(state_with_view)->ArgName("bytes")->Arg(4096)->Apply(every_size);

void made_and_dropped(benchmark::State& state) {
  const auto options = two_copies();
  for (auto _ : state) {
    const unified buffer(1000, options);
    benchmark::DoNotOptimize(buffer.get());
  }
}
BENCHMARK(made_and_dropped);

// Synchronized buffers with one host view each.
struct crowd {
  crowd(std::size_t count, std::size_t nbytes) {
    for (std::size_t i = 0; i < count; ++i) {
      buffers.push_back(synchronized(nbytes));
      views.push_back(buffers.back().host());
      raw.push_back(buffers.back().get());
    }
    synchronize();
  }
  void synchronize() const {
    im::detail::check(isthmus_unified_synchronize(raw.data(), raw.size(), nullptr));
  }
  [[nodiscard]] std::uint64_t copies() const {
    std::uint64_t sum = 0;
    for (const auto& each : buffers) sum += each.info().copies;
    return sum;
  }

  std::vector<unified> buffers;
  std::vector<view> views;
  std::vector<isthmus_unified_t*> raw;
};

void device_beside_live(benchmark::State& state) {
  const crowd others(static_cast<std::size_t>(state.range(1)), bytes_of(state));
  const auto buffer = synchronized(bytes_of(state));
  const auto out = buffer.host();
  for (auto _ : state) benchmark::DoNotOptimize(buffer.device().get());
}

void made_and_dropped_beside_live(benchmark::State& state) {
  const crowd others(static_cast<std::size_t>(state.range(1)), bytes_of(state));
  for (auto _ : state) {
    const auto buffer = synchronized(bytes_of(state));
    benchmark::DoNotOptimize(buffer.get());
  }
}

template <class Function>
double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

void synchronize(benchmark::State& state) {
  constexpr std::size_t k_written = 10;
  const auto count = static_cast<std::size_t>(state.range(1));
  const crowd all(count, bytes_of(state));
  const auto one = synchronized(count * bytes_of(state), true);
  const auto out = one.host();
  auto write = [&, value = 1]() mutable {
    value = value % 250 + 1;
    for (std::size_t i = 0; i < count; i += count / k_written) {
      all.views[i][0] = static_cast<std::byte>(value);
    }
  };
  std::vector<double> together, apart;
  const auto before = all.copies();
  for (auto _ : state) {
    write();
    together.push_back(seconds([&] { all.synchronize(); }));
    state.SetIterationTime(together.back());
  }
  const auto copies = static_cast<double>(all.copies() - before);
  for (std::size_t round = 0; round < together.size(); ++round) {
    write();
    apart.push_back(seconds([&] {
      one.sync_to_device();
      for (std::size_t i = 0; i < count; i += count / k_written) all.buffers[i].sync_to_device();
    }));
  }
  state.counters["copies"] = copies / static_cast<double>(state.iterations());
  state.counters["ratio"] = median(together) / median(apart);
}

// Marks a part and fetches it, after `pending` copies that wait for an event.
void fetch_behind_pending(benchmark::State& state) {
  constexpr std::size_t k_part = 64;
  const auto pending = static_cast<std::size_t>(state.range(0));
  const auto buffer = synchronized((pending + k_fetches) * k_part);
  const im::host_event gate;
  (void)host_queue().fence({gate});
  std::size_t next = 0;
  const auto fetch_next = [&] {
    const im::element_range part{next, next + 8};
    buffer.mark_device(part);
    benchmark::DoNotOptimize(buffer.sync_to_host_async(part).get());
    next += k_part;
  };
  for (std::size_t i = 0; i < pending; ++i) fetch_next();
  for (auto _ : state) fetch_next();
  gate.complete();
  host_queue().wait();
}

void every_crowd(benchmark::internal::Benchmark* of) {
  of->ArgNames({"bytes", "live"});
  for (const int nbytes : {4096, 65536}) {
    for (const int live : {10, 1000, 10000}) of->Args({nbytes, live});
  }
}
BENCHMARK(device_beside_live)->Apply(every_crowd);
BENCHMARK(made_and_dropped_beside_live)->Apply(every_crowd);
BENCHMARK(fetch_behind_pending)
    ->ArgName("pending")
    ->Arg(500)
    ->Arg(1000)
    ->Arg(2000)
    ->Arg(4000)
    ->Iterations(k_fetches);
BENCHMARK(synchronize)->Apply(every_crowd)->UseManualTime()->Iterations(50);

}  // namespace
