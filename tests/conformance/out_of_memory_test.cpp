// SPDX-License-Identifier: Apache-2.0
// Out-of-memory conditions: what a pool holds and tries, what its error reports, and out-of-memory
// callbacks.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>

#include "support/short_memory.hpp"

namespace {

using namespace support;

class pressure : public on_short_memory {};
INSTANTIATE_ON_BACKENDS(pressure);

TEST_P(pressure, a_snapshot_adds_up) {
  const im::resource from = make();
  block large{from, queue_};
  auto* small = from.allocate(1000, 0, queue_);
  im::snapshot seen = im::snapshot_of(from);
  expect_near(seen.live, k_mib + 1000);
  EXPECT_LE(seen.largest_free, seen.free + seen.cached + seen.waiting);
  EXPECT_EQ(seen.held, from.usage().held);
  EXPECT_EQ(seen.held, seen.live + seen.cached + seen.waiting + seen.free);
  from.deallocate(small, 1000, 0, queue_);
  large.free();
  seen = im::snapshot_of(from);
  EXPECT_EQ(seen.live, 0U);
  EXPECT_GE(seen.cached, k_mib) << "this thread keeps it";
  from.trim(0);
  EXPECT_EQ(im::snapshot_of(from).held, 0U);
  EXPECT_EQ(im::snapshot_of(from).fragmentation(), 0);
}

// One request gets `largest_free` bytes without more memory of the driver, whatever thread caches
// and slabs keep.
TEST_P(pressure, the_largest_free_piece_is_what_one_request_gets) {
  const im::resource from = make();
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(from.allocate(k_mib, 0, queue_));
  void* const kept = blocks.back();
  blocks.pop_back();
  for (void* const each : blocks) from.deallocate(each, k_mib, 0, queue_);
  const im::snapshot seen = im::snapshot_of(from);
  EXPECT_GE(seen.largest_free, k_mib);
  EXPECT_LE(seen.largest_free, seen.held - seen.live);
  void* const all = from.allocate(seen.largest_free, 0, queue_);
  EXPECT_EQ(from.usage().held, seen.held) << "it took more of the driver's";
  from.deallocate(all, seen.largest_free, 0, queue_);
  from.deallocate(kept, k_mib, 0, queue_);
}

TEST_P(pressure, the_largest_free_piece_stays_while_other_memory_waits) {
  const im::resource from = make(0ns);
  const im::queue busy(device_);
  void* const waits = from.allocate(3 * k_mib, 0, busy);
  const im::host_event gate;
  const im::event end = busy.fence({gate});
  from.deallocate(waits, 3 * k_mib, 0, busy);
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory)
      << "and flushes caches";
  // Two of the remaining five MiB are now in this thread's cache. The others are free in the pool
  // or were returned to the driver.
  void* const blocks[] = {from.allocate(k_mib, 0, queue_), from.allocate(k_mib, 0, queue_)};
  for (void* const each : blocks) from.deallocate(each, k_mib, 0, queue_);
  const im::snapshot seen = im::snapshot_of(from);
  EXPECT_EQ(seen.waiting, 3 * k_mib);
  EXPECT_GE(seen.largest_free, std::min(seen.cached + seen.free, 4 * k_mib));
  void* const all = from.allocate(seen.largest_free, 0, queue_);
  gate.complete();
  end.wait();
  from.deallocate(all, seen.largest_free, 0, queue_);
}

