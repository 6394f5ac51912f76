// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pools on the host and general-purpose allocators as contestants, each called through two function
// pointers, and the loop that times them in all benchmarks.
//
// All contestants run the same window of operations alternately in one process, and no block is
// touched. The counter `<name>_ns` is the minimum time per operation over all windows: the cost
// without disturbance by other work. `ratio` is the pool's time over malloc's.
//
// malloc and std::pmr always take part. The others take part if their library is found; `./dev
// bench` installs them. The benchmark's context names the absent ones. jemalloc needs more static
// thread-local storage than a running program has left, unless GLIBC_TUNABLES reserves some, as
// `./dev bench` does.

#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <limits>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <vector>

namespace bench {

struct contestant {
  std::string name;
  void* (*take)(std::size_t nbytes);
  void (*give)(void* memory, std::size_t nbytes);
};

// Cached, since a lookup in every call would cost as much as the call.
inline isthmus_queue_t* on_host = nullptr;
enum class settings { usual, unchecked, limited };
template <settings Which>
inline isthmus_resource_t* pool = nullptr;

// Options with limits that no benchmark reaches: only the cost of checking them is measured.
inline isthmus::pool_options options_of(settings which) {
  if (which != settings::limited) return {.checked = which != settings::unchecked};
  constexpr std::uint64_t k_gib = 1 << 30;
  return {.limit_bytes = 8 * k_gib,
          .soft_limit_bytes = 4 * k_gib,
          .budget = isthmus::budget(16 * k_gib)};
}

template <settings Which>
contestant ours(const char* name) {
  static isthmus::queue queue(isthmus::device("host"));
  static isthmus::resource made =
      isthmus::resource::pool(queue.context(), isthmus::kind::host, options_of(Which));
  on_host = queue.get();
  pool<Which> = made.get();
  return {name,
          [](std::size_t nbytes) {
            void* memory = nullptr;
            if (isthmus_resource_allocate(pool<Which>, nbytes, 0, on_host, &memory) != ISTHMUS_OK) {
              std::abort();
            }
            return memory;
          },
          [](void* memory, std::size_t nbytes) {
            isthmus_resource_deallocate(pool<Which>, memory, nbytes, 0, on_host);
          }};
}

// A library loaded in addition to the program's own allocator. Functions are looked up by name.
class library {
 public:
  library(const char* who, const char* path)
      : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)) {
    if (handle_ == nullptr) benchmark::AddCustomContext(who, std::string("absent: ") + dlerror());
  }
  [[nodiscard]] bool is_here() const { return handle_ != nullptr; }
  template <class Function>
  Function* function(const char* name) const {
    auto* found = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (found == nullptr) std::abort();  // a version with another interface
    return found;
  }

 private:
  void* handle_;
};

// An allocator whose malloc and free are exported under the given names.
struct general_allocator {
  void* (*take)(std::size_t) = nullptr;
  void (*give)(void*) = nullptr;

  general_allocator(const char* who, const char* path, const char* take_name,
                    const char* give_name) {
    const library opened(who, path);
    if (!opened.is_here()) return;
    take = opened.function<void*(std::size_t)>(take_name);
    give = opened.function<void(void*)>(give_name);
  }
};
inline const general_allocator mimalloc("mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free");
inline const general_allocator jemalloc("jemalloc", "libjemalloc.so.2", "malloc", "free");

// UMF's disjoint pool, configured as its users do for a device: slabs of 2 MiB from memory that was
// allocated before. Uses the C interface of version 1.2, as documented.
struct umf_pool {
  void* pool = nullptr;
  void* (*take)(void* pool, std::size_t nbytes) = nullptr;
  int (*give)(void* pool, void* memory) = nullptr;

  umf_pool() {
    const char* given = std::getenv("ISTHMUS_UMF_LIBRARY");
    const library umf("umf", given != nullptr ? given : "libumf.so.1");
    if (!umf.is_here()) return;
    take = umf.function<void*(void*, std::size_t)>("umfPoolMalloc");
    give = umf.function<int(void*, void*)>("umfPoolFree");
    pool = make(umf, provider(umf));
  }

 private:
  using setter = int(void* parameters, std::size_t value);

