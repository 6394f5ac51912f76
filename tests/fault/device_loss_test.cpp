// SPDX-License-Identifier: Apache-2.0
// A lost device, and one without free memory: what is reported, and what still works.
#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

class lost : public leak_checked {};

TEST_F(lost, everything_says_so) {
  const im::sim_device device;
  const im::queue queue(device);
  const im::buffer buffer(1000, im::kind::device, {.queue = queue});
  const im::buffer shared(1000, im::kind::shared, {.queue = queue});
  device.configure("lost=now");
  const auto is_lost = [](auto&& act) { return throws(im::status::device_lost, act); };
  const bytes data = noise(1000);
  EXPECT_TRUE(is_lost([&] { im::copy(buffer, std::span(data)); }));
  EXPECT_TRUE(is_lost([&] { im::fill(buffer, std::byte{1}); }));
  EXPECT_TRUE(is_lost([&] { im::buffer(10, im::kind::device, {.queue = queue}); }));
  EXPECT_TRUE(is_lost([&] { (void)im::queue(device); }));
  EXPECT_EQ(buffer.size(), 1000u);  // what the host knows is still reported
  EXPECT_EQ(im::query(buffer.pointer()).kind, im::kind::device);
}

// A warm pool makes no driver calls, so the first operation may be the one that reports the loss.
TEST_F(lost, new_buffers_fail_once_any_operation_reported_it) {
  const im::sim_device device;
  const im::queue queue(device);
  std::vector<std::pair<im::kind, im::resource>> ways;
  for (const im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
    const im::resource named = im::resource::pool(queue.context(), kind, {}, device);
    for (const im::resource& from : {im::resource(), named, im::resource::statistics(named)}) {
      ways.emplace_back(kind, from);
    }
  }
  for (const auto& [kind, from] : ways)
    (void)im::buffer(1000, kind, {.queue = queue, .resource = from});
  const im::buffer before(1000, im::kind::device, {.queue = queue});
  device.configure("lost=now");
  EXPECT_TRUE(throws(im::status::device_lost, [&] { im::fill(before, std::byte{1}); }));
  for (int again = 0; again < 2; ++again) {
    for (const auto& way : ways) {
      EXPECT_TRUE(throws(im::status::device_lost, [&] {
        im::buffer(1000, way.first, {.queue = queue, .resource = way.second});
      })) << static_cast<int>(way.first);
    }
  }
}

// A fill that waits for an event when its device is lost, and whose event then completes.
struct lost_fill {
  explicit lost_fill(const std::string& options) : device(options) {
    device.configure("lost=now");
    gate.complete();
  }

  im::sim_device device;
  im::queue queue{device};
  im::buffer buffer{1000, im::kind::device, {.queue = queue}};
  im::host_event gate;
  im::event filled = im::fill_async(buffer, std::byte{1}, {.after = gate});
};

TEST_F(lost, an_operation_that_nothing_waits_for_reports_it_to_new_buffers) {
  const lost_fill it("effect=late");
  EXPECT_TRUE(eventually([&] { return it.filled.done(); }));
  EXPECT_TRUE(throws(im::status::device_lost,
                     [&] { im::buffer(1000, im::kind::device, {.queue = it.queue}); }));
}

// The other device's driver is called once. Afterwards its pool works as before.
TEST_F(lost, another_device_keeps_working_without_calls_of_its_driver) {
  const im::sim_device device;
  const im::queue queue(device);
  const im::sim_device healthy;
  const im::queue other(healthy);
  const im::buffer buffer(1000, im::kind::device, {.queue = queue});
  (void)im::buffer(1000, im::kind::device, {.queue = other});
  device.configure("lost=now");
  EXPECT_TRUE(throws(im::status::device_lost, [&] { im::fill(buffer, std::byte{1}); }));
  (void)im::buffer(1000, im::kind::device, {.queue = other});
  const auto calls = healthy.calls("any");
  for (int each = 0; each < 100; ++each) {
    const im::buffer made(1000, im::kind::device, {.queue = other});
  }
  EXPECT_EQ(healthy.calls("any"), calls);
}

