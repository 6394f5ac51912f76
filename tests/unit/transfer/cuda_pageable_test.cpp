// SPDX-License-Identifier: Apache-2.0
// Copies of pageable memory through pinned memory, beside external work on the same streams, and
// with failures of the driver, of memory allocation and of the process.

#include <isthmus/experimental.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "core/sanitizers.hpp"
#include "memory/records/allocation_creation.hpp"
#include "memory/records/pins.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "transfer/pageable.hpp"
#include "transfer/staging_ring.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/failing_driver.hpp"

namespace isthmus::cuda_test {
namespace {

constexpr std::size_t k_mib = std::size_t{1} << 20;
constexpr std::size_t k_bytes = 9 * k_mib + 5;

class cuda_pageable : public cuda_test {
 protected:
  [[nodiscard]] Endpoint make(Queue& on, std::size_t nbytes) {
    auto made = *create_allocation(on, {ISTHMUS_KIND_DEVICE, nbytes, 0}, nullptr);
    auto* const start = static_cast<std::byte*>(made->facts().base);
    return {start, std::move(made), &on};
  }
  [[nodiscard]] static Endpoint plain(std::vector<std::byte>& memory) {
    return {memory.data(), nullptr, nullptr};
  }
  [[nodiscard]] static Submitted copy_all(Queue& on, const Endpoint& to, const Endpoint& from,
                                          bool blocking = true, std::vector<Ref<Event>> after = {},
                                          std::size_t nbytes = k_bytes) {
    return copy(&on, to, from, nbytes, {std::move(after), {}, blocking});
  }
  [[nodiscard]] static bool is_staged(const Queue& on, const Endpoint& to, const Endpoint& from,
                                      bool blocking) {
    return is_better_staged(on, {to, from, k_bytes, k_bytes, k_bytes}, blocking);
  }
  // External work on the stream, not submitted through the library.
  void fill_as_others(cuda::CUstream on, std::byte* at, unsigned char value,
                      std::size_t nbytes) const {
    const cuda::ContextGuard here{calls(), primary()};
    ASSERT_EQ(calls().fill_8(cuda::to_deviceptr(at), value, nbytes, on), 0U);
  }
};

TEST_F(cuda_pageable, is_staged_through_pinned_memory_where_that_is_faster) {
  std::vector<std::byte> data(k_bytes);
  const auto there = make(test_queue(), k_bytes);
  for (const bool blocking : {true, false}) {
    EXPECT_TRUE(is_staged(test_queue(), there, plain(data), blocking));
    EXPECT_TRUE(is_staged(test_queue(), plain(data), there, blocking));
    EXPECT_FALSE(is_staged(test_queue(), there, there, blocking));
  }
  const block pinned{test_context(), test_device(), k_bytes, ISTHMUS_KIND_HOST};
  EXPECT_FALSE(is_staged(test_queue(), there, {pinned.at(), nullptr, nullptr}, true))
      << "pinned already";
}

TEST_F(cuda_pageable, does_not_where_the_callers_memory_is_pinned_as_a_whole) {
  std::vector<std::byte> data(k_bytes);
  const auto there = make(test_queue(), k_bytes);
  auto whole = *Pin::make(test_device(), {data.data(), k_bytes, false}, {});
  EXPECT_TRUE(whole->is_registered());
  EXPECT_FALSE(is_staged(test_queue(), there, plain(data), true));
  EXPECT_FALSE(is_staged(test_queue(), plain(data), there, true));
  whole->end(true);
  EXPECT_TRUE(is_staged(test_queue(), there, plain(data), true));
  auto half = *Pin::make(test_device(), {data.data(), k_bytes / 2, false}, {});
  EXPECT_TRUE(is_staged(test_queue(), there, plain(data), true)) << "the rest is not";
  half->end(true);
}

TEST_F(cuda_pageable, asynchronous_stays_before_later_external_work_on_the_stream) {
  const auto stream = static_cast<cuda::CUstream>(*test_queue().export_handle());
  auto usual = *Platform::default_queue(test_device());
  for (const auto& [on, handle] :
       {std::pair{&test_queue(), stream}, {usual.get(), cuda::legacy_stream()}}) {
    const auto there = make(*on, k_bytes);
    auto data = numbered(k_bytes);
    EXPECT_FALSE(is_staged(*on, there, plain(data), false));
    auto copied = copy_all(*on, there, plain(data), false);
    ASSERT_TRUE(copied) << copied.failure().message();
    fill_as_others(handle, there.pointer, 7, k_bytes);
    finish(copied);
    finish(on->fence({}));
    EXPECT_TRUE(read(*on, there.pointer, k_bytes) == std::vector<std::byte>(k_bytes, std::byte{7}));
  }
}

TEST_F(cuda_pageable, blocking_runs_after_earlier_external_work_on_the_stream) {
  constexpr std::size_t k_large = 64 / support::k_slower * k_mib;
  constexpr unsigned k_times =
      20 / support::k_slower;  // keeps the stream busy while the copy is submitted
  const auto stream = static_cast<cuda::CUstream>(*test_queue().export_handle());
  auto usual = *Platform::default_queue(test_device());
  for (const auto& [on, handle] :
       {std::pair{&test_queue(), stream}, {usual.get(), cuda::legacy_stream()}}) {
    const auto there = make(*on, k_large);
    std::vector<std::byte> got(k_bytes);
    for (unsigned time = 1; time <= k_times; ++time) {
      fill_as_others(handle, there.pointer, static_cast<unsigned char>(time), k_large);
    }
    EXPECT_TRUE(is_staged(*on, plain(got), there, true));
    ASSERT_TRUE(copy_all(*on, plain(got), there));
    EXPECT_TRUE(got == std::vector<std::byte>(k_bytes, std::byte{k_times}));
  }
}

// Chunks as large as a staging slot show that the copy goes through pinned memory: other chunks
// would be elsewhere.
TEST_F(cuda_pageable, between_platforms_is_staged_through_pinned_memory) {
  isthmus_device_t* handle = nullptr;
  ASSERT_EQ(isthmus_sim_create("", &handle), ISTHMUS_OK);
  const auto read_so_far = [handle] {
    std::uint64_t calls = 0;
    EXPECT_EQ(isthmus_sim_calls(handle, "copy_2d", &calls), ISTHMUS_OK);
    return calls;
  };
  {
    auto on = *Platform::default_queue(*reinterpret_cast<Device*>(handle));
    const auto there = make(*on, k_bytes);
    const auto here = make(test_queue(), k_bytes);
    auto data = numbered(k_bytes);
    ASSERT_TRUE(copy_all(*on, there, plain(data)));
    const auto before = read_so_far();
    ASSERT_TRUE(copy_all(test_queue(), here, there));
    EXPECT_EQ(read_so_far() - before, k_bytes / StagingRing::k_slot_bytes + 1);
    ASSERT_TRUE(copy_all(test_queue(), there, here));
    EXPECT_EQ(read_so_far() - before, 2 * (k_bytes / StagingRing::k_slot_bytes + 1));
    std::vector<std::byte> got(k_bytes);
    ASSERT_TRUE(copy_all(*on, plain(got), there));
    EXPECT_TRUE(got == data);
  }
  isthmus_device_release(handle);
}

// The host gathers the ranges, because the kernel would have to access the host's own memory.
TEST_F(cuda_pageable, that_lies_in_pieces_is_gathered_however_small) {
  std::vector<std::byte> data(k_bytes);
  const auto there = make(test_queue(), k_bytes);
  const std::array<CopyRange, 2> ranges{{{0, 10, 10}, {20, 0, 5}}};
  const Endpoint from = plain(data);
  const CopyPlan what{there, from, 25, 20, 15, {}, ranges};
  EXPECT_TRUE(is_better_staged(test_queue(), what, true));
  EXPECT_TRUE(is_better_staged(test_queue(), what, false));
  const block pinned{test_context(), test_device(), k_bytes, ISTHMUS_KIND_HOST};
  const Endpoint reached{pinned.at(), nullptr, nullptr};
  EXPECT_FALSE(is_better_staged(test_queue(), {there, reached, 25, 20, 15, {}, ranges}, true));
  static_cast<void>(test_queue().export_handle());
  EXPECT_FALSE(is_better_staged(test_queue(), what, false)) << "others put work there";
}

TEST_F(cuda_pageable, delays_later_operations_of_the_queue) {
  const auto there = make(test_queue(), k_bytes);
  auto data = numbered(k_bytes);
  const auto gate = make_ref<LibraryEvent>();
  auto copied = copy_all(test_queue(), there, plain(data), false, {gate});
  ASSERT_TRUE(copied);
  std::vector<std::byte> got(k_bytes);
  auto read_back = copy_all(test_queue(), plain(got), there, false);
  ASSERT_TRUE(read_back);
  test_queue().close();
  EXPECT_TRUE((*read_back)->pending());
  gate->finish({});
  finish(read_back);
  EXPECT_TRUE(got == data);
}

TEST_F(cuda_pageable, that_waits_for_a_failure_is_not_made) {
  const auto there = make(test_queue(), k_bytes);
  auto data = numbered(k_bytes);
  std::vector<std::byte> zero(k_bytes);
  ASSERT_TRUE(copy_all(test_queue(), there, plain(zero)));
  const auto gate = make_ref<LibraryEvent>();
  auto copied = copy_all(test_queue(), there, plain(data), false, {gate});
  ASSERT_TRUE(copied);
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "it went wrong"));
  EXPECT_EQ((*copied)->wait(std::nullopt).failure().code(), ISTHMUS_ERROR_DEPENDENCY);
  std::vector<std::byte> got(k_bytes, std::byte{1});
  ASSERT_TRUE(copy_all(test_queue(), plain(got), there)) << "the queue goes on";
  EXPECT_TRUE(got == zero);
}