  static void must(int status) {
    if (status != 0) std::abort();
  }
  static void* provider(const library& umf) {
    constexpr std::size_t k_bytes = std::size_t{16} << 30;  // mostly address space
    void* memory = mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    void* parameters = nullptr;
    must(umf.function<int(void*, std::size_t, void**)>("umfFixedMemoryProviderParamsCreate")(
        memory, k_bytes, &parameters));
    void* made = nullptr;
    must(umf.function<int(const void*, const void*, void**)>("umfMemoryProviderCreate")(
        umf.function<const void*()>("umfFixedMemoryProviderOps")(), parameters, &made));
    return made;
  }
  static void* make(const library& umf, void* provider) {
    void* parameters = nullptr;
    must(umf.function<int(void**)>("umfDisjointPoolParamsCreate")(&parameters));
    must(umf.function<setter>("umfDisjointPoolParamsSetSlabMinSize")(parameters, 2 << 20));
    must(umf.function<setter>("umfDisjointPoolParamsSetMaxPoolableSize")(parameters, 64 << 20));
    must(umf.function<setter>("umfDisjointPoolParamsSetMinBucketSize")(parameters, 256));
    must(umf.function<setter>("umfDisjointPoolParamsSetCapacity")(parameters, 64));
    void* made = nullptr;
    must(umf.function<int(const void*, void*, const void*, int, void**)>("umfPoolCreate")(
        umf.function<const void*()>("umfDisjointPoolOps")(), provider, parameters, 0, &made));
    return made;
  }
};
inline const umf_pool umf;

// The first contestant is the pool, the third is malloc.
inline const std::vector<contestant>& contestants() {
  static const std::vector<contestant> all = [] {
    std::vector<contestant> found{ours<settings::usual>("pool"),
                                  ours<settings::unchecked>("unchecked"),
                                  {"malloc", [](std::size_t nbytes) { return std::malloc(nbytes); },
                                   [](void* memory, std::size_t) { std::free(memory); }},
                                  ours<settings::limited>("limited")};
    static std::pmr::synchronized_pool_resource standard;
    found.push_back(
        {"pmr", [](std::size_t nbytes) { return standard.allocate(nbytes); },
         [](void* memory, std::size_t nbytes) { standard.deallocate(memory, nbytes); }});
    if (mimalloc.take != nullptr) {
      found.push_back({"mimalloc", [](std::size_t nbytes) { return mimalloc.take(nbytes); },
                       [](void* memory, std::size_t) { mimalloc.give(memory); }});
    }
    if (jemalloc.take != nullptr) {
      found.push_back({"jemalloc", [](std::size_t nbytes) { return jemalloc.take(nbytes); },
                       [](void* memory, std::size_t) { jemalloc.give(memory); }});
    }
    if (umf.pool != nullptr) {
      found.push_back({"umf", [](std::size_t nbytes) { return umf.take(umf.pool, nbytes); },
                       [](void* memory, std::size_t) { umf.give(umf.pool, memory); }});
    }
    return found;
  }();
  return all;
}

// Times all contestants alternately in every iteration. `window` runs `operations` operations of
// one contestant. If it returns a double, that is the time in seconds.
template <class Window>
void side_by_side(benchmark::State& state, double operations, Window&& window) {
  using steady = std::chrono::steady_clock;
  std::vector<double> least(contestants().size(), std::numeric_limits<double>::max());
  for (auto _ : state) {
    for (std::size_t i = 0; i < least.size(); ++i) {
      double taken = 0;
      if constexpr (std::is_same_v<decltype(window(contestants()[i], i)), double>) {
        taken = window(contestants()[i], i);
      } else {
        const auto start = steady::now();
        window(contestants()[i], i);
        taken = std::chrono::duration<double>(steady::now() - start).count();
      }
      least[i] = std::min(least[i], taken / operations);
      if (i == 0) state.SetIterationTime(taken);
    }
  }
  for (std::size_t i = 0; i < least.size(); ++i) {
    state.counters[contestants()[i].name + "_ns"] = least[i] * 1e9;
  }
  state.counters["ratio"] = least[0] / least[2];
}

}  // namespace bench
