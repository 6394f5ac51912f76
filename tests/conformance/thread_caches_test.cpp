// SPDX-License-Identifier: Apache-2.0
// Thread caches: what a thread keeps of a pool, and which other threads get it when the
// thread does not need it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <future>
#include <latch>
#include <memory>
#include <random>
#include <thread>

#include "support/backends.hpp"

namespace {

using namespace support;

im::resource make_pool(const im::queue& on, std::uint64_t limit_bytes = 0) {
  return im::resource::pool(on.context(), im::kind::device,
                            {.growth_bytes = k_mib, .limit_bytes = limit_bytes, .remap = false},
                            on.device());
}

void pass_through(const im::resource& from, const im::queue& on, std::size_t nbytes,
                  std::size_t count) {
  std::vector<void*> blocks(count);
  for (void*& each : blocks) each = from.allocate(nbytes, 0, on);
  for (void* each : blocks) from.deallocate(each, nbytes, 0, on);
}

void trim_under_threads_at_work(const im::queue& on) {
  const im::resource from = make_pool(on);
  std::atomic<int> at_work{2};
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      for (std::size_t round = 0; round < 3000; ++round) {
        pass_through(from, on, 300 + 1000 * number, 1 + round % 70);
        pass_through(from, on, 300'000, 1 + round % 3);
      }
      --at_work;
    });
  }
  while (at_work != 0) (void)from.trim(0);
  for (auto& each : threads) each.join();
  from.verify();
  (void)on.fence().wait_for(30s);
  (void)from.trim(0);
  EXPECT_EQ(from.usage().held, 0U);
}

