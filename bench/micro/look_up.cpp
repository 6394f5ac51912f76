// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a pointer query, alternating over 8,000 live pointers of random sizes:
// blocks of a pool, which have no allocation record, and memory with a record. The latter are
// buffers of a pool, buffers without a named resource, and adopted memory of one foreign array
// each. Measures throughput: no query waits for the previous one.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <memory>
#include <random>
#include <vector>

namespace im = isthmus;

namespace {

constexpr int k_live = 8000;
constexpr std::size_t k_max_bytes = 65536;

const im::queue& on_host() {
  static const im::queue queue(im::device("host"));
  return queue;
}

const im::resource& host_pool() {
  static const im::resource pool = im::resource::pool(on_host().context(), im::kind::host);
  return pool;
}

template <class Make>
void made_by(Make&& make) {
  std::mt19937 random(1);
  for (int i = 0; i < k_live; ++i) {
    make(1 + random() % k_max_bytes);
  }
}

void ask_in_turn(benchmark::State& state, const std::vector<const void*>& live) {
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  std::size_t next = 0;
  for (auto _ : state) {
    if (isthmus_pointer_info(nullptr, live[next], &info) != ISTHMUS_OK ||
        info.state != ISTHMUS_MEMORY_LIVE) {
      std::abort();
    }
    benchmark::DoNotOptimize(info.base);
    next = next + 1 == live.size() ? 0 : next + 1;
  }
}

void blocks(benchmark::State& state) {
  std::vector<const void*> live;
  made_by([&](std::size_t nbytes) { live.push_back(host_pool().allocate(nbytes, 0, on_host())); });
  ask_in_turn(state, live);
  std::mt19937 random(1);
  for (const void* each : live) {
    host_pool().deallocate(const_cast<void*>(each), 1 + random() % k_max_bytes, 0, on_host());
  }
}
BENCHMARK(blocks);

void ask_buffers(benchmark::State& state, const std::vector<im::buffer>& buffers) {
  std::vector<const void*> live;
  for (const auto& each : buffers) {
    live.push_back(each.pointer());
  }
  ask_in_turn(state, live);
}

void buffers_of_a_pool(benchmark::State& state) {
  std::vector<im::buffer> live;
  made_by([&](std::size_t nbytes) {
    live.emplace_back(nbytes, im::kind::host,
                      im::buffer_options{.queue = on_host(), .resource = host_pool()});
  });
  ask_buffers(state, live);
}
BENCHMARK(buffers_of_a_pool);

// Buffers without a named resource. They come from the default pool.
void buffers_of_the_driver(benchmark::State& state) {
  std::vector<im::buffer> live;
  made_by([&](std::size_t nbytes) {
    live.emplace_back(nbytes, im::kind::host, im::buffer_options{.queue = on_host()});
  });
  ask_buffers(state, live);
}
BENCHMARK(buffers_of_the_driver);

void foreign_memory(benchmark::State& state) {
  std::vector<im::buffer> live;
  made_by([&](std::size_t nbytes) {
    const auto array = std::make_shared<std::vector<std::byte>>(nbytes);
    live.push_back(im::buffer::adopt(std::span(*array), array, {.queue = on_host()}));
  });
  ask_buffers(state, live);
}
BENCHMARK(foreign_memory);

}  // namespace
