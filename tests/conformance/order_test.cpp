// SPDX-License-Identifier: Apache-2.0
// Order of operations: on one queue, across queues by conflicts, and by `after`.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class order : public on_backend {};
INSTANTIATE_ON_BACKENDS(order);

// Each copy reads what the one before it wrote, so any two that are swapped show in the result.
TEST_P(order, of_a_long_chain_in_one_queue) {
  for (im::kind kind : kinds()) {
    const std::size_t step = 4096;
    const std::size_t steps = 64;
    const im::buffer buffer = make(step * (steps + 1), kind);
    const bytes data = noise(step);
    im::fill(buffer, std::byte{0});
    (void)im::copy_async(buffer.slice(0, step), std::span(data));
    im::event last;
    for (std::size_t i = 0; i < steps; ++i) {
      last = im::copy_bytes_async(im::at(buffer, (i + 1) * step), im::at(buffer, i * step), step);
    }
    last.wait();
    EXPECT_TRUE(same(read(buffer.slice(steps * step, step)), data)) << name(kind);
  }
}

TEST_P(order, of_writes_to_the_same_bytes) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(100000, kind);
    for (unsigned i = 0; i < 100; ++i) (void)im::fill_async(buffer, static_cast<std::uint8_t>(i));
    EXPECT_TRUE(same(read(buffer), bytes(100000, std::byte{99}))) << name(kind);
  }
}

// Without `after`, an operation waits for earlier operations of other queues on the same buffers.
TEST_P(order, across_queues_by_the_buffers_they_touch) {
  const im::queue other(device_);
  for (im::kind kind : kinds()) {
    const im::buffer a = make(1 << 20, kind);
    const im::buffer b = make(1 << 20, kind);
    for (unsigned i = 1; i <= 20; ++i) {
      (void)im::fill_async(a, static_cast<std::uint8_t>(i), {.queue = queue_});
      (void)im::copy_async(b, a, {.queue = other});
      // Ordered after the read by the copy.
      (void)im::fill_async(a, std::uint8_t{0xff}, {.queue = queue_});
      (void)im::copy_bytes_async(im::at(a, 0), im::at(b, 0), 512, {.queue = other});
      bytes got(1024);
      im::copy(std::span(got), a.slice(0, 1024), {.queue = queue_});
      bytes want(1024, std::byte{0xff});
      std::fill_n(want.begin(), 512, static_cast<std::byte>(i));
      ASSERT_TRUE(same(got, want)) << name(kind) << " round " << i;
    }
  }
}

TEST_P(order, across_queues_for_slices_of_one_buffer) {
  const im::queue other(device_);
  const im::buffer whole = make(1 << 16, kinds().front());
  for (unsigned i = 1; i <= 20; ++i) {
    (void)im::fill_async(whole, static_cast<std::uint8_t>(i));
    const im::buffer part = whole.slice(100, 1000).on_queue(other);
    bytes got(1000);
    im::copy(std::span(got), part, {.queue = other});
    ASSERT_TRUE(same(got, bytes(1000, static_cast<std::byte>(i)))) << i;
  }
}

// Memory freed by its pointer may still be used by work on its queue that the library does not
// know.
TEST_P(order, of_a_buffer_where_memory_was_freed_by_its_pointer) {
  for (im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
    const im::resource counted = im::resource::statistics(pool);
    for (const im::resource* from : {&pool, &counted}) {
      for (const std::size_t nbytes : {std::size_t{1000}, k_mib}) {
        const im::queue busy(queue_.context(), device_);
        im::host_event gate;
        (void)busy.fence({gate});
        from->deallocate(from->allocate(nbytes, 0, busy), nbytes, 0, busy);
        const im::buffer next(nbytes, kind, {.queue = busy, .resource = *from});
        const im::event filled = im::fill_async(next, std::byte{7}, {.queue = queue_});
        EXPECT_FALSE(filled.wait_for(20ms)) << name(kind);
        gate.complete();
        filled.wait();
        EXPECT_TRUE(same(read(next), bytes(nbytes, std::byte{7}))) << name(kind);
      }
    }
  }
}

TEST_P(order, by_after_through_host_memory) {
  const im::queue other(device_);
  for (im::kind kind : kinds()) {
    const im::buffer a = make(1 << 20, kind);
    const im::buffer b(1 << 20, kind, {.queue = other});
    bytes between(1 << 20);
    for (unsigned i = 1; i <= 10; ++i) {
      const im::event filled = im::fill_async(a, static_cast<std::uint8_t>(i));
      const im::event out = im::copy_async(std::span(between), a, {.after = {filled}});
      const im::event in = im::copy_async(b, std::span(between), {.after = {out, filled}});
      in.wait();
      ASSERT_TRUE(same(read(b), bytes(1 << 20, static_cast<std::byte>(i))));
    }
  }
}