// Providers and adaptors over them have no out-of-memory stages. The callbacks are called once, and
// the driver is called again if they freed memory.
TEST(pressure_of_the_driver, oom_callbacks_are_called) {
  const im::sim_device device("capacity=8MiB");
  const im::queue queue(device);
  const auto provider = im::resource::provider(queue.context(), im::kind::device);
  const auto counted = im::resource::statistics(provider);
  const auto make = [&](std::size_t nbytes, const im::resource& from) {
    return im::buffer(nbytes, im::kind::device, {.queue = queue, .resource = from});
  };
  std::optional<im::buffer> cache;
  int asked = 0;
  const im::oom_callback gives([&](const im::oom_request& request) noexcept {
    ++asked;
    EXPECT_EQ(request.nbytes, 6 * k_mib);
    const bool has = cache.has_value();
    cache.reset();
    return has ? 6 * k_mib : 0;
  });
  cache.emplace(6 * k_mib, im::kind::device, im::buffer_options{.queue = queue});
  EXPECT_EQ(im::buffer(6 * k_mib, im::kind::device, {.queue = queue}).size(), 6 * k_mib);
  for (const auto& from : {provider, counted}) {
    cache = make(6 * k_mib, from);
    EXPECT_EQ(make(6 * k_mib, from).size(), 6 * k_mib);
    cache = make(6 * k_mib, from);
    from.deallocate(from.allocate(6 * k_mib, 0, queue), 6 * k_mib, 0, queue);
  }
  EXPECT_EQ(asked, 5);

  const auto kept = make(6 * k_mib, provider);
  const auto calls = device.calls("allocate");
  EXPECT_THROW((void)make(6 * k_mib, provider), im::out_of_memory);
  EXPECT_EQ(asked, 6);
  EXPECT_EQ(device.calls("allocate"), calls + 1) << "no callback released memory";
  EXPECT_THROW((void)make(64 * k_mib, provider), im::out_of_memory);
  const im::no_wait holds_a_lock;
  EXPECT_THROW((void)make(6 * k_mib, provider), im::out_of_memory);
  EXPECT_EQ(asked, 6) << "for what never fits, or by who holds a lock";
}

// The gate opens only after the driver has refused the request. Until then, the release of the
// buffer is pending.
TEST(pressure_of_the_driver, bare_pointers_wait_for_pending_releases) {
  const im::sim_device device("capacity=8MiB");
  const im::queue queue(device), other_queue(device);
  const auto provider = im::resource::provider(queue.context(), im::kind::device);
  im::host_event gate;
  {
    const im::buffer filled(6 * k_mib, im::kind::device, {.queue = queue, .resource = provider});
    (void)queue.fence({gate});
    (void)im::fill_async(filled, std::byte{1});
  }
  const auto calls = device.calls("allocate");
  std::thread late([&] {
    while (device.calls("allocate") == calls) std::this_thread::sleep_for(1ms);
    gate.complete();
  });
  void* const pointer = provider.allocate(6 * k_mib, 0, other_queue);
  late.join();
  provider.deallocate(pointer, 6 * k_mib, 0, other_queue);
}

TEST(pressure_of_the_driver, initial_memory_above_the_limit_fails_at_once) {
  const im::sim_device device("capacity=8MiB");
  const im::queue queue(device);
  int calls = 0;
  const im::oom_callback counts([&](const im::oom_request&) noexcept {
    ++calls;
    return std::uint64_t{1};
  });
  EXPECT_THROW((void)im::resource::pool(queue.context(), im::kind::device,
                                        {.initial_bytes = 4 * k_mib, .limit_bytes = 2 * k_mib}),
               im::out_of_memory);
  EXPECT_EQ(calls, 0);
}

