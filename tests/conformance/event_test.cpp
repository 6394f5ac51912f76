// SPDX-License-Identifier: Apache-2.0
// Events: waiting, polling, continuations, notification of event loops, and host events.
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class events : public on_backend {
 protected:
  // An event that does not complete before the gate, if the queue can be blocked at all.
  im::event held_back(const im::host_event& gate) {
    buffer_ = make(1000, kinds().front());
    return im::fill_async(buffer_, std::byte{1}, {.after = gate});
  }
  void TearDown() override {
    buffer_ = {};
    on_backend::TearDown();
  }
  im::buffer buffer_;
};
INSTANTIATE_ON_BACKENDS(events);

TEST_P(events, end_once_and_stay_so) {
  const im::buffer buffer = make(1000, kinds().front());
  const im::event done = im::fill_async(buffer, std::byte{1});
  done.wait();
  EXPECT_TRUE(done.done());
  EXPECT_EQ(done.status(), im::status::ok);
  EXPECT_TRUE(done.wait_for(0ns));
  EXPECT_TRUE(done.wait_for(-1s));
  done.wait();
}

TEST_P(events, time_out_while_the_operation_continues) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::host_event gate;
  const im::event done = held_back(gate);
  EXPECT_FALSE(done.done());
  EXPECT_FALSE(done.wait_for(0ns));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(done.wait_for(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 19ms);
  EXPECT_TRUE(refused(isthmus_queue_wait(queue_.get(), 1000000), ISTHMUS_ERROR_TIMEOUT));
  EXPECT_FALSE(queue_.idle());
  gate.complete();
  EXPECT_TRUE(done.wait_for(30s));
}

