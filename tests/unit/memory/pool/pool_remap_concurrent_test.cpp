// SPDX-License-Identifier: Apache-2.0
// Moving free memory of a pool to where a larger request needs it. On the host, where chunks can be
// divided; on a simulated device, where they cannot and which detects moves under running work; and
// on CUDA, where a chunk can be mapped at two addresses.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "backend/drivers.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/pool/pool.hpp"
#include "os/virtual_memory.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

using support::k_mib;

struct taken {
  void* start;
  std::size_t nbytes;
};

class holder {
 public:
  holder(Ref<Pool> from, Queue& on) : from_{std::move(from)}, on_{on} {}
  holder(const holder&) = delete;
  holder& operator=(const holder&) = delete;
  ~holder() {
    for (const auto& each : all_) {
      give(each);
    }
  }

  [[nodiscard]] Pool& from() const noexcept { return *from_; }
  [[nodiscard]] std::size_t held() const { return from_->usage().held_bytes; }
  std::byte* take(std::size_t nbytes) {
    all_.push_back({expect_value(from_->allocate(nbytes, 0, on_)), nbytes});
    return static_cast<std::byte*>(all_.back().start);
  }
  // Frees every other block, which leaves the free memory fragmented.
  void take_and_give_every_other(std::size_t count, std::size_t nbytes) {
    std::vector<taken> gone;
    for (std::size_t each = 0; each < 2 * count; ++each) {
      take(nbytes);
      if (each % 2 != 0) {
        gone.push_back(all_.back());
        all_.pop_back();
      }
    }
    for (const auto& each : gone) {
      give(each);
    }
  }
  void give_last() {
    give(all_.back());
    all_.pop_back();
  }

 private:
  void give(const taken& gone) { EXPECT_TRUE(from_->deallocate(gone.start, gone.nbytes, &on_)); }

  Ref<Pool> from_;
  Queue& on_;
  std::vector<taken> all_;
};

[[nodiscard]] Ref<Pool> pool_on(Queue& on, UsmKind kind, const Pool::Options& how) {
  return expect_value(Pool::create(on.context(), on.device(), kind, how));
}

class pool_remap : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string_view wanted{GetParam()};
    if (wanted == "host") {
      auto* device = expect_value(find_device("host"));
      if (!device->can(ISTHMUS_CAN_REMAP)) {
        GTEST_SKIP() << "the kernel cannot move pages";
      }
      on_ = Ref<Queue>{expect_value(Platform::default_queue(*device))};
    } else if (wanted == "cuda") {
      usual_ = ISTHMUS_KIND_HOST;
      set_up_cuda();
    } else {
      sim_.emplace(GetParam());
      on_ = Ref<Queue>{sim_->queue};
    }
  }
  void set_up_cuda() {
    auto device = find_device("cuda");
    if (!device) {
      const char* required = std::getenv("ISTHMUS_REQUIRE_CUDA");
      ASSERT_TRUE(required == nullptr || *required != '1') << device.failure().message();
      GTEST_SKIP() << "no CUDA device";
    }
    const auto home = expect_value((*device)->platform().default_context());
    if (home->chunks(**device, usual_) == nullptr) {
      GTEST_SKIP() << "its pinned memory does not move";
    }
    on_ = expect_value(Queue::create(*home, **device));
  }
  [[nodiscard]] Ref<Pool> make(const Pool::Options& how = {}) const { return make(how, usual_); }
  [[nodiscard]] Ref<Pool> make(const Pool::Options& how, UsmKind kind) const {
    return pool_on(*on_, kind, how);
  }
  [[nodiscard]] bool divides() const { return std::string_view{GetParam()} == "host"; }
  // On CUDA managed memory cannot be remapped.
  [[nodiscard]] std::vector<UsmKind> kinds_that_move() const {
    return usual_ == ISTHMUS_KIND_HOST
               ? std::vector<UsmKind>{ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_HOST}
               : std::vector<UsmKind>{ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST};
  }

  std::optional<rig> sim_;
  Ref<Queue> on_;
  UsmKind usual_ = ISTHMUS_KIND_DEVICE;
};