TEST_F(lost, pending_work_completes) {
  for (const char* effect : {"early", "late", "random"}) {
    const lost_fill it(std::string("effect=") + effect);
    try {
      EXPECT_TRUE(it.filled.wait_for(20s));
    } catch (const im::device_lost&) {
    }
    EXPECT_TRUE(it.filled.done());
  }
}

TEST_F(lost, copies_from_it_fail_and_the_other_device_keeps_working) {
  const im::sim_device device;
  const im::queue queue(device);
  const im::device host("host");
  const im::queue other(host);
  const im::buffer theirs(1000, im::kind::device, {.queue = queue});
  const im::buffer ours(1000, im::kind::device, {.queue = other});
  device.configure("lost=now");
  EXPECT_THROW(im::copy(ours, theirs), im::error);
  im::fill(ours, std::byte{1});
  EXPECT_TRUE(same(read(ours), bytes(1000, std::byte{1})));
}

// As Python does while it holds the GIL: the call fails and is repeated without the GIL.
TEST_F(lost, another_devices_loss_calls_no_driver_where_none_may_be_called) {
  const im::sim_device gone;
  const im::sim_device device;
  const im::queue queue(device);
  { const im::buffer warm(1000, im::kind::device, {.queue = queue}); }
  const im::queue on_gone(gone);
  const im::buffer theirs(1000, im::kind::device, {.queue = on_gone});
  gone.configure("lost=now");
  EXPECT_THROW(im::fill(theirs, std::byte{1}), im::device_lost);
  const int before = isthmus_no_wait_swap(2);
  const auto make = [&] { const im::buffer made(1000, im::kind::device, {.queue = queue}); };
  EXPECT_THROW(make(), im::out_of_memory);
  isthmus_no_wait_swap(before);
  make();
  isthmus_no_wait_swap(2);
  make();
  isthmus_no_wait_swap(before);
}

class full : public leak_checked {};

TEST_F(full, capacity_is_the_limit_and_is_reported) {
  const im::sim_device device("capacity=1MiB");
  const im::queue queue(device);
  std::vector<im::buffer> held;
  EXPECT_TRUE(throws(im::status::out_of_memory, {"262144"}, [&] {
    for (int i = 0; i < 100; ++i)
      held.emplace_back(1u << 18, im::kind::device, im::buffer_options{.queue = queue});
  }));
  EXPECT_LE(held.size(), 4u);
  EXPECT_GE(held.size(), 3u);
  held.pop_back();
  queue.wait();
  bool again = false;
  for (int i = 0; i < 10'000 && !again; ++i) {
    try {
      held.emplace_back(1u << 18, im::kind::device, im::buffer_options{.queue = queue});
      again = true;
    } catch (const im::out_of_memory&) {
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_TRUE(again) << "what was freed does not come back";
}

TEST_F(full, an_allocation_waits_for_pending_frees_or_fails) {
  const im::sim_device device("capacity=1MiB,effect=late");
  const im::queue queue(device);
  for (int i = 0; i < 20; ++i) {
    try {
      const im::buffer buffer(900u << 10, im::kind::device, {.queue = queue});
      (void)im::fill_async(buffer, std::byte{1});
    } catch (const im::out_of_memory&) {
      queue.wait();
    }
  }
}

TEST_F(full, one_failed_allocation_is_one) {
  const im::sim_device device("fail=allocate:2");
  const im::queue queue(device);
  const im::resource from = im::resource::provider(queue.context(), im::kind::device);
  const im::buffer first(10, im::kind::device, {.queue = queue, .resource = from});
  EXPECT_THROW(im::buffer(10, im::kind::device, {.queue = queue, .resource = from}),
               im::out_of_memory);
  const im::buffer third(10, im::kind::device, {.queue = queue, .resource = from});
  EXPECT_EQ(device.calls("allocate"), 3u);
  device.configure("fail=copy:1");
  bytes data(10);
  EXPECT_THROW(im::copy(third, std::span(data)), im::driver_error);
  im::copy(third, std::span(data));
}

}  // namespace
