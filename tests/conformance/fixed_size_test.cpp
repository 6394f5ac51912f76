// SPDX-License-Identifier: Apache-2.0
// The resource that allocates blocks of one size.
#include <mutex>
#include <set>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class fixed_size : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(fixed_size);

TEST_P(fixed_size, cuts_slabs_into_blocks) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      const im::resource fixed = im::resource::fixed_size(counted, 1000, 10);
      std::set<std::byte*> all;
      for (int i = 0; i < 30; ++i) {
        all.insert(static_cast<std::byte*>(
            fixed.allocate(i % 2 == 0 ? 1000 : 1, i % 3 == 0 ? 64 : 0, queue_)));
      }
      ASSERT_EQ(all.size(), 30u);
      EXPECT_EQ(im::statistics_of(counted).current_count, 3u);
      const std::byte* end = nullptr;
      for (std::byte* each : all) {
        EXPECT_GE(each, end) << "no two overlap";
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each) % 64, 0u);
        end = each + 1000;
      }
      EXPECT_TRUE(throws(im::status::invalid_argument, {"1001", "1000", "binning"},
                         [&] { (void)fixed.allocate(1001, 0, queue_); }));
      EXPECT_THROW((void)fixed.allocate(SIZE_MAX, 0, queue_), im::invalid_argument);
      EXPECT_THROW((void)fixed.allocate(10, 8192, queue_), im::error);
      EXPECT_THROW((void)fixed.allocate(10, 24, queue_), im::invalid_argument);
      (void)fixed.trim();
      EXPECT_EQ(im::statistics_of(counted).current_count, 3u) << "in use";
      for (std::byte* each : all) fixed.deallocate(each, 1000, 0, queue_);
      void* const again = fixed.allocate(1000, 0, queue_);
      EXPECT_TRUE(all.contains(static_cast<std::byte*>(again)));
      fixed.deallocate(again, 1000, 0, queue_);
      queue_.wait();
      EXPECT_TRUE(eventually([&] {
        (void)fixed.trim();
        return im::statistics_of(counted).current_count == 0;
      }));
    }
  }
}

TEST_P(fixed_size, refuses_what_is_no_live_block) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource fixed = im::resource::fixed_size(upstream, 256, 16);
    auto* const block = static_cast<std::byte*>(fixed.allocate(256, 0, queue_));
    int local = 0;
    EXPECT_THROW(fixed.deallocate(&local, 4, 0, queue_), im::invalid_argument);
    EXPECT_THROW(fixed.deallocate(block + 1, 256, 0, queue_), im::invalid_argument);
    EXPECT_THROW(fixed.deallocate(block + 64, 256, 0, queue_), im::invalid_argument);
    fixed.deallocate(block, 256, 0, queue_);
    EXPECT_THROW(fixed.deallocate(block, 256, 0, queue_), im::invalid_argument);
    const im::resource other = im::resource::fixed_size(upstream, 256, 16);
    void* const theirs = other.allocate(1, 0, queue_);
    EXPECT_THROW(fixed.deallocate(theirs, 256, 0, queue_), im::invalid_argument);
    other.deallocate(theirs, 256, 0, queue_);
  }
}

// RMM's fixed-size resource gave a third queue memory that work on another queue still used.
TEST_P(fixed_size, keeps_the_order_of_queues) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource fixed = im::resource::fixed_size(upstream, 4096, 1);
    const im::queue one(queue_.context(), device_);
    const im::queue other(queue_.context(), device_);
    void* const first = fixed.allocate(4096, 0, one);
    void* const second = fixed.allocate(4096, 0, one);
    im::host_event late;
    (void)one.fence({late});
    fixed.deallocate(first, 4096, 0, one);
    void* const elsewhere = fixed.allocate(4096, 0, other);
    EXPECT_NE(elsewhere, first) << "work of the first queue runs";
    EXPECT_EQ(fixed.allocate(4096, 0, one), first) << "behind its own work";
    fixed.deallocate(first, 4096, 0, one);
    (void)fixed.trim();
    fixed.deallocate(second, 4096, 0, one);
    fixed.deallocate(elsewhere, 4096, 0, other);
    late.complete();
    one.wait();
    std::set<void*> reused;
    EXPECT_TRUE(eventually([&] {
      std::vector<void*> all;
      for (int i = 0; i < 3; ++i) all.push_back(fixed.allocate(1, 0, other));
      reused = {all.begin(), all.end()};
      for (void* each : all) fixed.deallocate(each, 1, 0, other);
      return reused.contains(first) && reused.contains(second);
    }));
  }
}

