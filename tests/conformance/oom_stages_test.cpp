// SPDX-License-Identifier: Apache-2.0
// The out-of-memory stages of a pool: which requests fail at once, which must be served, and what
// may happen meanwhile.
#include <algorithm>
#include <atomic>
#include <thread>

#include "support/eventually.hpp"
#include "support/short_memory.hpp"
#include "support/thread_end.hpp"

namespace {

using namespace support;

class oom_stage_order : public on_short_memory {};
INSTANTIATE_ON_BACKENDS(oom_stage_order);

TEST_P(oom_stage_order, what_is_above_the_limit_is_refused_at_once) {
  const im::budget shared(16 * k_mib);
  const im::resource limited = make(60s);
  const im::resource sharing = im::resource::pool(queue_.context(), im::kind::device,
                                                  {.budget = shared, .wait = 60s}, device_);
  for (const im::resource* each : {&limited, &sharing}) {
    {
      const block cached{*each, queue_};
    }
    const auto held = each->usage().held;
    EXPECT_THROW((void)each->allocate(17 * k_mib, 0, queue_), im::out_of_memory);
    EXPECT_TRUE(im::error_snapshot());
    EXPECT_EQ(each->usage().held, held) << "nothing was given back for it";
    for (auto oom_stage : {im::oom_stage::trim, im::oom_stage::wait}) {
      EXPECT_EQ(im::counts_of(*each, oom_stage).tried, 0U);
    }
  }
}

// Completely free slabs serve a page run without returning memory to the driver.
TEST_P(oom_stage_order, what_slabs_keep_serves_large_requests) {
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{8192}, k_mib / 16, k_mib / 4}) {
    const im::resource from = im::resource::pool(
        queue_.context(), im::kind::device,
        {.initial_bytes = 8 * k_mib, .limit_bytes = 8 * k_mib, .remap = false, .wait = 0s},
        device_);
    void* const pin = from.allocate(300'000, 0, queue_);
    std::vector<void*> blocks(7 * k_mib / nbytes);
    for (void*& each : blocks) each = from.allocate(nbytes, 0, queue_);
    for (void* each : blocks) from.deallocate(each, nbytes, 0, queue_);
    (void)queue_.fence().wait_for(30s);
    void* const large = from.allocate(7 * k_mib, 0, queue_);
    from.deallocate(large, 7 * k_mib, 0, queue_);
    from.deallocate(pin, 300'000, 0, queue_);
  }
}

// Slabs are large, so that little metadata is needed. If that much memory is not available at once,
// the pool makes a slab that is little larger than the requested block.
TEST_P(oom_stage_order, small_requests_are_served_from_small_pieces) {
  const std::size_t piece = 7 * k_mib / 16;  // less than a slab of any of these sizes
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{60'000}, k_mib / 4}) {
    for (const bool remap : {true, false}) {
      const im::resource from = im::resource::pool(
          queue_.context(), im::kind::device,
          {.initial_bytes = 16 * k_mib, .limit_bytes = 16 * k_mib, .remap = remap, .wait = 0s},
          device_);
      std::vector<void*> pieces(from.usage().held / piece);
      for (void*& each : pieces) each = from.allocate(piece, 0, queue_);
      for (std::size_t i = 0; i < pieces.size(); i += 2) {
        from.deallocate(std::exchange(pieces[i], nullptr), piece, 0, queue_);
      }
      const auto count = (pieces.size() + 1) / 2 * (nbytes < 2000 ? piece / 1024 : piece / nbytes);
      std::vector<void*> blocks(count);
      for (void*& each : blocks) ASSERT_NO_THROW(each = from.allocate(nbytes, 0, queue_));
      for (void* each : blocks) from.deallocate(each, nbytes, 0, queue_);
      for (void* each : pieces) {
        if (each != nullptr) from.deallocate(each, piece, 0, queue_);
      }
      void* const whole = from.allocate(15 * k_mib, 0, queue_);
      from.deallocate(whole, 15 * k_mib, 0, queue_);
    }
  }
}

TEST_P(oom_stage_order, a_small_limit_serves_small_requests) {
  const im::resource from = im::resource::pool(
      queue_.context(), im::kind::device,
      {.growth_bytes = k_mib / 16, .limit_bytes = k_mib / 2, .remap = false, .wait = 0s}, device_);
  std::vector<void*> live;
  void* const served = from.allocate(60'000, 0, queue_);  // a slab of this size class has 960 KiB
  try {
    for (;;) live.push_back(from.allocate(40'000, 0, queue_));
  } catch (const im::out_of_memory& refused) {
    EXPECT_NE(std::string(refused.what()).find("cannot allocate 40 KiB"), std::string::npos)
        << refused.what();
  }
  EXPECT_FALSE(live.empty());
  for (void* each : live) from.deallocate(each, 40'000, 0, queue_);
  from.deallocate(served, 60'000, 0, queue_);
}

// With `device_wait`, a queue may get memory that another queue still uses: the device waits, not
// the host.
TEST_P(oom_stage_order, a_queue_waits_on_the_device_where_its_pool_may) {
  const im::resource from = im::resource::pool(
      queue_.context(), im::kind::device,
      {.limit_bytes = 8 * k_mib, .remap = false, .wait = 0s, .device_wait = true}, device_);
  const im::resource strict = make(0s);
  const im::queue other(queue_.context(), device_);
  im::host_event gate;
  (void)other.fence({gate});
  for (const im::resource* each : {&from, &strict}) {
    each->deallocate(each->allocate(6 * k_mib, 0, other), 6 * k_mib, 0, other);
  }
  EXPECT_THROW((void)strict.allocate(6 * k_mib, 0, queue_), im::out_of_memory);
  EXPECT_EQ(im::counts_of(strict, im::oom_stage::device_wait).tried, 0U);

  const im::buffer next(6 * k_mib, im::kind::device, {.queue = queue_, .resource = from});
  EXPECT_EQ(im::counts_of(from, im::oom_stage::device_wait).served, 1U);
  const im::event filled = im::fill_async(next, 2.0F, {.queue = queue_});
  EXPECT_FALSE(filled.wait_for(50ms));
  gate.complete();
  std::vector<float> seen(6 * k_mib / sizeof(float));
  im::copy(std::span<float>(seen), next);
  EXPECT_EQ(seen, std::vector<float>(seen.size(), 2.0F));
}

// The queue waits for the memory of a whole slab. The blocks that one request leaves serve the
// next.
TEST_P(oom_stage_order, all_blocks_of_what_a_queue_waited_for_serve_it) {
  constexpr std::size_t k_block = 4096;
  const im::resource from = im::resource::pool(
      queue_.context(), im::kind::device,
      {.limit_bytes = 8 * k_mib, .remap = false, .wait = 0s, .device_wait = true}, device_);
  const im::queue other(queue_.context(), device_);
  im::host_event gate;
  (void)other.fence({gate});
  from.deallocate(from.allocate(6 * k_mib, 0, other), 6 * k_mib, 0, other);
  std::vector<void*> blocks(6 * k_mib / k_block);
  for (void*& each : blocks) each = from.allocate(k_block, 0, queue_);
  EXPECT_GE(im::counts_of(from, im::oom_stage::device_wait).served, 1U);
  for (void* each : blocks) from.deallocate(each, k_block, 0, queue_);
  gate.complete();
  (void)queue_.fence().wait_for(30s);
  // Polls: completing a fence wakes its waiters before the pool has noticed it.
  EXPECT_TRUE(eventually([&] {
    (void)from.trim(0);
    return from.usage().held == 0;
  }));
  from.verify();
}

// In a callback, the pool must not use the thread caches of other threads, call callbacks or wait.
TEST_P(oom_stage_order, what_its_thread_keeps_serves_a_callback) {
  constexpr std::size_t k_kept = 100 * 1024;
  constexpr std::size_t k_wanted = 200 * 1024;
  const im::resource from = make(0s);
  std::vector<im::queue> queues;
  for (int i = 0; i < 200; ++i) queues.emplace_back(queue_.context(), device_);
  std::vector<std::pair<void*, const im::queue*>> blocks;
  try {
    for (std::size_t i = 0;; ++i) {
      const im::queue* const on = &queues[i % queues.size()];
      blocks.emplace_back(from.allocate(k_kept, 0, *on), on);
    }
  } catch (const im::out_of_memory&) {
  }
  for (const auto& [each, on] : blocks) from.deallocate(each, k_kept, 0, *on);
  for (const im::queue& each : queues) each.wait();
  (void)queue_.fence().wait_for(30s);
  for (int time = 0; time < 3; ++time) {
    const im::host_event gate;
    gate.then([&]() noexcept {
      EXPECT_NO_THROW(from.deallocate(from.allocate(k_wanted, 0, queue_), k_wanted, 0, queue_));
    });
    gate.complete();
  }
}

// The callback may use as many other thread caches as this thread has, while a request of this
// thread goes through the stages.
TEST_P(oom_stage_order, a_callback_evicts_no_thread_cache) {
  constexpr std::size_t k_queues = 40;
  const im::resource small = im::resource::pool(queue_.context(), im::kind::device,
                                                {.limit_bytes = k_mib, .wait = 0s}, device_);
  const im::resource other = make();
  std::vector<im::queue> queues;
  for (std::size_t each = 0; each < k_queues; ++each) {
    queues.emplace_back(queue_.context(), device_);
  }
  std::vector<void*> held;
  try {
    for (;;) held.push_back(small.allocate(1000, 0, queue_));
  } catch (const im::out_of_memory&) {
  }
  const auto use_other_lanes = [&](const im::oom_request&) noexcept {
    for (void* each : held) small.deallocate(each, 1000, 0, queue_);
    held.clear();
    for (const im::queue& on : queues) {
      other.deallocate(other.allocate(2000, 0, on), 2000, 0, on);
    }
    return k_mib;
  };
  const im::oom_callback asked(use_other_lanes);
  void* const first = small.allocate(2000, 0, queue_);
  for (const im::queue& on : queues) {
    std::vector<void*> taken(40);
    for (void*& each : taken) each = other.allocate(2000, 0, on);
    for (void* each : taken) EXPECT_NO_THROW(other.deallocate(each, 2000, 0, on));
  }
  small.deallocate(first, 2000, 0, queue_);
  (void)queue_.fence().wait_for(30s);
  (void)small.trim(0);
  EXPECT_EQ(small.usage().held, 0U);
}

TEST_P(oom_stage_order, a_request_may_fail_as_its_thread_ends) {
  const im::resource from = make(0s);
  std::atomic<int> failed{0};
  const std::function<void(bool)> fail = [&](bool has_snapshot) {
    EXPECT_THROW((void)from.allocate(64 * k_mib, 0, queue_), im::out_of_memory);
    EXPECT_EQ(im::error_snapshot().has_value(), has_snapshot);
    ++failed;
  };
  struct last_wish {
    const std::function<void(bool)>* run = nullptr;
    ~last_wish() { (*run)(true); }
  };
  std::thread([&] {
    thread_local last_wish mine;
    mine.run = &fail;
    run_at_thread_end([&] { fail(false); });
    fail(true);
  }).join();
  EXPECT_EQ(failed, 3);
}

TEST_P(oom_stage_order, queues_may_be_created_and_destroyed_while_others_wait) {
  const im::resource from = im::resource::pool(queue_.context(), im::kind::device,
                                               {.limit_bytes = 8 * k_mib, .wait = 1ms}, device_);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&] {
      while (!done) {
        const im::queue one(queue_.context(), device_);
        const im::queue two(queue_.context(), device_);
        std::vector<std::pair<void*, const im::queue*>> blocks;
        try {
          for (int each = 0; each < 200; ++each) {
            const im::queue* const on = each % 2 != 0 ? &one : &two;
            blocks.emplace_back(from.allocate(1000, 0, *on), on);
          }
        } catch (const im::out_of_memory&) {
        }
        const im::host_event gate;
        (void)one.fence({gate});
        (void)two.fence({gate});
        for (const auto& [each, on] : blocks) from.deallocate(each, 1000, 0, *on);
        gate.complete();
      }
    });
    threads.emplace_back([&] {
      const im::queue on(queue_.context(), device_);
      for (int round = 0; round < 300; ++round) {
        try {
          from.deallocate(from.allocate(7 * k_mib, 0, on), 7 * k_mib, 0, on);
        } catch (const im::out_of_memory&) {
        }
      }
      done = true;
    });
  }
  for (auto& each : threads) each.join();
}

}  // namespace
