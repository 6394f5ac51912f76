// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/debug_resource.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "memory/base/oom_stages.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"

namespace isthmus {
namespace {

using support::k_kib;
using support::k_mib;

class debug_resource_test : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto found = find_device("host");
    ASSERT_TRUE(found);
    auto home = (*found)->platform().default_context();
    ASSERT_TRUE(home);
    auto made = Queue::create(**home, **found);
    ASSERT_TRUE(made);
    on_ = *std::move(made);
    if (GetParam()) {
      auto from = Pool::create(**home, **found, ISTHMUS_KIND_HOST, {.limit_bytes = 8 * k_mib});
      ASSERT_TRUE(from);
      upstream_ = *std::move(from);
    } else {
      upstream_ = make_ref<Provider>(**home, **found, ISTHMUS_KIND_HOST);
    }
    make(k_mib);
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    over_ = nullptr;
    told_ += testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(told_.begin(), told_.end(), '\n'), expected_);
  }
  void make(std::size_t kept_bytes) {
    auto over = DebugResource::create(*upstream_, kept_bytes);
    ASSERT_TRUE(over);
    over_ = *std::move(over);
  }
  [[nodiscard]] std::byte* take(std::size_t nbytes, std::size_t alignment = 0) {
    auto got = over_->allocate(nbytes, alignment, *on_);
    EXPECT_TRUE(got) << got.failure().message();
    return got ? static_cast<std::byte*>(*got) : nullptr;
  }
  [[nodiscard]] Result<void> give(void* pointer, std::size_t nbytes) {
    return over_->deallocate(pointer, nbytes, on_.get());
  }
  static bool says(const Result<void>& outcome, std::string_view part) {
    return !outcome && outcome.failure().code() == ISTHMUS_ERROR_INVALID_ARGUMENT &&
           std::string_view{outcome.failure().message()}.find(part) != std::string_view::npos;
  }

  Ref<Queue> on_;
  Ref<MemoryResource> upstream_;
  Ref<DebugResource> over_;
  std::string told_;
  int expected_ = 0;  // lines expected on the standard error stream
};
INSTANTIATE_TEST_SUITE_P(over, debug_resource_test, testing::Bool(), [](const auto& which) {
  return std::string{which.param ? "pool" : "provider"};
});

TEST_P(debug_resource_test, intact_blocks_are_allocated_and_freed) {
  for (const std::size_t nbytes : {std::size_t{1}, std::size_t{100}, 64 * k_kib, 3 * k_mib}) {
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{64}, 4 * k_kib}) {
      auto* const got = take(nbytes, alignment);
      EXPECT_EQ(address(got) % std::max<std::size_t>(alignment, 64), 0U);
      std::memset(got, 1, nbytes);
      EXPECT_TRUE(over_->verify());
      EXPECT_TRUE(give(got, nbytes));
    }
  }
  EXPECT_TRUE(over_->verify());
}

TEST_P(debug_resource_test, a_write_beside_a_block_is_reported_and_the_block_stays) {
  auto* const got = take(100);
  for (const auto& [offset, says_where] :
       {std::pair{100, "offset 100 of"}, std::pair{-3, "offset -3 of"}}) {
    const auto was = got[offset];
    got[offset] = std::byte{7};
    EXPECT_TRUE(says(give(got, 100), says_where));
    got[offset] = was;
    expected_ += 1;
  }
  EXPECT_TRUE(says(over_->verify(), "offset 100 of")) << "what was found first is remembered";
  EXPECT_TRUE(give(got, 100));
}

TEST_P(debug_resource_test, a_write_after_the_free_is_found) {
  auto* const got = take(1000);
  ASSERT_TRUE(give(got, 1000));
  EXPECT_TRUE(over_->verify());
  got[500] = std::byte{0};
  EXPECT_TRUE(says(over_->verify(), "offset 500"));
  over_->trim(0);
  EXPECT_TRUE(says(over_->verify(), "after it was freed"));
  expected_ = 1;
}

TEST_P(debug_resource_test, freed_twice_inner_and_foreign_pointers_are_refused) {
  auto* const got = take(1000);
  int local = 0;
  EXPECT_TRUE(says(give(&local, 4), "not a block"));
  EXPECT_TRUE(says(give(got + 1, 999), "inside"));
  EXPECT_TRUE(give(got, 1000));
  EXPECT_TRUE(says(give(got, 1000), "before"));
  over_->trim(0);
  EXPECT_FALSE(give(got, 1000));
}

TEST_P(debug_resource_test, quarantined_blocks_are_released_before_memory_runs_out) {
  make(64 * k_mib);
  for (int each = 0; each < 10; ++each) {
    auto* const got = take(3 * k_mib);
    EXPECT_TRUE(give(got, 3 * k_mib));
  }
}

TEST_P(debug_resource_test, odd_requests_are_upstreams_to_refuse) {
  for (const auto& [nbytes, alignment] : {std::pair{SIZE_MAX, std::size_t{0}},
                                          {SIZE_MAX - 100, 64},
                                          {100, 3},
                                          {100, SIZE_MAX / 2 + 1}}) {
    EXPECT_FALSE(over_->allocate(nbytes, alignment, *on_)) << nbytes << " " << alignment;
  }
}

TEST_P(debug_resource_test, an_allocation_waits_for_its_queue) {
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  ASSERT_TRUE(on_->fence(after));
  std::atomic<bool> taken{false};
  std::thread takes([&] {
    auto* const got = take(100);
    taken = true;
    EXPECT_TRUE(give(got, 100));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_FALSE(taken);
  gate->finish({});
  takes.join();
  EXPECT_TRUE(over_->verify());
}

// In a callback, and wherever else waiting is not allowed.
TEST_P(debug_resource_test, where_it_may_not_wait_blocks_pass_unchecked) {
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  ASSERT_TRUE(on_->fence(after));
  no_wait = true;
  auto* const got = take(100);
  no_wait = false;
  got[100] = std::byte{7};
  EXPECT_TRUE(over_->verify());
  gate->finish({});
  ASSERT_TRUE(on_->wait(std::nullopt));
  EXPECT_TRUE(give(got, 100));
}

TEST_P(debug_resource_test, can_be_verified_while_threads_use_it) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned who = 0; who < 2; ++who) {
    threads.emplace_back([&] {
      while (!stop) {
        auto* const got = take(300);
        std::memset(got, 1, 300);
        EXPECT_TRUE(give(got, 300));
      }
    });
  }
  for (std::size_t each = 0; each < 150 / support::k_slower; ++each) {
    const auto sound = over_->verify();
    EXPECT_TRUE(sound) << sound.failure().message();
  }
  stop = true;
  for (auto& each : threads) {
    each.join();
  }
}

TEST_P(debug_resource_test, threads_share_it) {
  std::vector<std::thread> threads;
  for (unsigned who = 0; who < 4; ++who) {
    threads.emplace_back([this, who] {
      for (std::size_t each = 0; each < 2000; ++each) {
        const auto nbytes = 8 + (each * 37 + who) % 2000;
        auto* const got = take(nbytes);
        std::memset(got, static_cast<int>(who), nbytes);
        EXPECT_TRUE(give(got, nbytes));
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_TRUE(over_->verify());
}

TEST(debug_resource, device_memory_is_refused) {
  auto found = find_device("host");
  ASSERT_TRUE(found);
  auto home = (*found)->platform().default_context();
  ASSERT_TRUE(home);
  const auto from = make_ref<Provider>(**home, **found, ISTHMUS_KIND_DEVICE);
  auto over = DebugResource::create(*from, k_mib);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
}

}  // namespace
}  // namespace isthmus