TEST_P(pool_remap, pieces_become_one_run) {
  for (const UsmKind kind : kinds_that_move()) {
    holder with{make({}, kind), *on_};
    with.take_and_give_every_other(8, 4 * k_mib);
    const auto held = with.held();
    with.take(30 * k_mib);
    EXPECT_EQ(with.held(), held);
    with.give_last();
    with.take(34 * k_mib);
    EXPECT_LE(with.held(), held + 4 * k_mib) << "what is missing, and no more";
  }
}

TEST_P(pool_remap, can_be_switched_off) {
  holder with{make({.growth_bytes = 4 * k_mib, .remaps = false}), *on_};
  with.take_and_give_every_other(8, 4 * k_mib);
  const auto before = with.from().usage();
  with.take(30 * k_mib);
  const auto after = with.from().usage();
  EXPECT_EQ(after.maps - before.maps, 1U);
  EXPECT_EQ(after.unmaps - before.unmaps, 8U) << "as many as come to the new one";
}

TEST_P(pool_remap, what_is_in_use_stays_where_it_is) {
  holder with{make({}, ISTHMUS_KIND_HOST), *on_};
  std::vector<std::byte*> kept;
  for (int each = 0; each < 12; ++each) {
    kept.push_back(with.take(3 * k_mib + k_mib / 2));
    std::memset(kept.back(), each, 3 * k_mib + k_mib / 2);
    with.take(2 * k_mib);
    with.give_last();
    with.take(20 * k_mib);
    with.give_last();
  }
  for (int each = 0; each < 12; ++each) {
    for (std::size_t at = 0; at < 3 * k_mib + k_mib / 2; at += 509) {
      ASSERT_EQ(kept[static_cast<std::size_t>(each)][at], static_cast<std::byte>(each)) << at;
    }
  }
}

TEST_P(pool_remap, a_limit_is_met_by_moving) {
  holder with{make({.growth_bytes = k_mib, .limit_bytes = 64 * k_mib}), *on_};
  with.take_and_give_every_other(16, 2 * k_mib);
  EXPECT_EQ(with.held(), 64 * k_mib);
  with.take(32 * k_mib);
  EXPECT_EQ(with.held(), 64 * k_mib);
  expect_failure(with.from().allocate(k_mib, 0, *on_), ISTHMUS_ERROR_OUT_OF_MEMORY, "at most");
}

TEST_P(pool_remap, any_part_of_it_can_be_trimmed) {
  const auto before =
      support::wait_until_stable([this] { return process_live_counts().total(usual_); });
  {
    holder with{make(), *on_};
    with.take_and_give_every_other(8, 4 * k_mib);
    with.take(20 * k_mib);
    const auto free = with.from().usage().free_bytes;
    const auto held = with.held();
    const auto given_back = with.from().trim(0);
    EXPECT_EQ(with.held(), held - given_back);
    EXPECT_GE(given_back + 8 * k_mib, free);
    with.take(10 * k_mib);
  }
  const auto after = process_live_counts().total(usual_);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.count, before.count);
}

TEST_P(pool_remap, is_trimmed_to_the_byte_where_chunks_can_be_split) {
  const auto before =
      support::wait_until_stable([this] { return process_live_counts().total(usual_); });
  {
    holder with{make({.initial_bytes = 64 * k_mib}), *on_};
    const auto given_back = with.from().trim(32 * k_mib);
    EXPECT_EQ(with.held(), 64 * k_mib - given_back);
    EXPECT_EQ(with.held(), 32 * k_mib);
    with.take(16 * k_mib);
    with.from().trim(0);
    EXPECT_LE(with.held(), 24 * k_mib);
  }
  const auto after = process_live_counts().total(usual_);
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.count, before.count) << "of what was one chunk, and then several";
}

std::size_t reserved_bytes() {
  std::size_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * os::page_size();
}

// Repeatedly allocates a small block where a large one was: the memory around it can still move.
TEST_P(pool_remap, small_blocks_keep_no_addresses) {
  if (!divides()) {
    GTEST_SKIP() << "a chunk that does not divide keeps the addresses that it was reserved with";
  }
  holder with{make(), *on_};
  const auto before = reserved_bytes();
  for (int each = 0; each < 60; ++each) {
    with.take(400 * k_mib);
    with.give_last();
    with.take(320 << 10);
  }
  EXPECT_LT(reserved_bytes(), before + 1000 * k_mib) << "60 times 400 MiB before";
}

