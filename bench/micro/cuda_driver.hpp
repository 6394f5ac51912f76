// SPDX-License-Identifier: Apache-2.0
#pragma once
// A CUDA device and the calls of its driver, as a peer of Isthmus in the same process.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <string>
#include <vector>

namespace bench {

namespace im = isthmus;

inline void must(bool right) {
  if (!right) std::abort();
}

// Finds a CUDA device. Without one, returns an empty device and marks the benchmark as absent in
// `state`.
inline im::device find_cuda(benchmark::State& state) {
  static const im::device found = [] {
    for (const im::device& device : im::devices()) {
      if (device.info().backend == "cuda") return device;
    }
    return im::device();
  }();
  if (!found) state.SkipWithError("absent: no CUDA device on this machine");
  return found;
}

class cuda_driver {
 public:
  explicit cuda_driver(const im::device& device) {
    const im::platform platform = device.platform();
    const std::string path(platform.info().library);
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    must(library_ != nullptr);
  }

  // Calls a driver function in the calling thread's current context. Aborts unless it succeeds.
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    const auto found = reinterpret_cast<unsigned (*)(Arguments...)>(dlsym(library_, name));
    must(found != nullptr && found(arguments...) == 0);
  }
  void make_current(const im::context& home) const { call("cuCtxSetCurrent", home.native()); }

  void copy(void* destination, const void* source, std::size_t nbytes, void* stream) const {
    call("cuMemcpyAsync", place(destination), place(source), nbytes, stream);
    call("cuStreamSynchronize", stream);
  }
  static unsigned long long place(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

 private:
  void* library_ = nullptr;
};

template <class Function>
double seconds(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

}  // namespace bench
