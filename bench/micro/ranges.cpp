// SPDX-License-Identifier: Apache-2.0
// Copies of many ranges between host memory and a CUDA device in one call, compared in the same
// rounds with one driver copy per range.
//
// Ranges of `bytes` lie at random positions of 1 GiB on one side and consecutively on the other
// side, there from an odd address if `odd` is 1. Counters: the median times in ms of one blocking
// call (`one_call`) and of all driver copies with one wait (`copies`), GB/s of the call, and
// `ratio`, the time of Isthmus over the driver's. Without a CUDA device every benchmark reports
// that it is absent.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <isthmus/isthmus.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace im = isthmus;

namespace {

constexpr std::size_t k_whole = std::size_t{1} << 30;

enum class way { from_pinned, to_pinned, from_plain, to_plain, inside };

void must(bool right) {
  if (!right) std::abort();
}

im::device find_cuda() {
  for (const im::device& device : im::devices()) {
    if (device.info().backend == "cuda") return device;
  }
  return {};
}

// The driver's own calls, on a separate stream.
class driver {
 public:
  explicit driver(const im::device& device) : stream_(device) {
    const im::platform platform = device.platform();
    const std::string path(platform.info().library);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    must(library != nullptr);
    copy_ = function<decltype(copy_)>(library, "cuMemcpyAsync");
    finish_ = function<decltype(finish_)>(library, "cuStreamSynchronize");
    const auto set_current = function<unsigned (*)(void* context)>(library, "cuCtxSetCurrent");
    must(set_current(stream_.context().native()) == 0);
  }

  void copy(void* destination, const void* source, const std::vector<im::copy_range>& all) const {
    for (const auto& each : all) {
      must(copy_(place(destination) + each.destination_offset, place(source) + each.source_offset,
                 each.nbytes, stream_.export_native()) == 0);
    }
    must(finish_(stream_.export_native()) == 0);
  }

 private:
  template <class Function>
  static Function function(void* library, const char* name) {
    auto* found = reinterpret_cast<Function>(dlsym(library, name));
    must(found != nullptr);
    return found;
  }
  static unsigned long long place(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  im::queue stream_;
  unsigned (*copy_)(unsigned long long, unsigned long long, std::size_t, void* stream) = nullptr;
  unsigned (*finish_)(void* stream) = nullptr;
};

template <class Function>
double milliseconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

// 1 GiB of each kind of memory, allocated once.
struct memory {
  explicit memory(const im::device& device)
      : peer(device),
        queue(device),
        there(k_whole, im::kind::device, {.queue = queue}),
        other(k_whole, im::kind::device, {.queue = queue}),
        pinned(k_whole, im::kind::host, {.queue = queue}),
        plain(k_whole, std::byte{1}) {
    im::fill(pinned, std::byte{1});
    im::fill(there, std::byte{2});
    im::fill(other, std::byte{3});
  }
  driver peer;
  im::queue queue;
  im::buffer there, other, pinned;
  std::vector<std::byte> plain;
};

std::vector<im::copy_range> scattered(std::size_t count, std::size_t nbytes, std::size_t odd) {
  std::vector<std::size_t> places(k_whole / nbytes - 1);
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::shuffle(places.begin(), places.end(), std::mt19937_64(1));
  places.resize(count);
  std::sort(places.begin(), places.end());
  std::vector<im::copy_range> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back({places[i] * nbytes, i * nbytes + odd, nbytes});
  }
  return made;
}

void ranges(benchmark::State& state, way where_to) {
  static const im::device device = find_cuda();
  if (!device) {
    state.SkipWithError("absent: no CUDA device on this machine");
    return;
  }
  static memory all(device);
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto nbytes = static_cast<std::size_t>(state.range(1));
  const auto what = scattered(count, nbytes, static_cast<std::size_t>(state.range(2)));
  const auto host = std::span(all.plain);
  const auto* const from_host = all.plain.data();
  const auto one_call = [&] {
    switch (where_to) {
      case way::from_pinned: return im::copy_ranges(all.there, all.pinned, what);
      case way::to_pinned: return im::copy_ranges(all.pinned, all.there, what);
      case way::from_plain: return im::copy_ranges(all.there, im::source(host), what);
      case way::to_plain: return im::copy_ranges(host, all.there, what);
      case way::inside: return im::copy_ranges(all.there, all.other, what);
    }
  };
  const auto copies = [&] {
    void* const there = all.there.pointer();
    switch (where_to) {
      case way::from_pinned: return all.peer.copy(there, all.pinned.pointer(), what);
      case way::to_pinned: return all.peer.copy(all.pinned.pointer(), there, what);
      case way::from_plain: return all.peer.copy(there, from_host, what);
      case way::to_plain: return all.peer.copy(all.plain.data(), there, what);
      case way::inside: return all.peer.copy(there, all.other.pointer(), what);
    }
  };
  one_call();  // allocates the staging memory
  std::vector<double> own, drivers;
  for (auto _ : state) {
    own.push_back(milliseconds(one_call));
    drivers.push_back(milliseconds(copies));
    state.SetIterationTime(own.back() * 1e-3);
  }
  state.counters["one_call"] = median(own);
  state.counters["copies"] = median(drivers);
  state.counters["GB/s"] = static_cast<double>(count * nbytes) / median(own) * 1e-6;
  state.counters["ratio"] = median(own) / median(drivers);
}

void every_count(benchmark::internal::Benchmark* of) {
  of->ArgNames({"ranges", "bytes", "odd"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int count : {5, 26, 262, 2606, 26060}) of->Args({count, 4096, 0});
  of->Args({2606, 4096, 1});
  of->Args({2606, 64, 0});
  of->Args({26060, 64, 0});
  of->Args({1600, 65536, 0});
  of->Args({160, 655360, 0});
  of->Iterations(12);
}
BENCHMARK_CAPTURE(ranges, from_pinned, way::from_pinned)->Apply(every_count);
BENCHMARK_CAPTURE(ranges, to_pinned, way::to_pinned)->Apply(every_count);
BENCHMARK_CAPTURE(ranges, from_plain, way::from_plain)->Apply(every_count);
BENCHMARK_CAPTURE(ranges, to_plain, way::to_plain)->Apply(every_count);
BENCHMARK_CAPTURE(ranges, inside, way::inside)->Apply(every_count);

}  // namespace