TEST_P(pressure, no_pool_has_none) {
  const auto provider = im::resource::provider(queue_.context(), im::kind::device, device_);
  EXPECT_THROW((void)im::snapshot_of(provider), im::unsupported);
  EXPECT_THROW((void)im::counts_of(provider, im::oom_stage::grow), im::unsupported);
  const im::resource from = make();
  EXPECT_THROW((void)im::counts_of(from, static_cast<im::oom_stage>(8)), im::not_found);
  EXPECT_THROW((void)im::counts_of(from, static_cast<im::oom_stage>(-1)), im::not_found);
  isthmus_snapshot_t small{};
  small.struct_size = 8;
  EXPECT_EQ(isthmus_resource_snapshot(from.get(), &small), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST_P(pressure, the_error_reports_the_memory_in_use) {
  const im::resource from = make();
  const block first{from, queue_};
  const block second{from, queue_};
  try {
    (void)from.allocate(7 * k_mib, 0, queue_);
    FAIL() << "the pool may hold 8 MiB, and 2 of them are live";
  } catch (const im::out_of_memory& problem) {
    for (const char* part :
         {"7 MiB", "2 MiB", "8 MiB", "largest piece", "collect, collect_idle, grow", "To do"}) {
      EXPECT_TRUE(contains(problem.what(), part)) << part << " in " << problem.what();
    }
    EXPECT_TRUE(contains(problem.what(), device_.info().filter)) << problem.what();
    const std::string text = problem.what();
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 4) << text;
    const std::string line = text.substr(0, text.find('\n'));
    EXPECT_TRUE(contains(line, "7 MiB") && contains(line, "To do")) << text;
  }
  const auto seen = im::error_snapshot();
  ASSERT_TRUE(seen);
  expect_near(seen->live, 2 * k_mib);
  EXPECT_EQ(seen->device, device_.info().filter);
  EXPECT_EQ(seen->kind, im::kind::device);
  EXPECT_EQ(seen->requested, 7 * k_mib);
  EXPECT_EQ(seen->oom_stages.at(0), im::oom_stage::collect);
  EXPECT_TRUE(std::find(seen->oom_stages.begin(), seen->oom_stages.end(), im::oom_stage::trim) !=
              seen->oom_stages.end());
  EXPECT_FALSE(seen->advice.empty());
  EXPECT_TRUE(contains(isthmus_error_message(), seen->advice));
  EXPECT_THROW((void)from.allocate(1, 3, queue_), im::invalid_argument);
  EXPECT_FALSE(im::error_snapshot()) << "the last error is another";
}

// A caller compiled before fields were added gets the fields that it knows.
TEST_P(pressure, a_snapshot_may_be_an_older_one) {
  const im::resource from = make();
  EXPECT_THROW((void)from.allocate(9 * k_mib, 0, queue_), im::out_of_memory);
  for (const std::size_t size :
       {offsetof(isthmus_snapshot_t, holder_count), offsetof(isthmus_snapshot_t, device)}) {
    isthmus_snapshot_t seen{};
    seen.struct_size = size;
    seen.holder_count = seen.requested_bytes = 77;
    EXPECT_EQ(isthmus_error_snapshot(&seen), ISTHMUS_OK);
    EXPECT_EQ(seen.holder_count,
              size == offsetof(isthmus_snapshot_t, device) ? std::size_t{0} : std::size_t{77});
    EXPECT_EQ(seen.requested_bytes, 77U);
  }
  isthmus_snapshot_t own{};
  own.struct_size = sizeof own;
  own.requested_bytes = 77;
  EXPECT_EQ(isthmus_error_snapshot(&own), ISTHMUS_OK);
  EXPECT_EQ(own.requested_bytes, 9 * k_mib);
  EXPECT_EQ(own.oom_stages, 0U) << "above the limit nothing is tried";
  EXPECT_EQ(isthmus_resource_snapshot(from.get(), &own), ISTHMUS_OK);
  EXPECT_EQ(own.requested_bytes, 0U);
  EXPECT_EQ(own.device, nullptr);
  EXPECT_EQ(own.advice, nullptr);
}

TEST_P(pressure, every_stage_is_counted) {
  const im::resource from = make();
  const block held{from, queue_};
  const auto before = im::counts_of(from, im::oom_stage::collect);
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  for (auto each : {im::oom_stage::collect, im::oom_stage::grow, im::oom_stage::trim,
                    im::oom_stage::callback, im::oom_stage::wait}) {
    EXPECT_GE(im::counts_of(from, each).tried, 1U);
    EXPECT_EQ(im::counts_of(from, each).served, 0U);
  }
  EXPECT_EQ(im::counts_of(from, im::oom_stage::collect).tried, before.tried + 1);
}

TEST_P(pressure, without_waits_no_callback_is_called) {
  const im::resource from = make();
  const block held{from, queue_};
  std::atomic<int> asked{0};
  const im::oom_callback counts([&](const im::oom_request&) noexcept { return ++asked, 0; });
  {
    const im::no_wait meanwhile;
    EXPECT_EQ(isthmus_no_wait_swap(1), 1);
    EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  }
  EXPECT_EQ(asked, 0);
  for (auto each : {im::oom_stage::trim, im::oom_stage::callback, im::oom_stage::wait}) {
    EXPECT_EQ(im::counts_of(from, each).tried, 0U);
  }
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_EQ(asked, 1);
}

TEST_P(pressure, what_is_at_hand_needs_no_lock) {
  const im::resource from = make();
  const auto grown = [&] { return im::counts_of(from, im::oom_stage::grow).tried; };
  {
    const im::no_wait meanwhile(true);
    EXPECT_EQ(isthmus_no_wait_swap(2), 2);
    EXPECT_THROW((void)from.allocate(1000, 0, queue_), im::out_of_memory);
    EXPECT_THROW((void)from.allocate(k_mib, 0, queue_), im::out_of_memory);
  }
  EXPECT_EQ(grown(), 0U);
  for (const std::size_t nbytes : {std::size_t{1000}, k_mib}) {
    void* const first = from.allocate(nbytes, 0, queue_);
    from.deallocate(first, nbytes, 0, queue_);
    const auto before = grown();
    const im::no_wait meanwhile(true);
    void* const again = from.allocate(nbytes, 0, queue_);
    EXPECT_EQ(again, first) << nbytes;
    {
      const im::no_wait nested;
      EXPECT_THROW((void)from.allocate(3 * k_mib, 0, queue_), im::out_of_memory);
    }
    from.deallocate(again, nbytes, 0, queue_);
    EXPECT_EQ(grown(), before);
  }
  // External work is possible from now on, so the pool would have to query the driver.
  if (queue_.export_native() != nullptr) {
    const im::no_wait meanwhile(true);
    EXPECT_THROW((void)from.allocate(1000, 0, queue_), im::out_of_memory);
  }
}

// A buffer used on queues other than its own is freed by a thread of the library.
TEST_P(pressure, a_request_waits_for_a_deferred_release) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(20s);
  std::optional<im::buffer> large{std::in_place, 6 * k_mib, im::kind::device,
                                  im::buffer_options{.queue = queue_, .resource = from}};
  im::host_event gate;
  (void)other.fence({gate});
  (void)im::fill_async(*large, 1.0F, {.queue = other});
  large.reset();
  std::thread late([&] {
    while (im::counts_of(from, im::oom_stage::wait).tried == 0) std::this_thread::sleep_for(1ms);
    gate.complete();
  });
  const block next{from, queue_};
  void* const again = from.allocate(6 * k_mib, 0, queue_);
  late.join();
  EXPECT_EQ(im::counts_of(from, im::oom_stage::wait).served, 1U);
  from.deallocate(again, 6 * k_mib, 0, queue_);
}

