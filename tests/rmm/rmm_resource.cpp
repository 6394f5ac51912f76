// SPDX-License-Identifier: Apache-2.0
// RMM's containers over an Isthmus pool, on a GPU. A program of its own that prints what failed.
// Returns 77, which ctest counts as skipped, where there is no CUDA device.

#include <isthmus/isthmus.hpp>
#include <isthmus/rmm.hpp>

#include <cuda_runtime_api.h>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>

#include <cstring>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "NOT SO: %s\n", what);
    ++failures;
  }
}

isthmus::resource new_pool() {
  return isthmus::resource::pool(isthmus::context::of(isthmus::device("cuda:0")),
                                 isthmus::kind::device);
}

// Streams passed as `streams::persistent` are created before the pool, and so destroyed after it.
void buffers() {
  const rmm::cuda_stream stream;
  const isthmus::rmm_resource memory(new_pool(), isthmus::streams::persistent);
  const std::vector<char> data(1 << 20, 7);
  rmm::device_buffer first(data.data(), data.size(), cuda::stream_ref(stream.value()), memory);
  rmm::device_buffer second(first, cuda::stream_ref(stream.value()), memory);
  std::vector<char> back(data.size());
  expect(cudaMemcpyAsync(back.data(), second.data(), back.size(), cudaMemcpyDefault,
                         stream.value()) == cudaSuccess,
         "the copy is put");
  stream.synchronize();
  expect(back == data, "what came back is what went there");
  expect(isthmus::query(second.data()).kind == isthmus::kind::device, "it is Isthmus' memory");
  const auto* const was = first.data();
  first = rmm::device_buffer();
  const rmm::device_buffer third(data.size(), cuda::stream_ref(stream.value()), memory);
  expect(third.data() == was, "freed on a stream it is good there at once");
}

void refusals(isthmus::rmm_resource memory) {
  try {
    static_cast<void>(memory.allocate_sync(std::size_t{1} << 40));
    expect(false, "1 TiB is refused");
  } catch (const rmm::out_of_memory& told) {
    expect(std::strstr(told.what(), "1 TiB") != nullptr, "the message names the request");
  }
  expect(memory.allocate_sync(0) == nullptr, "0 bytes give NULL");
  try {
    const isthmus::queue host(isthmus::device("host"));
    static_cast<void>(
        isthmus::rmm_resource(isthmus::resource::pool(host.context(), isthmus::kind::device)));
    expect(false, "a pool of the host's is refused");
  } catch (const isthmus::unsupported&) {
  }
}

void threads(isthmus::streams lives) {
  constexpr std::size_t k_threads = 8;
  const std::vector<rmm::cuda_stream> streams(k_threads);
  const isthmus::rmm_resource memory(new_pool(), lives);
  std::vector<std::thread> all;
  for (std::size_t number = 0; number < k_threads; ++number) {
    all.emplace_back([&, number] {
      const auto& stream = streams[number];
      auto mine = memory;
      std::vector<rmm::device_buffer> kept;
      for (std::size_t turn = 0; turn < 2000; ++turn) {
        const auto nbytes = 1 + turn * 7919 % 300'000;
        kept.emplace_back(nbytes, cuda::stream_ref(stream.value()), mine);
        expect(cudaMemsetAsync(kept.back().data(), 7, nbytes, stream.value()) == cudaSuccess,
               "the fill is put");
        if (kept.size() > 16) kept.erase(kept.begin() + static_cast<long>(turn % 16));
      }
      kept.clear();
      stream.synchronize();
    });
  }
  for (auto& each : all) each.join();
}

void streams_that_go(const isthmus::rmm_resource& memory) {
  for (int turn = 0; turn < 100; ++turn) {
    rmm::cuda_stream stream;
    rmm::device_buffer buffer(100'000, cuda::stream_ref(stream.value()), memory);
    expect(cudaMemsetAsync(buffer.data(), 1, buffer.size(), stream.value()) == cudaSuccess,
           "the fill is put");
  }
}

void the_stream_of_each_thread(const isthmus::rmm_resource& memory) {
  const cuda::stream_ref on(cudaStreamPerThread);
  rmm::device_buffer buffer(100'000, on, memory);
  std::thread([&] {
    rmm::device_buffer other(100'000, on, memory);
    expect(cudaMemsetAsync(other.data(), 1, other.size(), cudaStreamPerThread) == cudaSuccess,
           "the fill is put");
  }).join();
  buffer = rmm::device_buffer();
}

void as_the_current_one(isthmus::rmm_resource memory) {
  rmm::mr::statistics_resource_adaptor counted(memory);
  rmm::mr::set_current_device_resource(counted);
  {
    const rmm::device_buffer buffer(1000, cuda::stream_ref(cudaStream_t{nullptr}));
    expect(counted.get_bytes_counter().value == 1000, "the current resource is ours");
  }
  rmm::mr::reset_current_device_resource();
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("absent: no CUDA device on this machine");
    return 77;
  }
  const isthmus::rmm_resource memory(new_pool());
  buffers();
  refusals(memory);
  threads(isthmus::streams::persistent);
  threads(isthmus::streams::transient);
  streams_that_go(memory);
  the_stream_of_each_thread(memory);
  as_the_current_one(memory);
  expect(cudaDeviceSynchronize() == cudaSuccess, "nothing went wrong on the device");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
