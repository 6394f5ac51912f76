// SPDX-License-Identifier: Apache-2.0
// Objects shared by threads, and dropped by one thread while others use them.
#include <atomic>
#include <barrier>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class lifetimes : public leak_checked, public ::testing::WithParamInterface<const char*> {
 protected:
  static im::device open() {
    const std::string name = GetParam();
    return name == "host" ? im::device("host") : im::sim_device("effect=" + name);
  }
  template <class Function>
  static void in_threads(std::size_t count, Function&& function) {
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < count; ++i) running.emplace_back([&function, i] { function(i); });
    for (std::thread& one : running) one.join();
  }
};
INSTANTIATE_TEST_SUITE_P(backends, lifetimes, ::testing::Values("host", "early", "late", "random"));

// Every use either works or fails because the buffer is closed. Each thread uses a part of its own,
// because the result of unordered writes of two threads to the same bytes is undefined.
TEST_P(lifetimes, a_shared_buffer_is_freed_while_used) {
  const im::device device = open();
  const im::queue queue(device);
  for (int round = 0; round < 40; ++round) {
    const im::buffer shared(20000, im::kind::shared, {.queue = queue});
    std::atomic<int> closed{0};
    in_threads(4, [&](std::size_t thread) {
      const bytes data(5000, static_cast<std::byte>(thread + 1));
      bytes got(5000);
      for (int i = 0; i < 10; ++i) {
        try {
          if (thread == 0 && i == 5) shared.free();
          const im::buffer part = shared.slice(thread * 5000, 5000);
          im::copy_async(part, std::span(data)).wait();
          im::copy(std::span(got), part);
          EXPECT_TRUE(same(got, data));
          if (thread == 2) {
            EXPECT_EQ(part.host()[7], data[7]);
          }
        } catch (const im::closed&) {
          ++closed;
        }
      }
    });
    EXPECT_GE(closed, 5);
  }
}

TEST_P(lifetimes, an_event_is_waited_for_by_many) {
  const im::device device = open();
  const im::queue queue(device);
  const im::buffer buffer(1000, im::kind::device, {.queue = queue});
  for (int round = 0; round < 30; ++round) {
    const im::host_event gate;
    const im::event done = im::fill_async(buffer, std::byte{1}, {.after = gate});
    std::atomic<int> woken{0};
    std::atomic<int> called{0};
    in_threads(5, [&](std::size_t thread) {
      if (thread == 0) return gate.complete();
      done.then([&called]() noexcept { ++called; });
      if (thread % 2 == 0) {
        done.wait();
      } else {
        while (!done.wait_for(100us)) {
        }
      }
      ++woken;
    });
    EXPECT_EQ(woken, 4);
    for (int i = 0; i < 5000 && called < 4; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(called, 4);
  }
}

TEST_P(lifetimes, host_events_are_completed_or_dropped_elsewhere) {
  const im::device device = open();
  const im::queue queue(device);
  const im::buffer buffer(100, im::kind::device, {.queue = queue});
  for (int round = 0; round < 60; ++round) {
    auto gate = std::make_unique<im::host_event>();
    const im::event blocked = im::fill_async(buffer, std::byte{1}, {.after = *gate});
    std::thread other([&, mine = std::move(gate)]() mutable {
      if (round % 3 == 0) mine->complete();
      if (round % 3 == 1) mine->fail("on purpose");
      mine.reset();
    });
    try {
      EXPECT_TRUE(blocked.wait_for(20s));
      EXPECT_EQ(round % 3, 0);
    } catch (const im::dependency_failed&) {
      EXPECT_NE(round % 3, 0);
    }
    other.join();
  }
}

// If the driver cannot wait for the host, the submitting thread waits instead. Both a failure and
// the destruction of the host event end that wait, and other threads can use the queue meanwhile.
TEST_P(lifetimes, no_queue_hangs_on_a_driver_that_cannot_wait) {
  const im::sim_device device("wait_for_host=0");
  const im::queue queue(device);
  const im::buffer buffer(100, im::kind::device, {.queue = queue});
  const im::buffer other(100, im::kind::device, {.queue = queue});
  for (int round = 0; round < 20; ++round) {
    const im::host_event gate;
    std::thread submitter([&] {
      EXPECT_THROW(im::fill(buffer, std::byte{1}, {.after = gate}), im::dependency_failed);
    });
    im::fill(other, std::byte{2});
    gate.fail("the worker died");
    submitter.join();
    im::fill(buffer, std::byte{2});
  }
}

TEST_P(lifetimes, threads_end_with_their_queues_at_work) {
  const im::device device = open();
  std::vector<im::buffer> buffers(8);
  std::vector<im::event> events(8);
  for (int round = 0; round < 10; ++round) {
    in_threads(8, [&](std::size_t i) {
      const im::queue own(device);
      buffers[i] = im::buffer(100000, im::kind::device, {.queue = own});
      events[i] = im::fill_async(buffers[i], static_cast<std::uint8_t>(i + 1));
    });
    for (std::size_t i = 0; i < 8; ++i) {
      events[i].wait();
      EXPECT_TRUE(same(read(buffers[i]), bytes(100000, static_cast<std::byte>(i + 1))));
    }
  }
}

TEST_P(lifetimes, functions_run_while_everything_else_is_released) {
  const im::device device = open();
  std::atomic<int> ran{0};
  std::vector<im::event> events(16);
  in_threads(4, [&](std::size_t thread) {
    for (std::size_t i = 0; i < 4; ++i) {
      const im::queue own(device);
      const im::buffer buffer(1000, im::kind::host, {.queue = own});
      events[thread * 4 + i] = own.submit(
          [&ran](std::span<std::byte> all) {
            all[0] = std::byte{1};
            ++ran;
          },
          buffer);
    }
  });
  for (const im::event& one : events) one.wait();
  EXPECT_EQ(ran, 16);
}

TEST_P(lifetimes, one_queue_takes_from_many_threads) {
  const im::device device = open();
  const im::queue queue(device);
  std::barrier start(4);
  in_threads(4, [&](std::size_t thread) {
    const im::buffer own(4096, im::kind::device, {.queue = queue});
    const bytes data = noise(4096, static_cast<unsigned>(thread));
    bytes got(4096);
    start.arrive_and_wait();
    for (int i = 0; i < 50; ++i) {
      (void)im::fill_async(own, std::byte{0});
      (void)im::copy_async(own, std::span(data));
      im::copy_async(std::span(got), own).wait();
      EXPECT_TRUE(same(got, data));
      if (thread == 3 && i % 10 == 0) queue.wait();
    }
  });
}

TEST_P(lifetimes, default_queues_are_made_once) {
  const im::device device = open();
  std::vector<im::queue> found(8);
  in_threads(8, [&](std::size_t i) { found[i] = im::queue::of(device); });
  for (const im::queue& one : found) EXPECT_EQ(one, found[0]);
}

TEST_P(lifetimes, records_race_with_frees) {
  const im::device device = open();
  const im::queue queue(device);
  const im::queue other(device);
  for (int round = 0; round < 50; ++round) {
    im::buffer buffer(1000, im::kind::device, {.queue = queue});
    in_threads(3, [&, mine = buffer](std::size_t thread) {
      try {
        if (thread == 0) mine.record(other);
        if (thread == 1) mine.record(im::fill_async(mine, std::byte{1}, {.queue = other}));
        if (thread == 2) mine.free();
      } catch (const im::closed&) {
      }
    });
  }
}

}  // namespace