// A copy with enough chunks to keep all staging slots busy for long, and small copies
// meanwhile.
TEST_F(cuda_pageable, large_and_small_ones_share_the_staging_slots) {
  constexpr std::size_t k_large = 128 / support::k_slower * k_mib;
  const auto large = make(test_queue(), k_large);
  auto data = numbered(k_large);
  auto on = *Queue::create(test_context(), test_device());
  auto copied = copy_all(test_queue(), large, plain(data), false, {}, k_large);
  ASSERT_TRUE(copied);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 12; ++seed) {
    threads.emplace_back([&, seed] {
      const auto there = make(*on, k_bytes);
      auto own = numbered(k_bytes, seed);
      std::vector<std::byte> got(k_bytes);
      EXPECT_TRUE(copy_all(*on, there, plain(own)));
      EXPECT_TRUE(copy_all(*on, plain(got), there));
      EXPECT_TRUE(got == own);
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  finish(copied);
  std::vector<std::byte> got(k_large);
  ASSERT_TRUE(copy_all(test_queue(), plain(got), large, true, {}, k_large));
  EXPECT_TRUE(got == data);
}

TEST_F(cuda_pageable, lets_the_process_end_in_its_midst) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this] {
    auto* const data = new std::vector<std::byte>(256 * k_mib, std::byte{1});
    auto* const there = new Endpoint(make(test_queue(), data->size()));
    const auto copied = copy_all(test_queue(), *there, plain(*data), false, {}, data->size());
    const auto held = copy_all(test_queue(), plain(*data), *there, false, {}, data->size());
    std::exit(copied && held ? 7 : 8);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(7), "");
}

