// Plain host memory to a CUDA device's and back, beside the driver's own copies of the same bytes,
// of plain and of pinned memory, in the same rounds.
//
// Each counter is GB/s by the median time of a call that blocks; `ratio` is our median time over
// that of the driver's copy of plain memory, `of_pinned` over that of its copy of pinned memory,
// which no way of plain memory can beat. Without a CUDA device all of it says that it is absent.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <string>
#include <vector>

namespace im = isthmus;

namespace {

enum class direction { to_device, back };

void must(bool right) {
  if (!right) std::abort();
}

im::device find_cuda() {
  for (const im::device& device : im::devices()) {
    if (device.info().backend == "cuda") return device;
  }
  return {};
}

// The driver's own calls, on a stream of their own.
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

  void copy(void* destination, const void* source, std::size_t nbytes) const {
    must(copy_(place(destination), place(source), nbytes, stream_.native()) == 0 &&
         finish_(stream_.native()) == 0);
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

void pageable(benchmark::State& state, direction where_to) {
  static const im::device device = find_cuda();
  if (!device) {
    state.SkipWithError("absent: no CUDA device on this machine");
    return;
  }
  static const driver peer(device);
  static const im::queue queue(device);
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  const im::buffer there(nbytes, im::kind::device, {.on = queue});
  const im::buffer pinned(nbytes, im::kind::host, {.on = queue});
  std::vector<std::byte> plain(nbytes, std::byte{1});
  im::fill(pinned, std::byte{1});
  const auto of_driver = [&](void* host) {
    return where_to == direction::to_device
               ? seconds([&] { peer.copy(there.pointer(), host, nbytes); })
               : seconds([&] { peer.copy(host, there.pointer(), nbytes); });
  };
  const auto ours = [&] {
    return where_to == direction::to_device
               ? seconds([&] { im::copy(there, std::span<const std::byte>(plain)); })
               : seconds([&] { im::copy(std::span(plain), there); });
  };
  ours();  // makes what it goes by way of
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
