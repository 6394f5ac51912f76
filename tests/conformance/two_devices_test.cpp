// SPDX-License-Identifier: Apache-2.0
// Two devices of one platform in one context. A queue accesses only the memory of its own device.
// Copies between the devices go through the host. Fills, and copies of plain memory, are executed
// by a queue of the memory's device. All are ordered by the queue that was named.
#include <numeric>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/device_pairs.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

// Around the size from which copies go through pinned memory, and around its chunks.
constexpr std::size_t k_peer_sizes[] = {1, 1000, 600 * k_kib + 1, 2 * k_mib - 1, 9 * k_mib + 11};

std::vector<float> part_of(const std::vector<float>& all, std::size_t first, std::size_t count) {
  const auto start = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {start, start + static_cast<std::ptrdiff_t>(count)};
}

class two_devices : public leak_checked, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    for (const im::platform& each : im::platforms()) {
      auto found = im::devices(each);
      if (found.size() >= 2 && found.front().info().backend == GetParam()) {
        first_ = im::queue(found[0]);
        second_ = im::queue(found[1]);
        return;
      }
    }
    GTEST_SKIP() << "no two devices of one " << GetParam() << " platform on this machine";
  }
  void TearDown() override {
    first_ = {};
    second_ = {};
    leak_checked::TearDown();
  }
  template <class Check>
  void both_ways(Check&& check) const {
    for (const bool turned : {false, true}) {
      SCOPED_TRACE(turned ? "to the first" : "to the second");
      turned ? check(first_, second_) : check(second_, first_);
    }
  }

  // What a default pool keeps counts as live.
  static void trim(const im::queue& on) {
    const im::resource pool = im::default_pool(im::kind::device, on);
    EXPECT_TRUE(eventually([&] {
      pool.trim();
      return pool.usage().held == 0;
    }));
  }

  im::queue first_;
  im::queue second_;
};
INSTANTIATE_TEST_SUITE_P(backends, two_devices, ::testing::Values("sim", "opencl", "cuda"),
                         [](const auto& each) { return each.param; });

// Uses temporary memory of the target's device, whichever queue orders the fill.
TEST_P(two_devices, elements_that_lie_apart_are_filled) {
  const std::int64_t count = k_mib / 4, apart = 8;
  both_ways([&](const im::queue& to, const im::queue& order) {
    const im::buffer target = device_buffer(to, bytes(2 * k_mib));
    const isthmus_array_t every_other{{target.get(), nullptr, 0}, ISTHMUS_INT32, 1, &count, &apart};
    const std::int32_t value = 0x01010101;
    ASSERT_EQ(isthmus_fill_array(order.get(), &every_other, &value, ISTHMUS_INT32,
                                 ISTHMUS_CASTING_NO, nullptr, nullptr),
              ISTHMUS_OK);
    bytes want(2 * k_mib);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::byte(i % 8 < 4 ? 1 : 0);
    EXPECT_TRUE(same(read(target), want));
  });
}

TEST_P(two_devices, a_current_resource_serves_its_device_and_host_memory_of_both) {
  both_ways([&](const im::queue& own, const im::queue& other) {
    for (im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
      if (!own.device().offers(kind)) continue;
      const bool serves_both = kind == im::kind::host;
      const im::resource counted = im::resource::statistics(im::resource::pool(own, kind));
      im::set_resource(counted);
      EXPECT_EQ(im::current_resource(kind, own), counted);
      EXPECT_EQ(im::current_resource(kind, other) == counted, serves_both);
      { const im::buffer made(100, kind, {.queue = other}); }
      EXPECT_EQ(im::statistics_of(counted).total_count, serves_both ? 1u : 0u);
      im::reset_resource(kind, other);
      EXPECT_EQ(im::current_resource(kind, own) == counted, !serves_both);
      im::set_resource({});
    }
  });
}

TEST_P(two_devices, every_byte_arrives) {
  for (const std::size_t nbytes : k_peer_sizes) {
    const bytes data = noise(nbytes + 5);
    both_ways([&](const im::queue& to, const im::queue& from) {
      for (const im::queue& order : {to, from}) {
        const im::buffer source = device_buffer(from, data);
        const im::buffer target = device_buffer(to, bytes(nbytes + 9));
        im::copy_bytes(im::at(target, 9), im::at(source, 5), nbytes, {.queue = order});
        bytes want(nbytes + 9);
        std::copy(data.begin() + 5, data.end(), want.begin() + 9);
        EXPECT_TRUE(same(read(target), want)) << nbytes;
        im::fill(target, std::byte{0});
        im::copy_bytes_async(im::at(target, 9), im::at(source, 5), nbytes, {.queue = order}).wait();
        EXPECT_TRUE(same(read(target), want)) << nbytes << ", not waited for";
      }
    });
  }
}

