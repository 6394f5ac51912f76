// SPDX-License-Identifier: Apache-2.0
// Copies from a device of one backend to a device of another, which go through the host: large
// copies, rows, ranges and arrays, blocking and asynchronous. A failure of either side is reported
// and leaks nothing.
#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/device_pairs.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

// Around the sizes of the chunks that such copies are divided into.
constexpr std::size_t k_between_sizes[] = {1000, 2 * k_mib - 1, 4 * k_mib + 3, 9 * k_mib + 11};

class between : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!device_) return;
    for (const auto& other : backend_names()) {
      if (const im::device found = open_backend(other)) others_.emplace_back(found);
    }
  }
  void TearDown() override {
    others_.clear();
    on_backend::TearDown();
  }
  template <class Check>
  void both_ways(Check&& check) const {
    for (const auto& other : others_) {
      SCOPED_TRACE(other.device().info().filter);
      check(queue_, other);
      check(other, queue_);
    }
  }

  std::vector<im::queue> others_;
};
INSTANTIATE_ON_BACKENDS(between);

TEST_P(between, every_byte_arrives) {
  for (const std::size_t nbytes : k_between_sizes) {
    const bytes data = noise(nbytes + 5);
    both_ways([&](const im::queue& to, const im::queue& from) {
      const im::buffer source = device_buffer(from, data);
      const im::buffer target = device_buffer(to, bytes(nbytes + 9));
      im::copy_bytes(im::at(target, 9), im::at(source, 5), nbytes);
      im::copy_bytes_async(im::at(target, 9), im::at(source, 5), nbytes).wait();
      bytes want(nbytes + 9);
      std::copy(data.begin() + 5, data.end(), want.begin() + 9);
      EXPECT_TRUE(same(read(target), want)) << nbytes;
    });
  }
}

TEST_P(between, kinds_that_the_host_reaches) {
  constexpr std::size_t k_bytes = 5 * k_mib + 1;
  const bytes data = noise(k_bytes);
  for (const auto& other : others_) {
    SCOPED_TRACE(other.device().info().filter);
    for (const im::kind kind : {im::kind::shared, im::kind::host}) {
      if (!other.device().offers(kind)) continue;
      const im::buffer here(k_bytes, im::kind::device, {.queue = queue_});
      const im::buffer there(k_bytes, kind, {.queue = other});
      write(there, data);
      im::copy(here, there);
      EXPECT_TRUE(same(read(here), data)) << name(kind);
      im::fill(there, std::byte{0});
      im::copy_async(there, here).wait();
      EXPECT_TRUE(same(read(there), data)) << name(kind);
    }
  }
}

TEST_P(between, rows_ranges_and_arrays) {
  const shapes all;
  both_ways([&](const im::queue& to, const im::queue& from) { all.check(to, from); });
}

TEST_P(between, is_in_order_with_both_queues) {
  both_ways([](const im::queue& to, const im::queue& from) { check_order_of_both(to, from); });
}

TEST_P(between, a_failure_of_either_side_is_reported) {
  constexpr std::size_t k_bytes = 17 * k_mib;
  const bytes data = noise(k_bytes);
  for (const bool reads : {true, false}) {
    for (const bool blocking : {true, false}) {
      for (int nth = 1; nth <= 4; nth += support::k_slower == 1 ? 1 : 3) {
        const im::sim_device broken("");
        {
          const im::queue line(broken);
          const im::buffer here = device_buffer(queue_, data);
          const im::buffer there = device_buffer(line, data);
          const im::buffer& to = reads ? here : there;
          const im::buffer& from = reads ? there : here;
          broken.configure("fail=copy_2d:" + std::to_string(nth));
          EXPECT_TRUE(
              throws(im::status::driver,
                     [&] { blocking ? im::copy(to, from) : im::copy_async(to, from).wait(); }))
              << (reads ? "reading" : "writing") << " piece " << nth;
          im::copy(to, from);
          EXPECT_TRUE(same(read(to), data));
        }
        EXPECT_TRUE(eventually([&] {
          return isthmus_default_pools_trim(nullptr) == ISTHMUS_OK &&
                 broken.state().device_bytes == 0;
        }));
        EXPECT_EQ(broken.calls("violation"), 0u);
      }
    }
  }
}

}  // namespace
