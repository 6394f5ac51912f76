// What a block of a pool on the host costs through the C interface, beside general allocators.
//
// Every contestant runs the same window of operations in turn, in one process, and no block is
// touched. A counter `<name>_ns` is the least time for an operation that any window took (an
// allocation with its free counts as one): the cost where nobody disturbs. `ratio` is the pool's
// over malloc's. mimalloc takes part where its library is installed; jemalloc cannot, since Debian's
// does not load into a program that runs ("cannot allocate memory in static TLS block").
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <limits>
#include <memory_resource>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace im = isthmus;
using steady = std::chrono::steady_clock;

namespace {

// Found once: looking for them at every call would cost as much as the call.
isthmus_queue_t* on_host = nullptr;
template <bool Checked>
isthmus_resource_t* pool = nullptr;

template <bool Checked>
void make_pool() {
  static im::queue queue(im::device("host"));
  static im::resource made =
      im::resource::pool(queue.context(), im::kind::host, {.checked = Checked});
  on_host = queue.get();
  pool<Checked> = made.get();
}

struct contestant {
  std::string name;
  void* (*take)(std::size_t nbytes);
  void (*give)(void* memory, std::size_t nbytes);
};

template <bool Checked>
contestant ours(const char* name) {
  make_pool<Checked>();
  return {name,
          [](std::size_t nbytes) {
            void* memory = nullptr;
            isthmus_resource_allocate(pool<Checked>, nbytes, 0, on_host, &memory);
            return memory;
          },
          [](void* memory, std::size_t nbytes) {
            isthmus_resource_deallocate(pool<Checked>, memory, nbytes, 0, on_host);
          }};
}

// The functions of a library opened beside the others; null where it is not installed.
using take_function = void* (*)(std::size_t);
using give_function = void (*)(void*);
struct opened {
  take_function take = nullptr;
  give_function give = nullptr;

  opened(const char* library, const char* take_name, const char* give_name) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (handle == nullptr) return;
    take = reinterpret_cast<take_function>(dlsym(handle, take_name));
    give = reinterpret_cast<give_function>(dlsym(handle, give_name));
  }
};
const opened mimalloc("libmimalloc.so.2", "mi_malloc", "mi_free");

const std::vector<contestant>& contestants() {
  static const std::vector<contestant> all = [] {
    std::vector<contestant> found{ours<true>("pool"),
                                  ours<false>("unchecked"),
                                  {"malloc", [](std::size_t nbytes) { return std::malloc(nbytes); },
                                   [](void* memory, std::size_t) { std::free(memory); }}};
    static std::pmr::synchronized_pool_resource standard;
    found.push_back(
        {"pmr", [](std::size_t nbytes) { return standard.allocate(nbytes); },
         [](void* memory, std::size_t nbytes) { standard.deallocate(memory, nbytes); }});
    if (mimalloc.take != nullptr) {
      found.push_back({"mimalloc", [](std::size_t nbytes) { return mimalloc.take(nbytes); },
                       [](void* memory, std::size_t) { mimalloc.give(memory); }});
    }
    return found;
  }();
  return all;
}

// `window` runs `operations` of one contestant's; all of them in turn, in every iteration.
template <class Window>
void side_by_side(benchmark::State& state, double operations, Window&& window) {
  std::vector<double> least(contestants().size(), std::numeric_limits<double>::max());
  for (auto _ : state) {
    for (std::size_t i = 0; i < least.size(); ++i) {
      const auto start = steady::now();
      window(contestants()[i], i);
      const double taken = std::chrono::duration<double>(steady::now() - start).count();
      least[i] = std::min(least[i], taken / operations);
      if (i == 0) state.SetIterationTime(taken);
    }
  }
  double malloc_seconds = 0;
  for (std::size_t i = 0; i < least.size(); ++i) {
    state.counters[contestants()[i].name + "_ns"] = least[i] * 1e9;
    if (contestants()[i].name == "malloc") malloc_seconds = least[i];
  }
  state.counters["ratio"] = least[0] / malloc_seconds;
}

constexpr int k_window = 4096;

void pair(benchmark::State& state) {
  const auto nbytes = static_cast<std::size_t>(state.range(0));
  side_by_side(state, k_window, [nbytes](const contestant& who, std::size_t) {
    for (int i = 0; i < k_window; ++i) {
      void* memory = who.take(nbytes);
      benchmark::DoNotOptimize(memory);
      who.give(memory, nbytes);
    }
  });
}
BENCHMARK(pair)
    ->Arg(256)
    ->Arg(4096)
    ->Arg(65536)
    ->Arg(1 << 20)
    ->Arg(64 << 20)
    ->UseManualTime()
    ->Iterations(200);