// Only the stand-in driver can be made to fail.
class cuda_failing : public cuda_pageable {
 protected:
  void SetUp() override {
    cuda_pageable::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    driver = failing_driver{test_device()};
    if (!driver) {
      GTEST_SKIP() << "a driver that does not fail when told to";
    }
  }

  failing_driver driver;
};

TEST_F(cuda_failing, reports_every_failure_and_loses_no_staging_slot) {
  const auto there = make(test_queue(), k_bytes);
  std::vector<std::byte> got(k_bytes);
  bool reached = true;
  int told = 0;
  for (long n = 0; reached; ++n) {
    ASSERT_LT(n, 2000);
    auto data = numbered(k_bytes, static_cast<unsigned>(n));
    std::fill(got.begin(), got.end(), std::byte{});
    bool there_and_back = false;
    reached = driver.fails_at(n, [&] {
      auto put = copy_all(test_queue(), there, plain(data), n % 2 == 0);
      const bool right = put && (n % 2 == 0 || (*put)->wait(std::nullopt));
      auto back = copy_all(test_queue(), plain(got), there, n % 3 == 0);
      there_and_back = back && (n % 3 == 0 || (*back)->wait(std::nullopt)) && right;
    });
    told += there_and_back ? 0 : 1;
    ASSERT_TRUE(!there_and_back || got == data) << n;
    ASSERT_TRUE(test_queue().wait(std::nullopt));
  }
  EXPECT_GT(told, 10);
  auto& ring = StagingRing::of(test_device());
  std::vector<StagingRing::SlotPair*> all;  // by waiting: a late helper thread may still have one
  while (all.size() < StagingRing::k_max_slot_pairs) {
    all.push_back(&ring.acquire());
  }
  for (auto* each : all) {
    ring.release(*each);
  }
}