// Memory freed on another queue whose work is pending.
TEST_P(pressure, a_request_waits_for_work_for_a_limited_time) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(20s);
  const im::resource hasty = make(0s);
  im::host_event gate;
  (void)other.fence({gate});
  for (const im::resource* each : {&from, &hasty}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 7; ++i) blocks.push_back(each->allocate(k_mib, 0, other));
    for (void* one : blocks) each->deallocate(one, k_mib, 0, other);
  }
  EXPECT_THROW((void)hasty.allocate(6 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_TRUE(contains(isthmus_error_message(), "pending work has completed"))
      << isthmus_error_message();
  EXPECT_EQ(im::counts_of(hasty, im::oom_stage::wait).tried, 0U);
  std::thread opener([&] {
    while (im::counts_of(from, im::oom_stage::wait).tried == 0) std::this_thread::sleep_for(1ms);
    gate.complete();
  });
  auto* large = from.allocate(6 * k_mib, 0, queue_);
  opener.join();
  EXPECT_EQ(im::counts_of(from, im::oom_stage::wait).served, 1U);
  from.deallocate(large, 6 * k_mib, 0, queue_);
}

TEST_P(pressure, an_oom_callback_frees_memory) {
  const im::resource from = make();
  block cache{from, queue_};
  im::oom_request asked;
  {
    const im::oom_callback gives([&](const im::oom_request& request) noexcept {
      asked = request;
      return cache.free();
    });
    auto* large = from.allocate(8 * k_mib, 0, queue_);
    EXPECT_EQ(im::counts_of(from, im::oom_stage::callback).served, 1U);
    EXPECT_EQ(asked.device, device_);
    EXPECT_EQ(asked.kind, im::kind::device);
    EXPECT_EQ(asked.nbytes, 8 * k_mib);
    EXPECT_THROW((void)from.allocate(k_mib, 0, queue_), im::out_of_memory);
    EXPECT_TRUE(contains(isthmus_error_message(), " callback")) << isthmus_error_message();
    from.deallocate(large, 8 * k_mib, 0, queue_);
  }
  asked = {};
  const block held{from, queue_};
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_EQ(asked.nbytes, 0U) << "it was removed";
}

TEST_P(pressure, callbacks_are_called_in_turn_and_not_recursively) {
  const im::resource from = make();
  const block held{from, queue_};
  std::vector<int> order;
  const auto ask_again = [&]() noexcept {
    try {
      (void)from.allocate(8 * k_mib, 0, queue_);
    } catch (const im::out_of_memory&) {
      return true;
    }
    return false;
  };
  const im::oom_callback first([&](const auto&) noexcept {
    order.push_back(1);
    EXPECT_TRUE(ask_again());
    return 0;
  });
  const im::oom_callback second([&](const auto&) noexcept {
    order.push_back(2);
    return 0;
  });
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_P(pressure, a_callback_may_remove_itself_and_others_wait_for_it) {
  const im::resource from = make();
  const block held{from, queue_};
  std::optional<im::oom_callback> once;
  int calls = 0;
  once.emplace([&](const auto&) noexcept {
    ++calls;
    once.reset();
    return 0;
  });
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_EQ(calls, 1);
  std::atomic<bool> inside{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> has_ended{false};
  once.emplace([&](const auto&) noexcept {
    inside = true;
    while (!may_end) std::this_thread::sleep_for(1ms);
    has_ended = true;
    return 0;
  });
  std::thread asker(
      [&] { EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory); });
  while (!inside) std::this_thread::sleep_for(1ms);
  std::thread opener([&] {
    std::this_thread::sleep_for(20ms);
    may_end = true;
  });
  once.reset();
  EXPECT_TRUE(has_ended) << "removal waits for a call that runs";
  asker.join();
  opener.join();
}

TEST_P(pressure, threads_may_all_fail_at_once) {
  const im::resource from = make(10ms);
  const block held{from, queue_};
  std::atomic<int> asked{0};
  const im::oom_callback counts([&](const auto&) noexcept {
    ++asked;
    return 0;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        try {
          (void)from.allocate(8 * k_mib, 0, queue_);
          ADD_FAILURE() << "1 of 8 MiB is live";
        } catch (const im::out_of_memory& problem) {
          EXPECT_TRUE(contains(problem.what(), "To do")) << problem.what();
          EXPECT_TRUE(im::error_snapshot());
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(asked, 160);
  EXPECT_EQ(im::counts_of(from, im::oom_stage::grow).served, 0U);
}

// Blocks of a slab also return from another queue after its work has completed.
TEST_P(pressure, small_blocks_are_waited_for) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = im::resource::pool(queue_.context(), im::kind::device,
                                               {.limit_bytes = k_mib, .wait = 20s}, device_);
  im::host_event gate;
  (void)other.fence({gate});
  std::vector<void*> blocks;
  try {
    for (;;) blocks.push_back(from.allocate(60000, 0, other));
  } catch (const im::out_of_memory&) {
  }
  ASSERT_GE(blocks.size(), 8U);
  auto* pin = blocks.back();
  blocks.pop_back();
  for (void* each : blocks) from.deallocate(each, 60000, 0, other);
  std::thread opener([&] {
    std::this_thread::sleep_for(20ms);
    gate.complete();
  });
  void* waited_for = from.allocate(60000, 0, queue_);
  opener.join();
  from.deallocate(waited_for, 60000, 0, queue_);
  from.deallocate(pin, 60000, 0, other);
}

}  // namespace
