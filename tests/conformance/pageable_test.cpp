// SPDX-License-Identifier: Apache-2.0
// Large copies between pageable memory and a device, which some backends divide into chunks that
// several threads copy. Every byte arrives, in order with the operations before and after on the
// queue.
#include <thread>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class pageable : public on_backend {};
INSTANTIATE_ON_BACKENDS(pageable);

// Around the size of a chunk and of what all copy threads together have in flight.
constexpr std::size_t k_copy_sizes[] = {32 * k_kib,    128 * k_kib + 1, k_mib - 3,
                                        5 * k_mib + 7, 17 * k_mib + 13, 40 * k_mib};

TEST_P(pageable, every_byte_is_copied_there_and_back) {
  for (const std::size_t nbytes : k_copy_sizes) {
    const bytes data = noise(nbytes + 3);
    const im::buffer there = make(nbytes + 1, im::kind::device);
    bytes sent = data;
    im::copy_bytes(im::at(there, 1), std::span<const std::byte>(sent).subspan(3), nbytes);
    std::fill(sent.begin(), sent.end(), std::byte{});  // the caller may overwrite it after the call
    bytes back(nbytes + 5);
    im::copy_bytes(std::span(back).subspan(5), im::at(there, 1), nbytes);
    EXPECT_TRUE(same(std::span(back).subspan(5), std::span(data).subspan(3))) << nbytes;
  }
}

TEST_P(pageable, rows_are_copied_to_their_destination) {
  struct rectangle {
    std::size_t width, height, pitch;
  };
  for (const auto& [width, height, pitch] :
       {rectangle{1000, 3000, 1100}, rectangle{5 * k_mib, 3, 5 * k_mib + 64}}) {
    const bytes data = noise(pitch * height);
    const im::buffer there = make(pitch * height, im::kind::device);
    im::fill(there, std::byte{0});
    const isthmus_endpoint_t host{nullptr, const_cast<std::byte*>(data.data()), 0};
    const isthmus_endpoint_t device{there.get(), nullptr, 0};
    im::detail::check(
        isthmus_copy_2d(nullptr, &device, pitch, &host, pitch, width, height, nullptr, nullptr));
    bytes want(pitch * height);
    for (std::size_t row = 0; row < height; ++row) {
      std::copy_n(data.data() + row * pitch, width, want.data() + row * pitch);
    }
    EXPECT_TRUE(same(read(there), want));
    bytes back(pitch * height);
    const isthmus_endpoint_t out{nullptr, back.data(), 0};
    im::detail::check(
        isthmus_copy_2d(nullptr, &out, pitch, &device, pitch, width, height, nullptr, nullptr));
    EXPECT_TRUE(same(back, want)) << "and nothing between the rows";
  }
}

TEST_P(pageable, is_in_order_with_the_queue) {
  constexpr std::size_t k_bytes = 9 * k_mib + 5;
  const bytes first = noise(k_bytes, 1);
  const im::buffer there = make(k_bytes, im::kind::device);
  bytes early(k_bytes);
  bytes late(k_bytes);
  const auto at = [](bytes& of) { return std::span(of); };
  const im::event ends[] = {im::copy_async(there, std::span(first), {.queue = queue_}),
                            im::copy_async(at(early), there, {.queue = queue_}),
                            im::fill_async(there, std::byte{7}, {.queue = queue_}),
                            im::copy_async(at(late), there, {.queue = queue_})};
  for (const auto& each : ends) each.wait();
  EXPECT_TRUE(same(early, first));
  EXPECT_TRUE(same(late, bytes(k_bytes, std::byte{7})));
}

TEST_P(pageable, waits_for_its_dependencies) {
  constexpr std::size_t k_bytes = 3 * k_mib;
  bytes data = noise(k_bytes, 1);
  const bytes later = noise(k_bytes, 2);
  const im::buffer there = make(k_bytes, im::kind::device);
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const im::host_event gate;
  const im::event end = im::copy_async(there, std::span(data), {.queue = queue_, .after = {gate}});
  data = later;
  gate.complete();
  end.wait();
  EXPECT_TRUE(same(read(there), later));
}

TEST_P(pageable, threads_copy_at_once) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      for (unsigned round = 0; round < 3; ++round) {
        const bytes data = noise(6 * k_mib + seed, seed * 10 + round);
        const im::buffer there = make(data.size(), im::kind::device);
        write(there, data);
        EXPECT_TRUE(same(read(there), data));
      }
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace
