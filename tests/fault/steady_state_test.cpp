// SPDX-License-Identifier: Apache-2.0
// A program that repeats its steps makes no driver call for memory, even though its pools decay.
#include <numeric>

#include "cuda_relay.hpp"
#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

constexpr std::size_t k_step_sizes[] = {100, 1000, 70'000, k_mib, 3 * k_mib, 40 * k_mib};

// One block of each size at a time, then all of them at once.
void make_and_drop(const im::queue& queue, im::kind kind, const im::resource& from) {
  std::vector<im::buffer> held;
  for (const std::size_t nbytes : k_step_sizes) {
    (void)im::buffer(nbytes, kind, {.queue = queue, .resource = from});
    held.emplace_back(nbytes, kind, im::buffer_options{.queue = queue, .resource = from});
  }
}

// Long enough for several decay windows.
void keep_making(const im::queue& queue, im::kind kind, const im::resource& from,
                 std::chrono::nanoseconds length) {
  const auto until = std::chrono::steady_clock::now() + length;
  do {
    make_and_drop(queue, kind, from);
  } while (std::chrono::steady_clock::now() < until);
}

// A window long enough that a loaded machine does not miss it.
im::resource decaying_pool(const im::queue& queue, im::kind kind, bool remaps = true) {
  return im::resource::pool(queue.context(), kind, {.remap = remaps, .decay = 1s}, queue.device());
}

class steady : public leak_checked {};

TEST_F(steady, makes_no_call_while_its_pools_decay) {
  const im::sim_device device;
  const im::queue queue(device);
  const im::resource from = decaying_pool(queue, im::kind::device);
  keep_making(queue, im::kind::device, from, 100ms);
  const std::uint64_t before = device.calls("any");
  keep_making(queue, im::kind::device, from, 3500ms);
  EXPECT_EQ(device.calls("any"), before);
}

// The default window is 10 s, so it ends at least once here.
TEST_F(steady, makes_no_call_for_longer_than_default_pools_keep_what_is_unused) {
  const im::sim_device device;
  const im::queue queue(device);
  keep_making(queue, im::kind::device, {}, 10ms);
  const std::uint64_t before = device.calls("any");
  keep_making(queue, im::kind::device, {}, 11s);
  EXPECT_EQ(device.calls("any"), before);
}

TEST_F(steady, unused_memory_returns_to_the_driver_automatically) {
  const im::sim_device device;
  const im::queue queue(device);
  const im::resource from = im::resource::pool(queue.context(), im::kind::device, {.decay = 20ms});
  make_and_drop(queue, im::kind::device, from);
  EXPECT_TRUE(eventually([&] { return device.state().device_bytes == 0; }));
}

class cuda_steady : public on_cuda_relay {
 protected:
  [[nodiscard]] long calls() const {
    const auto all = relay_.succeeded();
    return std::accumulate(all.begin(), all.end(), 0L,
                           [](long sum, const auto& each) { return sum + each.second; });
  }
};

TEST_F(cuda_steady, makes_no_call_while_its_pools_decay) {
  const im::queue queue(device_);
  for (const bool remaps : {true, false}) {
    const im::resource from = decaying_pool(queue, im::kind::device, remaps);
    keep_making(queue, im::kind::device, from, 100ms);
    const long before = calls();
    keep_making(queue, im::kind::device, from, 3500ms);
    EXPECT_EQ(calls(), before) << remaps;
  }
}

TEST_F(cuda_steady, makes_no_call_for_longer_than_default_pools_keep_what_is_unused) {
  const im::queue queue(device_);
  for (const im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
    keep_making(queue, kind, {}, 10ms);
  }
  const long before = calls();
  for (const auto until = std::chrono::steady_clock::now() + 11s;
       std::chrono::steady_clock::now() < until;) {
    for (const im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
      make_and_drop(queue, kind, {});
    }
  }
  EXPECT_EQ(calls(), before);
}

}  // namespace