TEST_P(two_devices, rows_ranges_and_arrays) {
  const shapes all;
  both_ways([&](const im::queue& to, const im::queue& from) { all.check(to, from); });
}

TEST_P(two_devices, arrays_in_parts_on_both) {
  std::vector<float> counting(7 * 12);
  std::iota(counting.begin(), counting.end(), 0.0f);
  both_ways([&](const im::queue& to, const im::queue& from) {
    const auto whole = im::to_array(counting, {7, 12}, im::kind::device, {.queue = from});
    const auto columns = whole.view(im::every, im::slice(1, 12, 2));
    const auto wanted = im::to_vector(columns);
    const std::vector<im::queue> queues{to, from};
    const auto parts = im::scatter(columns, queues);
    ASSERT_EQ(parts.size(), 2u);
    for (std::size_t part = 0; part < 2; ++part) {
      EXPECT_EQ(im::query(parts[part].pointer()).device, queues[part].device());
      EXPECT_EQ(im::to_vector(parts[part]), part_of(wanted, 24 * part, part == 0 ? 24 : 18));
    }
    EXPECT_EQ(im::gather(parts), wanted);
    for (const im::queue& on : queues) {
      const auto wide = im::zeros<float>({7, 12}, im::kind::device, {.queue = on});
      const auto back = wide.view(im::every, im::slice(1, 12, 2));
      im::gather(back, parts);
      EXPECT_EQ(im::to_vector(back), wanted);
      EXPECT_EQ(im::to_vector(wide.view(im::every, 0)), std::vector<float>(7)) << "beside it";
    }
  });
  trim(first_);
  trim(second_);
}

TEST_P(two_devices, a_queue_of_the_other_device_orders_the_operations) {
  constexpr std::size_t k_bytes = 3 * k_mib + 7;
  const bytes data = noise(k_bytes);
  both_ways([&](const im::queue& here, const im::queue& other) {
    const im::buffer memory = device_buffer(here, bytes(k_bytes));
    bytes got(k_bytes), small(1000);
    const im::event ends[] = {
        im::copy_async(memory, std::span(data), {.queue = other}),
        im::copy_async(std::span(got), memory, {.queue = other}),
        im::copy_bytes_async(std::span(small), im::at(memory, 7), small.size(), {.queue = other}),
        im::fill_async(memory, std::byte{1}, {.queue = other})};
    other.wait();
    for (const auto& each : ends) EXPECT_TRUE(each.done());
    EXPECT_TRUE(same(got, data));
    EXPECT_TRUE(same(small, std::span(data).subspan(7, small.size())));
    EXPECT_TRUE(same(read(memory), bytes(k_bytes, std::byte{1})));
  });
}

TEST_P(two_devices, a_view_on_a_queue_of_the_other_device) {
  const bytes data = noise(3 * k_mib);
  both_ways([&](const im::queue& here, const im::queue& other) {
    const im::buffer memory = device_buffer(here, bytes(data.size()));
    const im::buffer view = memory.on_queue(other);
    write(view, data);
    EXPECT_TRUE(same(read(view), data));
    im::fill(view.slice(5, 1000), std::byte{3});
    const im::buffer there = device_buffer(other, bytes(data.size()));
    im::copy(there, view);
    EXPECT_TRUE(same(read(there), read(memory)));
  });
}

TEST_P(two_devices, operations_are_in_order_with_both_queues) {
  both_ways([](const im::queue& to, const im::queue& from) { check_order_of_both(to, from); });
}

