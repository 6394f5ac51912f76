// SPDX-License-Identifier: Apache-2.0
// A pool of a CUDA device's memory: the cost of an allocate/free pair while the device works and on
// several threads, the cost of growing and shrinking a pool of pinned memory, and the speed of
// memory that was remapped. Without a CUDA device every benchmark reports that it is absent.
#include <array>
#include <thread>

#include "cuda_driver.hpp"

namespace {

using namespace bench;

constexpr int k_window = 4096;

void pairs(const im::resource& pool, std::size_t nbytes, const im::queue& on) {
  for (int i = 0; i < k_window; ++i) {
    void* const block = pool.allocate(nbytes, 0, on);
    benchmark::DoNotOptimize(block);
    pool.deallocate(block, nbytes, 0, on);
  }
}

// Submits fills of 1 GiB, enough of them to outlast a round.
void keep_busy(const im::queue& on, const im::buffer& scratch) {
  for (int i = 0; i < 40; ++i) (void)im::fill_async(scratch, std::byte{1}, {.queue = on});
}

// Measures the time of an allocation and its deallocation, on an idle queue and on a busy one.
void pair_at_work(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::context home({device});
  const im::queue queue(home, device);
  const im::buffer scratch(std::size_t{1} << 30, im::kind::device, {.queue = queue});
  const auto pool = im::resource::pool(home, im::kind::device);
  pairs(pool, nbytes, queue);
  std::vector<double> idle;
  std::vector<double> at_work;
  for (auto _ : state) {
    queue.wait();
    idle.push_back(seconds([&] { pairs(pool, nbytes, queue); }));
    keep_busy(queue, scratch);
    at_work.push_back(seconds([&] { pairs(pool, nbytes, queue); }));
    state.SetIterationTime(at_work.back() / k_window);
  }
  queue.wait();
  state.counters["idle_ns"] = median(idle) / k_window * 1e9;
  state.counters["at_work_ns"] = median(at_work) / k_window * 1e9;
}
BENCHMARK(pair_at_work)
    ->Arg(256)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(64 << 20)
    ->UseManualTime()
    ->Iterations(100);

// Executes arithmetic on registers only, which takes about as long as the same number of pairs. Its
// speedup by threads is the maximum that this machine allows under its other load.
void arithmetic(std::size_t /*thread*/) {
  std::uint64_t value = 1;
  for (int i = 0; i < k_window * 10; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    benchmark::DoNotOptimize(value);
  }
}

// Each thread has its own queue. `times_one` is the throughput of all threads over that of one
// thread, and `machine_times_one` is the same for arithmetic.
void threads_on_queues(benchmark::State& state) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto count = static_cast<std::size_t>(state.range(0));
  constexpr int k_rounds = 200;
  const im::context home({device});
  const auto pool = im::resource::pool(home, im::kind::device);
  std::vector<im::queue> queues;
  for (std::size_t i = 0; i < count; ++i) queues.emplace_back(home, device);
  const auto run = [&](std::size_t threads, const auto& work) {
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        for (int round = 0; round < k_rounds; ++round) work(i);
      });
    }
    for (auto& each : all) each.join();
  };
  const auto on_pool = [&](std::size_t thread) { pairs(pool, 4096, queues[thread]); };
  std::vector<double> times[4];
  for (auto _ : state) {
    times[0].push_back(seconds([&] { run(1, on_pool); }));
    times[1].push_back(seconds([&] { run(count, on_pool); }));
    times[2].push_back(seconds([&] { run(1, arithmetic); }));
    times[3].push_back(seconds([&] { run(count, arithmetic); }));
    state.SetIterationTime(times[1].back());
  }
  const auto times_one = [&](const auto& one, const auto& many) {
    return static_cast<double>(count) * median(one) / median(many);
  };
  state.counters["times_one"] = times_one(times[0], times[1]);
  state.counters["machine_times_one"] = times_one(times[2], times[3]);
}
BENCHMARK(threads_on_queues)->Arg(2)->Arg(4)->Arg(8)->UseManualTime()->Iterations(9);