TEST_P(events, call_then_functions_once_each) {
  std::atomic<int> called{0};
  const im::host_event gate;
  const bool holds = can(im::capability::wait_for_host);
  if (!holds) gate.complete();
  const im::event done = held_back(gate);
  for (int i = 0; i < 10; ++i) done.then([&called]() noexcept { ++called; });
  if (holds) {
    EXPECT_EQ(called, 0);
    gate.complete();
  }
  done.wait();
  // Runs immediately because the event has completed.
  done.then([&called]() noexcept { ++called; });
  for (int i = 0; i < 5000 && called < 11; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(called, 11);
}

TEST_P(events, write_to_descriptors) {
  const int descriptor = eventfd(0, EFD_NONBLOCK);
  ASSERT_GE(descriptor, 0);
  const im::host_event gate;
  if (!can(im::capability::wait_for_host)) gate.complete();
  const im::event done = held_back(gate);
  done.notify(descriptor);
  std::uint64_t count = 0;
  if (can(im::capability::wait_for_host)) {
    EXPECT_EQ(::read(descriptor, &count, sizeof count), -1);
    gate.complete();
  }
  done.wait();
  for (int i = 0; i < 5000 && ::read(descriptor, &count, sizeof count) < 0; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(count, 1u);
  close(descriptor);
  EXPECT_THROW(done.notify(-1), im::invalid_argument);
}

TEST_P(events, know_their_times_where_the_driver_does) {
  const im::buffer buffer = make(1 << 20, kinds().front());
  const im::event done = im::fill_async(buffer, std::byte{1});
  done.wait();
  if (!can(im::capability::profile)) {
    EXPECT_TRUE(throws(im::status::unsupported, [&] { (void)done.times(); }));
    return;
  }
  const im::event_times times = done.times();
  EXPECT_LE(times.submitted, times.started);
  EXPECT_LE(times.started, times.ended);
}

TEST_P(events, that_mark_a_queue_measure_elapsed_time) {
  const im::buffer buffer = make(1 << 20, kinds().front());
  const im::event before = queue_.mark();
  (void)im::fill_async(buffer, std::byte{1}, {.queue = queue_});
  const im::event between = queue_.mark();
  (void)im::fill_async(buffer, std::byte{2}, {.queue = queue_});
  const im::queue other(device_);
  const im::event behind = queue_.mark();
  behind.wait();
  const im::event elsewhere = other.mark();
  if (!can(im::capability::profile) && device_.info().backend != "cuda") {
    EXPECT_TRUE(
        throws(im::status::unsupported, {"times"}, [&] { (void)behind.elapsed_since(before); }));
    return;
  }
  EXPECT_GE(behind.elapsed_since(before), between.elapsed_since(before));
  EXPECT_GE(between.elapsed_since(before), 0ns);
  EXPECT_EQ(before.elapsed_since(before), 0ns);
  EXPECT_EQ(before.elapsed_since(between), -between.elapsed_since(before));
  EXPECT_GE(elsewhere.elapsed_since(before), 0ns) << "of another queue of the device";
  const im::host_event host;
  host.complete();
  EXPECT_ANY_THROW((void)behind.elapsed_since(host));
  EXPECT_TRUE(throws(im::status::unsupported, {}, [&] { (void)host.elapsed_since(before); }));
}

TEST_P(events, that_mark_queues_of_two_devices_measure_nothing) {
  const im::sim_device stranger("");
  const im::event there = im::queue(stranger).mark();
  const im::event here = queue_.mark();
  EXPECT_ANY_THROW((void)here.elapsed_since(there));
  EXPECT_ANY_THROW((void)there.elapsed_since(here));
}

TEST_P(events, that_mark_a_queue_are_pending_until_then) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::host_event gate;
  const im::event before = queue_.mark();
  before.wait();
  (void)queue_.fence(gate);
  const im::event behind = queue_.mark();
  std::int64_t elapsed = 7;
  EXPECT_EQ(isthmus_event_elapsed(behind.get(), before.get(), &elapsed), ISTHMUS_PENDING);
  EXPECT_EQ(isthmus_event_elapsed(before.get(), behind.get(), &elapsed), ISTHMUS_PENDING);
  EXPECT_EQ(elapsed, 7);
  gate.complete();
  behind.wait();
  EXPECT_NE(isthmus_event_elapsed(behind.get(), before.get(), &elapsed), ISTHMUS_PENDING);
}

TEST_P(events, of_drivers_are_not_the_hosts_to_complete) {
  const im::buffer buffer = make(1000, kinds().front());
  const im::event done = im::fill_async(buffer, std::byte{1});
  EXPECT_TRUE(refused(isthmus_event_complete(done.get(), ISTHMUS_OK, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT));
  done.wait();
}

TEST_P(events, of_the_host_gate_a_queue) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(1000, kind);
    im::fill(buffer, std::byte{1});
    const im::host_event gate;
    const im::event second = im::fill_async(buffer, std::byte{2}, {.after = gate});
    const im::event third = im::copy_bytes_async(im::at(buffer, 0), im::at(buffer, 500), 500);
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(second.done() || third.done());
    gate.complete();
    third.wait();
    EXPECT_TRUE(same(read(buffer), bytes(1000, std::byte{2})));
  }
}

TEST_P(events, of_the_host_gate_whole_queues_through_fences) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::host_event gate;
  const im::event fence = queue_.fence(gate);
  EXPECT_FALSE(fence.done());
  gate.complete();
  fence.wait();
}

TEST_P(events, that_are_complete_before_gate_nothing) {
  const im::host_event gate;
  gate.complete();
  EXPECT_TRUE(gate.done());
  const im::event done = held_back(gate);
  done.wait();
  EXPECT_TRUE(same(read(buffer_), bytes(1000, std::byte{1})));
}

// A host event that is dropped fails what waits for it; no queue may hang.
TEST_P(events, that_are_abandoned_fail_what_waits) {
  const im::buffer buffer = make(1000, kinds().front());
  im::fill(buffer, std::byte{1});
  im::event blocked;
  im::event behind;
  {
    const im::host_event gate;
    if (!can(im::capability::wait_for_host)) {
      gate.fail("nobody is left");
      EXPECT_THROW(im::fill(buffer, std::byte{2}, {.after = gate}), im::error);
      return;
    }
    blocked = im::fill_async(buffer, std::byte{2}, {.after = gate});
    behind = im::fill_async(buffer.slice(0, 10), std::byte{3});
  }
  EXPECT_TRUE(throws(im::status::dependency, [&] { (void)blocked.wait_for(30s); }));
  const bool ran = ran_despite_failure();
  EXPECT_TRUE(behind.wait_for(30s));
  bytes want(1000, ran ? std::byte{2} : std::byte{1});
  std::fill_n(want.begin(), 10, std::byte{3});
  EXPECT_TRUE(same(read(buffer), want));
}