TEST_P(fixed_size, outlives_its_handle_while_work_runs) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource counted = im::resource::statistics(upstream);
    im::host_event late;
    {
      const im::resource fixed = im::resource::fixed_size(counted, 4096, 4);
      void* const block = fixed.allocate(4096, 0, queue_);
      (void)queue_.fence({late});
      fixed.deallocate(block, 4096, 0, queue_);
    }
    EXPECT_EQ(im::statistics_of(counted).current_count, 1u);
    late.complete();
    queue_.wait();
    EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
  }
}

TEST_P(fixed_size, continues_after_a_failure) {
  const im::resource upstream = im::resource::limit(upstreams(kinds().front())[0], 10 * k_kib);
  const im::resource fixed = im::resource::fixed_size(upstream, 4096, 2);
  void* const first = fixed.allocate(1, 0, queue_);
  void* const second = fixed.allocate(1, 0, queue_);
  EXPECT_THROW((void)fixed.allocate(1, 0, queue_), im::out_of_memory);
  fixed.deallocate(second, 1, 0, queue_);
  EXPECT_EQ(fixed.allocate(1, 0, queue_), second);
  fixed.deallocate(second, 1, 0, queue_);
  fixed.deallocate(first, 1, 0, queue_);
}

TEST_P(fixed_size, threads) {
  const im::resource counted = im::resource::statistics(upstreams(kinds().front())[0]);
  const im::resource fixed = im::resource::fixed_size(counted, 200, 16);
  const im::queue other(queue_.context(), device_);
  std::mutex lock;
  std::set<void*> out;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<void*> mine;
    for (int i = 0; i < 2000; ++i) {
      const im::queue& on = random() % 2 == 0 ? queue_ : other;
      if (mine.size() < 20 && random() % 2 == 0) {
        mine.push_back(fixed.allocate(200, 0, on));
        const std::lock_guard hold(lock);
        EXPECT_TRUE(out.insert(mine.back()).second) << "given twice";
      } else if (!mine.empty()) {
        {
          const std::lock_guard hold(lock);
          out.erase(mine.back());
        }
        fixed.deallocate(mine.back(), 200, 0, on);
        mine.pop_back();
      }
      if (i % 500 == 0) (void)fixed.trim();
    }
    const std::lock_guard hold(lock);
    for (void* each : mine) {
      out.erase(each);
      fixed.deallocate(each, 200, 0, queue_);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  EXPECT_TRUE(eventually([&] {
    (void)fixed.trim();
    return im::statistics_of(counted).current_count == 0;
  }));
}

TEST_P(fixed_size, refuses_bad_arguments) {
  const im::resource upstream = upstreams(kinds().front())[0];
  isthmus_resource_t* made = nullptr;
  EXPECT_EQ(isthmus_resource_fixed_size(nullptr, 1, 1, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_fixed_size(upstream.get(), 1, 1, nullptr),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_THROW((void)im::resource::fixed_size(upstream, 0), im::invalid_argument);
  EXPECT_THROW((void)im::resource::fixed_size(upstream, SIZE_MAX), im::invalid_argument);
  EXPECT_THROW((void)im::resource::fixed_size(upstream, k_mib, SIZE_MAX / k_kib),
               im::invalid_argument);
  EXPECT_THROW((void)im::resource::fixed_size(upstream, 2, SIZE_MAX), im::invalid_argument);
  if (kinds().size() < 2) return;
  const im::resource mixed = im::resource::fallback(upstream, upstreams(kinds()[1])[0]);
  EXPECT_THROW((void)im::resource::fixed_size(mixed, 100), im::unsupported);
}

}  // namespace