// Allocates a block that the pool remapped from chunks that were not adjacent.
void* moved_run(const im::resource& pool, const im::queue& on, std::size_t nbytes) {
  constexpr std::size_t k_piece = std::size_t{8} << 20;  // a chunk, which is remapped as a whole
  std::vector<void*> pieces;
  for (std::size_t have = 0; have < 2 * nbytes; have += k_piece) {
    pieces.push_back(pool.allocate(k_piece, 0, on));
  }
  const auto before = pool.usage().held;
  for (std::size_t i = 0; i < pieces.size(); i += 2) pool.deallocate(pieces[i], k_piece, 0, on);
  void* const joined = pool.allocate(nbytes, 0, on);
  must(pool.usage().held <= before + nbytes / 8);
  for (std::size_t i = 1; i < pieces.size(); i += 2) pool.deallocate(pieces[i], k_piece, 0, on);
  return joined;
}

enum class path { inside, to_device, back };

// Measures the driver's copy of 256 MiB of remapped memory and of memory of one cuMemAlloc. `ratio`
// is the speed of the former over that of the latter.
void copies_of_moved(benchmark::State& state, path way) {
  const im::device device = find_cuda(state);
  if (!device) return;
  constexpr std::size_t k_bytes = std::size_t{256} << 20;
  const im::context home({device});
  const im::queue queue(home, device);
  const cuda_driver driver(device);
  driver.make_current(home);
  const auto pool = im::resource::pool(home, im::kind::device);
  void* const moved = moved_run(pool, queue, k_bytes);
  const im::buffer whole(k_bytes, im::kind::device, {.queue = queue});
  const im::buffer other(k_bytes, im::kind::device, {.queue = queue});
  const im::buffer pinned(k_bytes, im::kind::host, {.queue = queue});
  const auto time = [&](void* memory) {
    void* const end = way == path::inside ? other.pointer() : pinned.pointer();
    return seconds([&] {
      way == path::to_device ? driver.copy(memory, end, k_bytes, queue.export_native())
                             : driver.copy(end, memory, k_bytes, queue.export_native());
    });
  };
  std::vector<double> ours;
  std::vector<double> peers;
  for (auto _ : state) {
    ours.push_back(time(moved));
    peers.push_back(time(whole.pointer()));
    state.SetIterationTime(ours.back());
  }
  pool.deallocate(moved, k_bytes, 0, queue);
  state.counters["GB/s"] = static_cast<double>(k_bytes) / median(ours) * 1e-9;
  state.counters["ratio"] = median(peers) / median(ours);
}
BENCHMARK_CAPTURE(copies_of_moved, inside, path::inside)->UseManualTime()->Iterations(100);
BENCHMARK_CAPTURE(copies_of_moved, to_device, path::to_device)->UseManualTime()->Iterations(50);
BENCHMARK_CAPTURE(copies_of_moved, back, path::back)->UseManualTime()->Iterations(50);

// The same for pinned memory, compared with memory of one cuMemHostAlloc.
void pinned_copies_of_moved(benchmark::State& state, path way) {
  const im::device device = find_cuda(state);
  if (!device) return;
  constexpr std::size_t k_bytes = std::size_t{256} << 20;
  const im::context home({device});
  const im::queue queue(home, device);
  const cuda_driver driver(device);
  driver.make_current(home);
  const auto pool = im::resource::pool(home, im::kind::host);
  void* const moved = moved_run(pool, queue, k_bytes);
  const im::buffer whole(
      k_bytes, im::kind::host,
      {.queue = queue, .resource = im::resource::provider(home, im::kind::host)});
  const im::buffer there(k_bytes, im::kind::device, {.queue = queue});
  const auto time = [&](void* memory) {
    return seconds([&] {
      way == path::to_device ? driver.copy(there.pointer(), memory, k_bytes, queue.export_native())
                             : driver.copy(memory, there.pointer(), k_bytes, queue.export_native());
    });
  };
  std::vector<double> ours;
  std::vector<double> peers;
  for (auto _ : state) {
    ours.push_back(time(moved));
    peers.push_back(time(whole.pointer()));
    state.SetIterationTime(ours.back());
  }
  pool.deallocate(moved, k_bytes, 0, queue);
  state.counters["GB/s"] = static_cast<double>(k_bytes) / median(ours) * 1e-9;
  state.counters["ratio"] = median(peers) / median(ours);
}
BENCHMARK_CAPTURE(pinned_copies_of_moved, to_device, path::to_device)
    ->UseManualTime()
    ->Iterations(50);