TEST_P(events, that_fail_say_why) {
  const im::host_event gate;
  const im::host_event other = gate;
  gate.fail("the pump is broken");
  EXPECT_TRUE(throws(im::status::callback, {"the pump is broken"}, [&] { other.wait(); }));
  EXPECT_TRUE(
      throws(im::status::callback, {"the pump is broken"}, [&] { (void)gate.wait_for(1s); }));
  EXPECT_TRUE(throws(im::status::invalid_argument, [&] { other.complete(); }));
  const im::host_event lost;
  lost.fail("gone", im::status::device_lost);
  EXPECT_EQ(lost.status(), im::status::device_lost);
}

TEST_P(events, an_abandoned_one_is_seen_by_its_watchers) {
  std::atomic<bool> called{false};
  {
    const im::host_event gate;
    gate.then([&called]() noexcept { called = true; });
  }
  EXPECT_TRUE(called);
}

TEST_P(events, of_the_host_take_only_final_statuses) {
  const im::host_event gate;
  for (isthmus_status_t code : {ISTHMUS_PENDING + 0, 2, 100, ISTHMUS_ERROR_DEADLOCK - 1, -1000}) {
    EXPECT_TRUE(
        refused(isthmus_event_complete(gate.get(), code, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT));
  }
  EXPECT_FALSE(gate.done());
  gate.complete();
}

TEST_P(events, completed_on_another_thread_wake_the_waiter) {
  for (int i = 0; i < 50; ++i) {
    const im::host_event gate;
    std::thread other([gate] { gate.complete(); });
    gate.wait();
    other.join();
  }
}

TEST_P(events, of_another_platform_are_waited_for) {
  const im::sim_device elsewhere("effect=late");
  const im::queue far(elsewhere);
  const im::buffer theirs(1000, im::kind::device, {.queue = far});
  const im::buffer ours = make(1000, kinds().front());
  for (unsigned i = 1; i < 20; ++i) {
    const im::event there = im::fill_async(theirs, static_cast<std::uint8_t>(i));
    const im::event here = im::fill_async(ours, std::byte{9}, {.after = there});
    here.wait();
    EXPECT_EQ(there.status(), im::status::ok);
  }
}

TEST_P(events, of_the_host_do_not_end_as_a_wait_does) {
  const im::host_event gate;
  EXPECT_TRUE(refused(isthmus_event_complete(gate.get(), ISTHMUS_ERROR_TIMEOUT, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"TIMEOUT"}));
  EXPECT_FALSE(gate.done());
  gate.complete();
}

TEST_P(events, tolerate_a_closed_pipe) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const im::host_event gate;
  gate.notify(ends[1]);
  close(ends[0]);
  gate.complete();  // must not end the process with SIGPIPE
  close(ends[1]);
}

TEST_P(events, what_is_pending_is_one_event_that_cannot_fail) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::buffer buffer = make(1000, kinds().front());
  const im::host_event gate;
  const im::host_event later;
  EXPECT_TRUE(queue_.pending().done());
  const im::event filled = im::fill_async(buffer, std::byte{1}, {.after = gate});
  const im::event of_queue = queue_.pending();
  const im::event of_buffer = buffer.pending();
  const im::event behind = im::fill_async(buffer, std::byte{2}, {.after = later});
  EXPECT_FALSE(of_queue.done());
  EXPECT_FALSE(of_buffer.done());
  gate.fail("as asked");
  of_queue.wait();
  of_buffer.wait();
  EXPECT_THROW(filled.wait(), im::dependency_failed);
  EXPECT_FALSE(behind.done());
  later.complete();
  behind.wait();
}

TEST_P(events, keep_the_times_of_what_was_held_back) {
  if (!can(im::capability::profile) || !can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::buffer buffer = make(64u << 20, kinds().front());
  im::fill(buffer, std::byte{1});
  const im::host_event gate;
  const im::event held = im::fill_async(buffer, std::byte{2}, {.after = gate});
  gate.complete();
  held.wait();
  const im::event_times times = held.times();
  EXPECT_GE(times.ended - times.started, 100us) << "of 64 MiB";
}

}  // namespace