// As in a sandbox or before Linux 4.14. Permanent for this process.
void forbid_membarrier() {
  std::array<sock_filter, 4> rules{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{rules.size(), rules.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

class thread_cache_reuse : public on_backend {};
INSTANTIATE_ON_BACKENDS(thread_cache_reuse);

// A thread that keeps blocks in its thread cache and stays alive.
class keeper {
 public:
  template <class Keep>
  explicit keeper(Keep keep)
      : thread_([=, this] {
          keep();
          kept_.count_down();
          over_.wait();
          keep();  // its thread cache still works
        }) {
    kept_.wait();
  }
  ~keeper() {
    over_.count_down();
    thread_.join();
  }
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

 private:
  std::latch kept_{1};
  std::latch over_{1};
  std::thread thread_;
};

TEST_P(thread_cache_reuse, of_running_threads_are_released_by_a_trim) {
  const im::resource from = make_pool(queue_);
  const auto keep = [&] {
    pass_through(from, queue_, 1000, 40);
    pass_through(from, queue_, 65'536, 20);
    pass_through(from, queue_, 4 * k_mib, 1);
  };
  {
    const keeper other(keep);
    EXPECT_GE(im::snapshot_of(from).cached, 4 * k_mib);
    (void)queue_.fence().wait_for(30s);
    EXPECT_GE(from.trim(0), 4 * k_mib);
    EXPECT_EQ(from.usage().held, 0U);
  }
  from.verify();
}

TEST_P(thread_cache_reuse, that_are_idle_serve_before_the_driver_does) {
  const im::resource from = make_pool(queue_);
  const keeper other([&] { pass_through(from, queue_, 6 * k_mib, 1); });
  std::this_thread::sleep_for(50ms);
  // Records which thread caches are in use from now on.
  void* const first = from.allocate(8 * k_mib, 0, queue_);
  const auto held = from.usage().held;
  EXPECT_EQ(im::counts_of(from, im::oom_stage::collect_idle).served, 0U);
  std::this_thread::sleep_for(50ms);
  void* const second = from.allocate(6 * k_mib, 0, queue_);
  EXPECT_EQ(im::counts_of(from, im::oom_stage::collect_idle).served, 1U);
  EXPECT_EQ(from.usage().held, held);
  from.deallocate(first, 8 * k_mib, 0, queue_);
  from.deallocate(second, 6 * k_mib, 0, queue_);
}

// A new slab is small compared with what the pool holds, but at the limit there is no memory for
// one.
TEST_P(thread_cache_reuse, of_other_threads_serve_before_expensive_stages) {
  const im::resource from = make_pool(queue_, 64 * k_mib);
  std::vector<void*> all;
  try {
    for (;;) all.push_back(from.allocate(4096, 0, queue_));
  } catch (const im::error& full) {
    EXPECT_EQ(full.status(), im::status::out_of_memory);
  }
  for (int i = 0; i < 16; ++i) {  // scattered, so that no slab is completely free
    from.deallocate(all[static_cast<std::size_t>(i) * 100], 4096, 0, queue_);
    all[static_cast<std::size_t>(i) * 100] = nullptr;
  }
  (void)from.trim(0);  // empties this thread's cache
  const auto waited = im::counts_of(from, im::oom_stage::trim).tried;
  std::vector<void*> others;
  std::thread([&] {
    for (int i = 0; i < 16; ++i) others.push_back(from.allocate(4096, 0, queue_));
  }).join();
  EXPECT_EQ(im::counts_of(from, im::oom_stage::trim).tried, waited);
  for (void* each : others) from.deallocate(each, 4096, 0, queue_);
  for (void* each : all) {
    if (each != nullptr) from.deallocate(each, 4096, 0, queue_);
  }
}

TEST_P(thread_cache_reuse, serve_other_threads_where_the_driver_is_out_of_memory) {
  const im::resource from = make_pool(queue_, 8 * k_mib);
  const keeper other([&] { pass_through(from, queue_, 6 * k_mib, 1); });
  void* const large = from.allocate(6 * k_mib, 0, queue_);
  EXPECT_EQ(im::counts_of(from, im::oom_stage::trim).served, 1U);
  from.deallocate(large, 6 * k_mib, 0, queue_);
  (void)from.trim(0);  // so that the other thread can keep a block again
}

// Otherwise each queue would take its blocks from another one, again and again.
TEST_P(thread_cache_reuse, of_many_queues_that_one_thread_works_on_come_to_rest) {
  const im::resource from = make_pool(queue_);
  std::vector<im::queue> queues;
  for (int i = 0; i < 100; ++i) queues.emplace_back(queue_.context(), queue_.device());
  const auto work = [&](int rounds) {
    for (; rounds != 0; --rounds) {
      for (const im::queue& each : queues) pass_through(from, each, 4096, 1);
    }
  };
  work(20);
  const auto held = from.usage().held;
  const auto settled = im::counts_of(from, im::oom_stage::collect).tried;
  work(20);
  EXPECT_EQ(from.usage().held, held);
  // Depending on their addresses, more queues may map to a set of thread caches than it has
  // entries. Then some of them alternate.
  EXPECT_LE(im::counts_of(from, im::oom_stage::collect).tried, settled + 20);
  EXPECT_LE(held, 8 * k_mib);
  from.verify();
}

// Blocks freed on one queue are needed on another, and the thread cache that has a free block is
// seldom that of the requesting queue.
TEST_P(thread_cache_reuse, of_many_queues_keep_no_more_than_those_of_few) {
  constexpr std::size_t k_block = 100'000;
  constexpr std::size_t k_live = 64;
  const im::resource from = make_pool(queue_);
  std::vector<im::queue> queues;
  for (int i = 0; i < 200; ++i) queues.emplace_back(queue_.context(), queue_.device());
  std::mt19937 random(1);
  const auto any = [&]() -> const im::queue& { return queues[random() % queues.size()]; };
  std::vector<void*> live(k_live);
  for (void*& each : live) each = from.allocate(k_block, 0, any());
  for (int i = 0; i < 50'000; ++i) {
    void*& each = live[random() % k_live];
    from.deallocate(each, k_block, 0, any());
    each = from.allocate(k_block, 0, any());
  }
  EXPECT_LE(from.usage().held, 256 * k_mib);
  for (void* each : live) from.deallocate(each, k_block, 0, any());
  from.verify();
}

// New queues reuse their entries, and a free must not wait for a queue to be destroyed.
TEST_P(thread_cache_reuse, of_destroyed_queues_block_no_other_queue) {
  const im::resource from = make_pool(queue_);
  const auto come_and_go = [&] {
    std::vector<im::queue> queues;
    for (int i = 0; i < 350; ++i) {
      queues.emplace_back(queue_.context(), queue_.device());
      pass_through(from, queues.back(), 1000, 1);
    }
  };
  std::vector<std::unique_ptr<keeper>> threads;
  while (threads.size() < 4) threads.push_back(std::make_unique<keeper>(come_and_go));
  void* const block = from.allocate(1000, 0, queue_);
  im::host_event gate;
  (void)queue_.fence({gate});
  const auto freeing =
      std::async(std::launch::async, [&] { from.deallocate(block, 1000, 0, queue_); });
  EXPECT_EQ(freeing.wait_for(30s), std::future_status::ready) << "it waits for the queue";
  gate.complete();
}

TEST_P(thread_cache_reuse, are_emptied_under_threads_at_work) {
  trim_under_threads_at_work(queue_);
}

// Runs the check in a new process, not in a fork of this one.
template <class Check>
void expect_in_a_process(Check check) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_it = [&] {
    check(im::queue(im::device("host")));
    std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(in_it(), testing::ExitedWithCode(0), "");
}

TEST(thread_caches_without_membarrier, are_emptied_under_threads_at_work) {
  expect_in_a_process([](const im::queue& on) {
    forbid_membarrier();
    trim_under_threads_at_work(on);
  });
}

// When membarrier is forbidden only later, threads already run without fences of their own, so no
// other thread may inspect their caches.
TEST(thread_caches_without_membarrier,
     stay_with_their_threads_if_it_is_forbidden_after_their_start) {
  expect_in_a_process([](const im::queue& on) {
    const im::resource from = make_pool(on);
    {
      const keeper other([&] { pass_through(from, on, 4 * k_mib, 1); });
      forbid_membarrier();
      (void)on.fence().wait_for(30s);
      (void)from.trim(0);
      EXPECT_GE(im::snapshot_of(from).cached, 4 * k_mib);
    }
    trim_under_threads_at_work(on);
  });
}

}  // namespace
