// SPDX-License-Identifier: Apache-2.0
// Copies of plain host memory to a CUDA device and back, compared in the same rounds with the
// driver's own copies of the same number of bytes, of plain and of pinned memory.
//
// Each counter is GB/s, from the median time of a blocking call. `ratio` is the median time of
// Isthmus over that of the driver's copy of plain memory. `of_pinned` is the same over that of the
// driver's copy of pinned memory, which no copy of plain memory can beat. Without a CUDA device
// every benchmark reports that it is absent.
#include "cuda_driver.hpp"

namespace {

using namespace bench;

enum class direction { to_device, back };

void pageable(benchmark::State& state, direction where_to) {
  const im::device device = find_cuda(state);
  if (!device) return;
  static const cuda_driver peer(device);
  static const im::queue queue(device);
  static const im::queue peers(device);
  peer.make_current(queue.context());
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer there(nbytes, im::kind::device, {.queue = queue});
  const im::buffer pinned(nbytes, im::kind::host, {.queue = queue});
  std::vector<std::byte> plain(nbytes, std::byte{1});
  im::fill(pinned, std::byte{1});
  const auto of_driver = [&](void* host) {
    return where_to == direction::to_device
               ? seconds([&] { peer.copy(there.pointer(), host, nbytes, peers.export_native()); })
               : seconds([&] { peer.copy(host, there.pointer(), nbytes, peers.export_native()); });
  };
  const auto ours = [&] {
    return where_to == direction::to_device
               ? seconds([&] { im::copy(there, std::span<const std::byte>(plain)); })
               : seconds([&] { im::copy(std::span(plain), there); });
  };
  ours();  // allocates the staging memory
  of_driver(plain.data());
  std::vector<double> own, drivers, pinneds;
  for (auto _ : state) {
    own.push_back(ours());
    drivers.push_back(of_driver(plain.data()));
    pinneds.push_back(of_driver(pinned.pointer()));
    state.SetIterationTime(own.back());
  }
  const auto rate = [nbytes](const std::vector<double>& times) {
    return static_cast<double>(nbytes) / median(times) * 1e-9;
  };
  state.counters["isthmus"] = rate(own);
  state.counters["driver"] = rate(drivers);
  state.counters["pinned"] = rate(pinneds);
  state.counters["ratio"] = median(own) / median(drivers);
  state.counters["of_pinned"] = median(own) / median(pinneds);
}
#define EVERY_SIZE     \
  Arg(64 << 10)        \
      ->Arg(256 << 10) \
      ->Arg(1 << 20)   \
      ->Arg(4 << 20)   \
      ->Arg(16 << 20)  \
      ->Arg(64 << 20)  \
      ->Arg(1 << 30)   \
      ->UseManualTime()
BENCHMARK_CAPTURE(pageable, to_device, direction::to_device)->EVERY_SIZE;
BENCHMARK_CAPTURE(pageable, back, direction::back)->EVERY_SIZE;

}  // namespace