// An operation on host memory that names no queue does not block the caller either.
TEST_P(order, by_after_without_a_queue) {
  const im::host_event gate;
  bytes to(100);
  const bytes from(100, std::byte{7});
  std::atomic<int> kept{3};
  const isthmus_owner_t owner{&kept, [](void* of) { --*static_cast<std::atomic<int>*>(of); }};
  isthmus_event_t* const after = gate.get();
  const isthmus_operation_t how{sizeof how, &after, 1, &owner, 1};
  const isthmus_endpoint_t here{nullptr, to.data(), 0};
  const isthmus_endpoint_t there{nullptr, const_cast<std::byte*>(from.data()), 0};
  isthmus_event_t* ended[3] = {};
  ASSERT_EQ(isthmus_copy(nullptr, &here, &there, 100, &how, &ended[0]), ISTHMUS_OK);
  ASSERT_EQ(isthmus_copy(nullptr, &here, &there, 0, &how, &ended[1]), ISTHMUS_OK);
  ASSERT_EQ(isthmus_prefetch(nullptr, &here, 0, 0, &how, &ended[2]), ISTHMUS_OK);
  for (isthmus_event_t* each : ended) EXPECT_EQ(isthmus_event_status(each), ISTHMUS_PENDING);
  EXPECT_EQ(kept, 3);
  EXPECT_TRUE(same(to, bytes(100)));
  gate.complete();
  for (isthmus_event_t* each : ended) {
    EXPECT_EQ(isthmus_event_wait(each, -1), ISTHMUS_OK);
    isthmus_event_release(each);
  }
  EXPECT_EQ(kept, 0);
  EXPECT_TRUE(same(to, from));
}

TEST_P(order, a_failed_gate_keeps_what_has_no_queue_from_running) {
  isthmus_event_t* ended = nullptr;
  bytes to(100);
  {
    const im::host_event gate;
    isthmus_event_t* const after = gate.get();
    const isthmus_operation_t how{sizeof how, &after, 1, nullptr, 0};
    const isthmus_endpoint_t here{nullptr, to.data(), 0};
    ASSERT_EQ(isthmus_fill(nullptr, &here, "x", 1, 100, &how, &ended), ISTHMUS_OK);
  }
  EXPECT_EQ(isthmus_event_wait(ended, -1), ISTHMUS_ERROR_DEPENDENCY);
  isthmus_event_release(ended);
  EXPECT_TRUE(same(to, bytes(100)));
}

TEST_P(order, fences_wait_for_all_before_them) {
  const im::queue other(device_);
  const im::buffer buffer = make(4 << 20, kinds().front());
  const im::event mine = im::fill_async(buffer, std::byte{1});
  const im::event fence = queue_.fence();
  const im::event gathered = other.fence({mine, fence});
  gathered.wait();
  EXPECT_EQ(mine.status(), im::status::ok);
  EXPECT_EQ(fence.status(), im::status::ok);
}

TEST_P(order, waiting_for_a_queue_ends_all_of_it) {
  const im::buffer buffer = make(1 << 20, kinds().front());
  std::vector<im::event> all;
  for (unsigned i = 0; i < 20; ++i) all.push_back(im::fill_async(buffer, std::byte{1}));
  queue_.wait();
  for (const im::event& one : all) EXPECT_EQ(one.status(), im::status::ok);
  EXPECT_TRUE(queue_.idle());
  EXPECT_EQ(isthmus_queue_wait(queue_.get(), 0), ISTHMUS_OK);
}

// Threads that poll and wait at the same time complete each other's events.
TEST_P(order, earlier_events_are_complete_once_a_later_one_is) {
  std::atomic<int> pending{0};
  const auto work = [&](std::size_t number) {
    for (int round = 0; round < 200; ++round) {
      const std::array events{queue_.fence(), queue_.fence(), queue_.fence()};
      if (number % 2 == 0) events[number / 2].wait();
      queue_.wait();
      pending += static_cast<int>(!events[0].done()) + static_cast<int>(!events[1].done());
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 4; ++number) threads.emplace_back(work, number);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(pending, 0);
}

TEST_P(order, events_that_have_ended_cost_no_waiting) {
  const im::buffer buffer = make(1000, kinds().front());
  im::event done = im::fill_async(buffer, std::byte{1});
  done.wait();
  const im::queue other(device_);
  im::fill(buffer, std::byte{2}, {.queue = other, .after = {done, done, done}});
  EXPECT_TRUE(same(read(buffer), bytes(1000, std::byte{2})));
}

TEST_P(order, a_failed_operation_fails_what_waits_for_it) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::buffer buffer = make(1000, kinds().front());
  im::fill(buffer, std::byte{1});
  const im::host_event gate;
  const im::event blocked = im::fill_async(buffer, std::byte{2}, {.after = gate});
  gate.fail("the reason");
  EXPECT_TRUE(throws(im::status::dependency, [&] { blocked.wait(); }));
  const auto want = ran_despite_failure() ? std::byte{2} : std::byte{1};
  EXPECT_TRUE(same(read(buffer), bytes(1000, want)));  // the queue still works
}

}  // namespace