TEST_P(pool_remap, addresses_are_released_with_their_memory) {
  const auto play = [&] {
    holder with{make(), *on_};
    with.take_and_give_every_other(8, 4 * k_mib);
    with.take(30 * k_mib);
    with.from().trim(0);
  };
  play();
  const auto before = reserved_bytes();
  for (int each = 0; each < 40; ++each) {
    play();
  }
  EXPECT_LT(reserved_bytes(), before + 400 * k_mib) << "30 MiB at least were left in each";
}

TEST_P(pool_remap, an_address_without_memory_is_unknown_to_the_pool) {
  const auto from = make();
  auto* const block = expect_value(from->allocate(8 * k_mib, 0, *on_));
  EXPECT_TRUE(from->deallocate(block, 8 * k_mib, on_.get()));
  from->trim(0);
  EXPECT_EQ(process_page_map.find(block), nullptr);
  expect_failure(from->deallocate(block, 8 * k_mib, on_.get()), ISTHMUS_ERROR_INVALID_ARGUMENT,
                 "not allocated by this pool");
}

// Divided memory must become whole again. Otherwise random sizes held 1.8 times the live bytes, and
// ever more.
TEST_P(pool_remap, random_sizes_do_not_wear_it_down) {
  std::mt19937_64 random{3};
  const auto from = make({.limit_bytes = 900 * k_mib});
  std::vector<taken> live;
  std::size_t bytes = 0;
  std::size_t most = 0;
  const auto give = [&](std::size_t which) {
    std::swap(live[which], live.back());
    bytes -= live.back().nbytes;
    EXPECT_TRUE(from->deallocate(live.back().start, live.back().nbytes, on_.get()));
    live.pop_back();
  };
  for (int step = 0; step < 6000; ++step) {
    const auto nbytes = (std::size_t{320} << 10) << random() % 7;
    const auto odd = nbytes + random() % nbytes;
    while (bytes + odd > 400 * k_mib) {
      give(random() % live.size());
    }
    live.push_back({expect_value(from->allocate(odd, 0, *on_)), odd});
    bytes += odd;
    most = std::max(most, bytes);
  }
  EXPECT_LE(from->usage().held_bytes, most + most / (divides() ? 4 : 2));
  while (!live.empty()) {
    give(0);
  }
}

TEST_P(pool_remap, more_growth_than_there_is_is_only_a_wish) {
  for (const std::size_t growth :
       {std::size_t{128} << 20, std::size_t{1} << 50, std::size_t{1} << 60}) {
    holder with{make({.growth_bytes = growth, .limit_bytes = 64 * k_mib}), *on_};
    with.take(k_mib);
    EXPECT_LE(with.held(), 8 * k_mib);
    for (int each = 0; each < 30; ++each) {
      with.take(2 * k_mib);
    }
    EXPECT_LE(with.held(), 64 * k_mib);
  }
}

// Each thread alone would be served: three free ranges of 40 MiB each, and two threads that request
// 60 MiB each. Where chunks cannot be divided, some are partly in use.
TEST_P(pool_remap, threads_that_grow_at_once_take_nothing_from_one_another) {
  const std::size_t spare = (divides() ? 4 : 24) * k_mib;
  for (int round = 0; round < 20; ++round) {
    const auto from = make({.limit_bytes = 123 * k_mib + spare});
    std::vector<taken> pins;
    std::vector<taken> gone;
    for (int each = 0; each < 3; ++each) {
      gone.push_back({expect_value(from->allocate(40 * k_mib, 0, *on_)), 40 * k_mib});
      pins.push_back({expect_value(from->allocate(k_mib, 0, *on_)), k_mib});
    }
    const auto give = [&](const taken& each) {
      EXPECT_TRUE(from->deallocate(each.start, each.nbytes, on_.get()));
    };
    std::for_each(gone.begin(), gone.end(), give);
    const auto want = [&] {
      auto got = from->allocate(60 * k_mib, 0, *on_);
      EXPECT_TRUE(got) << got.failure().message();
      return got ? *got : nullptr;
    };
    void* others = nullptr;
    std::thread other{[&] { others = want(); }};
    auto* const mine = want();
    other.join();
    for (auto* each : {mine, others}) {
      if (each != nullptr) {
        give({each, 60 * k_mib});
      }
    }
    std::for_each(pins.begin(), pins.end(), give);
  }
}

