// RMM's containers over a pool of Isthmus, on a GPU. Built by hand, where RMM's headers are
// (docs/testing.md); a program of its own that says what was wrong.

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

void buffers(isthmus::rmm_resource memory) {
  rmm::cuda_stream stream;
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
  const cuda::stream_ref of_thread(cudaStreamPerThread);
  memory.deallocate(of_thread, memory.allocate(of_thread, 1000), 1000);
  expect(memory.allocate_sync(0) == nullptr, "0 bytes give NULL");
  try {
    const isthmus::queue host(isthmus::device("host"));
    static_cast<void>(
        isthmus::rmm_resource(isthmus::resource::pool(host.context(), isthmus::kind::device)));
    expect(false, "a pool of the host's is refused");
  } catch (const isthmus::unsupported&) {
  }
}

void threads(isthmus::rmm_resource memory) {
  std::vector<std::thread> all;
  for (int number = 0; number < 8; ++number) {
    all.emplace_back([&memory, number] {
      rmm::cuda_stream stream;
      auto mine = memory;
      std::vector<rmm::device_buffer> kept;
      for (std::size_t turn = 0; turn < 2000; ++turn) {
        const auto nbytes = 1 + turn * 7919 % 300'000;
        kept.emplace_back(nbytes, cuda::stream_ref(stream.value()), mine);
        expect(cudaMemsetAsync(kept.back().data(), number, nbytes, stream.value()) == cudaSuccess,
               "the fill is put");
        if (kept.size() > 16) kept.erase(kept.begin() + static_cast<long>(turn % 16));
      }
      kept.clear();
      stream.synchronize();
    });
  }
  for (auto& each : all) each.join();
}

void streams_that_go(const isthmus::resource& pool) {
  isthmus::rmm_resource memory(pool, isthmus::streams::come_and_go);
  for (int turn = 0; turn < 100; ++turn) {
    rmm::cuda_stream stream;
    rmm::device_buffer buffer(100'000, cuda::stream_ref(stream.value()), memory);
    expect(cudaMemsetAsync(buffer.data(), 1, buffer.size(), stream.value()) == cudaSuccess,
           "the fill is put");
  }
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
  const isthmus::device gpu("cuda:0");
  const auto pool = isthmus::resource::pool(isthmus::context::of(gpu), isthmus::kind::device);
  const isthmus::rmm_resource memory(pool);
  buffers(memory);
  refusals(memory);
  threads(memory);
  streams_that_go(pool);
  as_the_current_one(memory);
  expect(cudaDeviceSynchronize() == cudaSuccess, "nothing went wrong on the device");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