TEST_P(two_devices, memory_is_where_its_resource_has_it) {
  const bytes data = noise(3 * k_mib);
  both_ways([&](const im::queue& here, const im::queue& other) {
    const im::context home = here.context();
    const auto pool = im::resource::pool(home, im::kind::device, {}, here.device());
    const auto provider = im::resource::provider(home, im::kind::device, here.device());
    const auto full =
        im::resource::limit(im::resource::provider(home, im::kind::device, other.device()), 1);
    for (const auto& from : {pool, provider, im::resource::fallback(full, pool)}) {
      {
        const im::buffer memory(data.size(), im::kind::device, {.queue = other, .resource = from});
        EXPECT_EQ(im::query(memory.pointer()).device, here.device());
        write(memory, data);
        const im::buffer there = device_buffer(other, bytes(data.size()));
        im::copy(there, memory);
        EXPECT_TRUE(same(read(there), data));
      }
      void* const pointer = from.allocate(data.size(), 0, other);
      const std::span bare(static_cast<std::byte*>(pointer), data.size());
      im::copy(bare, std::span(data), {.queue = other});
      bytes got(data.size());
      im::copy(std::span(got), bare, {.queue = other});
      EXPECT_TRUE(same(got, data));
      from.deallocate(pointer, data.size(), 0, other);
    }
    other.wait();
  });
}

TEST_P(two_devices, blocks_cut_from_memory_are_where_that_is) {
  const bytes data = noise(100'000);
  both_ways([&](const im::queue& here, const im::queue& other) {
    const im::context home = here.context();
    const auto full =
        im::resource::limit(im::resource::provider(home, im::kind::device, other.device()), 1);
    const auto either =
        im::resource::fallback(full, im::resource::provider(home, im::kind::device, here.device()));
    EXPECT_TRUE(throws(im::status::unsupported, {"several devices"},
                       [&] { static_cast<void>(im::resource::pool(either)); }));
    const im::buffer block(data.size(), im::kind::device,
                           {.queue = other, .resource = im::resource::monotonic(either)});
    write(block, data);
    EXPECT_TRUE(same(read(block), data));
  });
}

TEST_P(two_devices, a_closed_queue_of_the_memory_does_not_prevent_copies) {
  const bytes data = noise(1000);
  both_ways([&](const im::queue& here, const im::queue& other) {
    im::queue own(here.device());
    const im::buffer memory = device_buffer(own, bytes(data.size()));
    own.close();
    im::copy(memory, std::span(data), {.queue = other});
    bytes got(data.size());
    im::copy(std::span(got), memory, {.queue = other});
    EXPECT_TRUE(same(got, data));
  });
}

TEST_P(two_devices, functions_cannot_use_memory_of_the_other_device) {
  both_ways([&](const im::queue& here, const im::queue& other) {
    const im::buffer memory = device_buffer(here, bytes(100));
    EXPECT_TRUE(throws(here.device().can(im::capability::run_functions) ? im::status::wrong_context
                                                                        : im::status::unsupported,
                       [&] { (void)other.submit([](std::span<std::byte>) {}, memory); }));
  });
}

TEST_P(two_devices, memory_of_the_other_one_is_not_adopted) {
  both_ways([&](const im::queue& here, const im::queue& other) {
    const auto from = im::resource::provider(here.context(), im::kind::device, here.device());
    void* const memory = from.allocate(1000, 0, here);
    EXPECT_TRUE(throws(
        im::status::wrong_context,
        {std::string(here.device().info().filter), std::string(other.device().info().filter)}, [&] {
          static_cast<void>(
              im::buffer::adopt(memory, 1000, [](void*) noexcept {}, {.queue = other}));
        }));
    from.deallocate(memory, 1000, 0, here);
  });
}

TEST_P(two_devices, threads_copy_both_ways_at_once) {
  constexpr std::size_t k_bytes = 2 * k_mib + 3;
  constexpr int k_threads = 4, k_rounds = 6;
  std::vector<std::thread> all;
  for (int number = 0; number < k_threads; ++number) {
    all.emplace_back([&, number] {
      const auto& to = number % 2 == 0 ? first_ : second_;
      const auto& from = number % 2 == 0 ? second_ : first_;
      const im::queue own(from.device());
      for (int round = 0; round < k_rounds; ++round) {
        const bytes data = noise(k_bytes, static_cast<unsigned>(number * k_rounds + round));
        const im::buffer source = device_buffer(own, data);
        const im::buffer target(k_bytes, im::kind::device, {.queue = to});
        im::copy_async(target, source, {.queue = own}).wait();
        EXPECT_TRUE(same(read(target), data));
      }
    });
  }
  for (auto& each : all) each.join();
}

}  // namespace