struct block {
  void* memory;
  std::size_t nbytes;
};

// 256 B to 64 KiB, evenly over the logarithm.
std::vector<std::pair<std::size_t, std::size_t>> random_operations(std::size_t live) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(8, 16);
  std::vector<std::pair<std::size_t, std::size_t>> all(k_window);
  for (auto& [which, nbytes] : all) {
    which = random() % live;
    nbytes = static_cast<std::size_t>(std::exp2(exponent(random)));
  }
  return all;
}

// One of `live` blocks is replaced, at random.
void random_sizes(benchmark::State& state) {
  const auto operations = random_operations(4096);
  std::vector<std::vector<block>> live(contestants().size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    for (const auto& [which, nbytes] : operations) {
      live[i].push_back({contestants()[i].take(nbytes), nbytes});
    }
  }
  side_by_side(state, k_window, [&](const contestant& who, std::size_t i) {
    for (const auto& [which, nbytes] : operations) {
      block& replaced = live[i][which];
      who.give(replaced.memory, replaced.nbytes);
      replaced = {who.take(nbytes), nbytes};
    }
  });
  for (std::size_t i = 0; i < live.size(); ++i) {
    for (const block& each : live[i]) contestants()[i].give(each.memory, each.nbytes);
  }
}
BENCHMARK(random_sizes)->UseManualTime()->Iterations(200);

// One thread allocates what another frees.
void producer_consumer(benchmark::State& state) {
  constexpr std::size_t k_ring = 256;
  constexpr std::size_t k_blocks = 20000;
  side_by_side(state, k_blocks, [](const contestant& who, std::size_t) {
    std::vector<std::atomic<void*>> ring(k_ring);
    std::thread consumer([&] {
      for (std::size_t i = 0; i < k_blocks; ++i) {
        void* memory = nullptr;
        while ((memory = ring[i % k_ring].exchange(nullptr, std::memory_order_acquire)) ==
               nullptr) {
        }
        who.give(memory, 4096);
      }
    });
    for (std::size_t i = 0; i < k_blocks; ++i) {
      void* memory = who.take(4096);
      while (ring[i % k_ring].load(std::memory_order_relaxed) != nullptr) {
      }
      ring[i % k_ring].store(memory, std::memory_order_release);
    }
    consumer.join();
  });
}
BENCHMARK(producer_consumer)->UseManualTime()->Iterations(20);

// Both threads at once, the slower of the two: beside `pair` and `random_sizes`, what another thread
// costs.
void random_sizes_on_two_threads(benchmark::State& state) {
  const auto operations = random_operations(4096);
  constexpr int k_rounds = 20;
  side_by_side(state, k_window * k_rounds, [&](const contestant& who, std::size_t) {
    const auto work = [&] {
      std::vector<block> live;
      for (const auto& [which, nbytes] : operations) live.push_back({who.take(nbytes), nbytes});
      for (int round = 0; round < k_rounds; ++round) {
        for (const auto& [which, nbytes] : operations) {
          who.give(live[which].memory, live[which].nbytes);
          live[which] = {who.take(nbytes), nbytes};
        }
      }
      for (const block& each : live) who.give(each.memory, each.nbytes);
    };
    std::thread other(work);
    work();
    other.join();
  });
}
BENCHMARK(random_sizes_on_two_threads)->UseManualTime()->Iterations(10);

// A pair while so many blocks live: the cost must not grow with them.
void pair_beside_live(benchmark::State& state) {
  std::vector<void*> live;
  for (std::int64_t i = 0; i < state.range(0); ++i) live.push_back(contestants()[0].take(256));
  for (auto _ : state) {
    void* memory = contestants()[0].take(4096);
    benchmark::DoNotOptimize(memory);
    contestants()[0].give(memory, 4096);
  }
  for (void* each : live) contestants()[0].give(each, 256);
}
BENCHMARK(pair_beside_live)->Arg(1)->Arg(100'000)->Arg(1'000'000);

// Inner pointers of 8,000 blocks.
void pointer_query(benchmark::State& state) {
  std::vector<void*> live;
  std::mt19937 random(1);
  for (int i = 0; i < 8000; ++i) live.push_back(contestants()[0].take(1 + random() % 65536));
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  std::size_t next = 0;
  for (auto _ : state) {
    if (isthmus_pointer_query(nullptr, live[next], &info) != ISTHMUS_OK) std::abort();
    benchmark::DoNotOptimize(info.base);
    next = next + 1 == live.size() ? 0 : next + 1;
  }
  for (void* each : live) contestants()[0].give(each, 1);
}
BENCHMARK(pointer_query);

}  // namespace