TEST_P(pool_remap, threads_that_trim_at_once_leave_what_is_to_be_kept) {
  for (const bool remaps : {true, false}) {
    for (int round = 0; round < 20; ++round) {
      const auto from = make({.growth_bytes = 8 * k_mib, .remaps = remaps});
      {
        holder with{from, *on_};
        for (int each = 0; each < 16; ++each) {
          with.take(8 * k_mib);
        }
      }
      from->trim(SIZE_MAX);
      std::vector<std::thread> threads;
      for (int each = 0; each < 4; ++each) {
        threads.emplace_back([&] { from->trim(64 * k_mib); });
      }
      for (auto& each : threads) {
        each.join();
      }
      EXPECT_GE(from->usage().held_bytes, 56 * k_mib);
      EXPECT_LE(from->usage().held_bytes, 64 * k_mib);
    }
  }
}

// Blocks of all sizes, on two threads. Half of them are freed by the other thread.
TEST_P(pool_remap, blocks_never_overlap) {
  const auto from = make({.limit_bytes = 256 * k_mib}, ISTHMUS_KIND_HOST);
  std::mutex lock;
  std::vector<taken> between;
  std::atomic<int> served{0};
  const auto churn = [&](unsigned seed) {
    std::mt19937_64 random{seed};
    std::vector<taken> mine;
    const auto give = [&](const taken& gone) {
      const auto* first = static_cast<std::uint64_t*>(gone.start);
      EXPECT_EQ(first[0], reinterpret_cast<std::uintptr_t>(gone.start) ^ gone.nbytes);
      EXPECT_EQ(first[gone.nbytes / 8 - 1], first[0]);
      EXPECT_TRUE(from->deallocate(gone.start, gone.nbytes, on_.get()));
    };
    for (int step = 0; step < 1500; ++step) {
      const auto nbytes = std::size_t{4096} << random() % 14;
      if (auto got = from->allocate(nbytes, 0, *on_); got && random() % 16 != 0) {
        auto* words = static_cast<std::uint64_t*>(*got);
        words[0] = words[nbytes / 8 - 1] = reinterpret_cast<std::uintptr_t>(*got) ^ nbytes;
        ++served;
        mine.push_back({*got, nbytes});
      } else if (got) {
        EXPECT_TRUE(from->deallocate(*got, nbytes, on_.get()));
      }
      while (mine.size() > 24) {
        std::swap(mine.back(), mine[random() % mine.size()]);
        const std::lock_guard hold{lock};
        between.push_back(mine.back());
        mine.pop_back();
        std::swap(between.back(), between[random() % between.size()]);
        give(between.back());
        between.pop_back();
      }
    }
    for (const auto& each : mine) {
      give(each);
    }
  };
  std::thread other{churn, 1};
  churn(2);
  other.join();
  EXPECT_TRUE(between.empty());
  EXPECT_GT(served, 1000) << "or nothing was tested";
  from->trim(0);
  other = std::thread{[&] { from->trim(0); }};
  other.join();
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  const std::string options{info.param};
  if (options == "host" || options == "cuda") {
    return options;
  }
  return options.find("late") == std::string::npos ? "sim" : "late";
}
INSTANTIATE_TEST_SUITE_P(drivers, pool_remap,
                         testing::Values("host", "capacity=1GiB", "capacity=1GiB,effect=late",
                                         "cuda"),
                         name_of);

TEST(pool_remap_sim, a_device_that_is_full_in_pieces_serves_one_large_block) {
  const rig sim{"capacity=64MiB"};
  holder with{pool_on(*sim.queue, ISTHMUS_KIND_DEVICE, {.growth_bytes = 2 * k_mib}), *sim.queue};
  with.take_and_give_every_other(16, 2 * k_mib);
  with.take(32 * k_mib);
}

TEST(pool_remap_sim, one_without_it_does_not) {
  const rig sim{"capacity=64MiB,remap=0"};
  EXPECT_FALSE(sim.test_device->can(ISTHMUS_CAN_REMAP));
  holder with{pool_on(*sim.queue, ISTHMUS_KIND_DEVICE, {.initial_bytes = 64 * k_mib}), *sim.queue};
  with.take_and_give_every_other(16, 2 * k_mib);
  expect_failure(with.from().allocate(32 * k_mib, 0, *sim.queue), ISTHMUS_ERROR_OUT_OF_MEMORY);
}

