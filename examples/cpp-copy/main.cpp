// SPDX-License-Identifier: Apache-2.0
// Copies numbers to a device, doubles them in queue order, and copies them back (C++20).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <isthmus/isthmus.hpp>
#include <numeric>
#include <vector>

namespace im = isthmus;

// A "kernel" that runs on the host: doubles every float.
void double_floats(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    value *= 2;
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

int main() try {
  const im::device device = im::device::best();
  const im::queue queue(device);
  std::vector<float> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::span<float> all(numbers);

  // A kind that host and device can access, so that the function runs with every device.
  const im::kind kind = device.offers(im::kind::shared) ? im::kind::shared : im::kind::host;
  const im::buffer shared(all.size_bytes(), kind, {.queue = queue, .alignment = 64});
  const im::buffer on_device(all.size_bytes(), im::kind::device, {.queue = queue});

  const im::event uploaded = im::copy_async(on_device, all);
  const im::event copied = im::copy_async(shared, on_device, {.after = uploaded});
  queue.submit_after(copied, double_floats, shared).wait();
  std::vector<float> received(numbers.size());
  im::copy(std::span(received), shared);

  for (std::size_t i = 0; i < received.size(); ++i) {
    if (received[i] != 2 * numbers[i]) return EXIT_FAILURE;
  }
  const im::device_info info = device.info();
  std::printf("copied %zu floats to %s and doubled them\n", received.size(),
              std::string(info.name).c_str());
  return EXIT_SUCCESS;
} catch (const im::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return EXIT_FAILURE;
}
