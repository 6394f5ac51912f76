// SPDX-License-Identifier: Apache-2.0
// One array on the host and on a device (C++20). A few elements change in each round, and only the
// changes are copied.
#include <cstdio>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <numeric>
#include <vector>

namespace im = isthmus;

constexpr std::size_t k_count = 1 << 22;
constexpr std::size_t k_rounds = 20;

// A "kernel": reads a range of the device copy, as a kernel of the program would.
std::vector<float> read(const im::unified_buffer<float>& values, im::element_range range) {
  std::vector<float> result(range.end - range.begin);
  im::copy_bytes(std::span(result), im::at(values.device(), range.begin * sizeof(float)),
                 result.size() * sizeof(float));
  return result;
}

bool uploads_host_writes(const im::unified_buffer<float>& values) {
  const im::unified_view<float> host = values.host();
  for (std::size_t round = 1; round <= k_rounds; ++round) {
    const std::size_t at = round * 100'000;
    host[at] = -1.0f;  // detected automatically
    if (read(values, {at, at + 1})[0] != -1.0f) return false;
  }
  return values.state() == im::unified_state::synchronized;
}

// Device writes must be declared; here the end of device_write declares them.
bool downloads_device_writes(const im::unified_buffer<float>& values) {
  const std::vector<float> sevens(1000, 7.0f);
  values.device_write({5000, 6000}, [&](const im::buffer& all) {
    im::copy(im::at(all, 5000 * sizeof(float)), std::as_bytes(std::span(sevens)));
  });
  const std::span<const float> host = values.host_read({4999, 6001});
  return host[0] == 4999.0f && host[1] == 7.0f && host[1000] == 7.0f && host[1001] == 6000.0f;
}

int main() try {
  // Keeps two copies on every device, so that the host device copies data too.
  const im::unified_buffer<float> values(k_count, {.separate = true});
  {
    const im::unified_view<float> all = values.host();
    std::iota(all.begin(), all.end(), 0.0f);
  }
  values.sync_to_device();
  const im::unified_info before = values.info();
  if (!uploads_host_writes(values) || !downloads_device_writes(values)) return EXIT_FAILURE;

  const im::unified_info after = values.info();
  std::printf("%zu rounds copied %llu bytes; copies of the whole array would be %zu bytes\n",
              k_rounds,
              static_cast<unsigned long long>(after.bytes_to_device - before.bytes_to_device),
              k_rounds * values.nbytes());
  return EXIT_SUCCESS;
} catch (const im::error& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return EXIT_FAILURE;
}