// Part of the memory is already pinned, and some of it twice.
TEST_F(cuda_failing, leaves_nothing_pinned_where_a_call_fails) {
  const auto there = make(test_queue(), k_bytes);
  bool reached = true;
  int told = 0;
  for (long n = 0; reached; ++n) {
    ASSERT_LT(n, 2000);
    auto data = numbered(k_bytes, static_cast<unsigned>(n));
    std::vector<std::byte> got(k_bytes);
    bool all_well = false;
    reached = driver.fails_at(n, [&] {
      auto first = Pin::make(test_device(), {data.data() + k_mib, k_mib, false}, {});
      auto all = Pin::make(test_device(), {data.data(), k_bytes, false}, {});
      auto target = Pin::make(test_device(), {got.data(), k_bytes, false}, {});
      auto put = copy_all(test_queue(), there, plain(data), false);
      auto back = copy_all(test_queue(), plain(got), there, n % 2 == 0);
      for (auto* each : {&first, &all, &target}) {
        if (*each) {
          (**each)->end(n % 3 != 0);
        }
      }
      all_well = first && all && target && put && (*put)->wait(std::nullopt) && back &&
                 (n % 2 == 0 || (*back)->wait(std::nullopt));
    });
    told += all_well ? 0 : 1;
    ASSERT_TRUE(!all_well || got == data) << n;
    ASSERT_TRUE(test_queue().wait(std::nullopt));
    ASSERT_TRUE(support::eventually([] { return !process_pins().any(); })) << n;
    ASSERT_EQ(driver.registered(), 0U) << n;
  }
  EXPECT_GT(told, 5);
}

// In a child process whose address space has no space for the stack of another thread. Only with
// the stand-in: a real driver may itself need address space.
TEST_F(cuda_failing, is_executed_by_the_caller_where_no_thread_can_be_created) {
  if (k_address_sanitizer || k_thread_sanitizer) {
    GTEST_SKIP() << "the sanitizer itself needs address space";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this] {
    const auto there = make(test_queue(), k_bytes);
    auto data = numbered(k_bytes);
    std::vector<std::byte> got(k_bytes);
    bool right{
        copy_all(test_queue(), there, plain(data), true, {}, k_mib / 2)};  // creates its slot
    std::vector<std::vector<char>>(200, std::vector<char>(4096)).clear();  // free heap space
    const rlimit nothing_more{1, 1};
    right = setrlimit(RLIMIT_AS, &nothing_more) == 0 && right;
    right = copy_all(test_queue(), there, plain(data)) && right;
    auto later = copy_all(test_queue(), plain(got), there, false);
    right = !later && later.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY && right;
    right = copy_all(test_queue(), plain(got), there) && right;  // the queue is still usable
    std::_Exit(right && got == data ? 0 : 3);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0), "");
}

// The driver fails from then on, so that no further slot can be created and those that exist are
// counted.
TEST_F(cuda_failing, uses_no_more_threads_than_processors_allowed_or_requested) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this](bool asks) {
    os::ProcessorSet one;
    const auto all = os::processors_of_thread();
    for (std::size_t each = 0; each < all.size() && one.none(); ++each) {
      one[each] = all[each];
    }
    if (asks) {
      setenv("ISTHMUS_COPY_THREADS", "1", 1);
    }
    const os::BoundThread here{asks ? all : one};
    const auto there = make(test_queue(), 64 * k_mib);
    std::vector<std::byte> data(64 * k_mib);
    const bool copied{copy_all(test_queue(), there, plain(data), true, {}, data.size())};
    int slots = 0;
    driver.fail_after(0);
    while (StagingRing::of(test_device()).try_acquire() != nullptr) {
      ++slots;
    }
    std::exit(copied ? slots : 100);
  };
  EXPECT_EXIT(in_child(false), ::testing::ExitedWithCode(1), "");
  EXPECT_EXIT(in_child(true), ::testing::ExitedWithCode(1), "");
}

// Creating the stream of the first slot fails, then allocating its memory. Runs in a child
// process, where no slot exists yet.
TEST_F(cuda_failing, leaves_it_to_the_driver_where_nothing_can_be_pinned) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this](long calls) {
    const auto there = make(test_queue(), k_bytes);
    auto data = numbered(k_bytes);
    std::vector<std::byte> got(k_bytes);
    bool right = true;
    right = driver.fails_at(calls, [&] {
      right = bool{copy_all(test_queue(), there, plain(data))};
    }) && right;
    right = copy_all(test_queue(), plain(got), there) && right;
    std::exit(right && got == data ? 0 : 3);
  };
  EXPECT_EXIT(in_child(0), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(in_child(1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace isthmus::cuda_test