BENCHMARK_CAPTURE(pinned_copies_of_moved, back, path::back)->UseManualTime()->Iterations(50);

// Measures the time to allocate pinned memory from the driver and to free it: by a pool, and by
// cuMemHostAlloc and cuMemFreeHost. The device is idle, or executes copies for 0.2 s.
void pinned_growth(benchmark::State& state, bool at_work) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t k_copied = std::size_t{256} << 20;
  const im::context home({device});
  const im::queue queue(home, device);
  const im::queue busy(home, device);
  const cuda_driver driver(device);
  driver.make_current(home);
  const im::buffer there(k_copied, im::kind::device, {.queue = busy});
  const im::buffer pinned(k_copied, im::kind::host, {.queue = busy});
  const auto pool = im::resource::pool(home, im::kind::host);
  const auto begin = [&] {
    busy.wait();
    for (int i = 0; at_work && i < 40; ++i) (void)im::copy_async(there, pinned, {.queue = busy});
  };
  std::array<std::vector<double>, 4> taken;
  for (auto _ : state) {
    void* ours = nullptr;
    void* theirs = nullptr;
    begin();
    taken[0].push_back(seconds([&] { ours = pool.allocate(nbytes, 0, queue); }));
    taken[1].push_back(seconds([&] {
      pool.deallocate(ours, nbytes, 0, queue);
      must(pool.trim() >= nbytes);
    }));
    state.SetIterationTime(taken[0].back() + taken[1].back());
    begin();
    taken[2].push_back(seconds([&] { driver.call("cuMemHostAlloc", &theirs, nbytes, 3U); }));
    taken[3].push_back(seconds([&] { driver.call("cuMemFreeHost", theirs); }));
  }
  busy.wait();
  const char* const names[] = {"had_us", "gone_us", "cuMemHostAlloc_us", "cuMemFreeHost_us"};
  for (std::size_t i = 0; i < taken.size(); ++i) state.counters[names[i]] = median(taken[i]) * 1e6;
}
#define GROWTH_SIZES Arg(2 << 20)->Arg(64 << 20)->UseManualTime()->Iterations(9)
BENCHMARK_CAPTURE(pinned_growth, idle, false)->GROWTH_SIZES;
BENCHMARK_CAPTURE(pinned_growth, at_work, true)->GROWTH_SIZES;

// Measures blocking copies of pinned memory by Isthmus and by the driver. `ratio` is the speed of
// Isthmus over the driver's.
void pinned_copies(benchmark::State& state, path way) {
  const im::device device = find_cuda(state);
  if (!device) return;
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::context home({device});
  const im::queue queue(home, device);
  const cuda_driver driver(device);
  driver.make_current(home);
  const im::buffer there(nbytes, im::kind::device, {.queue = queue});
  const im::buffer pinned(nbytes, im::kind::host, {.queue = queue});
  const im::buffer& to = way == path::to_device ? there : pinned;
  const im::buffer& from = way == path::to_device ? pinned : there;
  std::vector<double> ours;
  std::vector<double> peers;
  for (auto _ : state) {
    ours.push_back(seconds([&] { im::copy(to, from); }));
    peers.push_back(
        seconds([&] { driver.copy(to.pointer(), from.pointer(), nbytes, queue.export_native()); }));
    state.SetIterationTime(ours.back());
  }
  state.counters["GB/s"] = static_cast<double>(nbytes) / median(ours) * 1e-9;
  state.counters["ratio"] = median(peers) / median(ours);
}
#define PINNED_SIZES Arg(4096)->Arg(1 << 20)->Arg(1 << 30)->UseManualTime()->Iterations(50)
BENCHMARK_CAPTURE(pinned_copies, to_device, path::to_device)->PINNED_SIZES;
BENCHMARK_CAPTURE(pinned_copies, back, path::back)->PINNED_SIZES;

}  // namespace