// The driver reports nothing for addresses whose memory was moved away.
TEST(pool_remap_sim, a_hole_is_no_memory) {
  const rig sim{""};
  const auto from = pool_on(*sim.queue, ISTHMUS_KIND_SHARED, {});
  auto* const low = expect_value(from->allocate(8 * k_mib, 0, *sim.queue));
  auto* const high = expect_value(from->allocate(8 * k_mib, 0, *sim.queue));
  EXPECT_EQ(sim.test_context->query(high).kind, ISTHMUS_KIND_SHARED);
  EXPECT_TRUE(from->deallocate(high, 8 * k_mib, sim.queue.get()));
  EXPECT_GT(from->trim(0), 0U);
  EXPECT_EQ(sim.test_context->query(high).kind, ISTHMUS_KIND_UNKNOWN);
  const auto known = sim.test_context->query(static_cast<std::byte*>(low) + k_mib);
  EXPECT_EQ(known.kind, ISTHMUS_KIND_SHARED);
  EXPECT_LE(known.nbytes, 16 * k_mib);
  EXPECT_TRUE(from->deallocate(low, 8 * k_mib, sim.queue.get()));
}

// Neither a chunk that work still uses moves, nor one that pending work will write.
TEST(pool_remap_sim, nothing_moves_under_work) {
  const rig sim{"effect=late"};
  const auto second = expect_value(Queue::create(*sim.test_context, *sim.test_device));
  const auto from = pool_on(*sim.queue, ISTHMUS_KIND_DEVICE, {.growth_bytes = 2 * k_mib});
  const auto gate = make_ref<HostEvent>();
  const std::vector<Ref<Event>> after{gate};
  static_cast<void>(expect_value(sim.queue->fence(after)));
  FillPattern ones;
  ones.nbytes = 1;
  for (int each = 0; each < 8; ++each) {
    auto* block = expect_value(from->allocate(4 * k_mib, 0, *sim.queue));
    static_cast<void>(expect_value(sim.queue->fill(block, ones, 4 * k_mib, {})));
    EXPECT_TRUE(from->deallocate(block, 4 * k_mib, sim.queue.get()));
  }
  const auto moves = sim.calls("map");
  auto* large = expect_value(from->allocate(24 * k_mib, 0, *second));
  EXPECT_EQ(sim.calls("map"), moves + 1) << "addresses, and nothing moved";
  gate->finish({});
  EXPECT_TRUE(expect_value(sim.queue->pending())->wait({}));
  EXPECT_TRUE(from->deallocate(large, 24 * k_mib, second.get()));
}

// Each driver call fails in turn: the request is refused or served, and nothing leaks.
TEST(pool_remap_sim, any_call_may_fail) {
  for (std::uint64_t nth = 1;; ++nth) {
    rig sim{"capacity=96MiB"};
    std::uint64_t calls = 0;
    {
      holder with{pool_on(*sim.queue, ISTHMUS_KIND_DEVICE, {.growth_bytes = 2 * k_mib}),
                  *sim.queue};
      with.take_and_give_every_other(8, 3 * k_mib);
      const auto before = sim.calls("any");
      sim.configure("fail=any:" + std::to_string(nth));
      auto large = with.from().allocate(40 * k_mib, 0, *sim.queue);
      calls = sim.calls("any") - before;
      if (large) {
        EXPECT_TRUE(with.from().deallocate(*large, 40 * k_mib, sim.queue.get()));
      } else {
        EXPECT_STRNE(large.failure().message(), "");
        large = with.from().allocate(40 * k_mib, 0, *sim.queue);
        EXPECT_TRUE(large) << "the fault has passed: " << large.failure().message();
        EXPECT_TRUE(with.from().deallocate(*large, 40 * k_mib, sim.queue.get()));
      }
      EXPECT_EQ(expect_value(state_of_simulated_device(*sim.test_device)).device_bytes,
                with.held());
    }
    EXPECT_EQ(expect_value(state_of_simulated_device(*sim.test_device)).device_bytes, 0U) << nth;
    if (nth > calls) {
      EXPECT_GT(nth, 10U) << "it did move";
      break;
    }
  }
}

}  // namespace
}  // namespace isthmus::sim_test
