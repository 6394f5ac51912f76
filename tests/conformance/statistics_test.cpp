// SPDX-License-Identifier: Apache-2.0
// The statistics adaptor, and the scopes of threads.
#include <atomic>
#include <deque>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class counting : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(counting);

TEST_P(counting, counts_as_a_simple_model) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      im::statistics model;
      std::vector<std::pair<void*, std::size_t>> live;
      std::mt19937 random(7);
      for (int i = 0; i < 400; ++i) {
        if (live.empty() || random() % 5 < 3) {
          const std::size_t nbytes = 1 + random() % (random() % 8 == 0 ? k_mib : 5 * k_kib);
          live.emplace_back(counted.allocate(nbytes, 0, queue_), nbytes);
          ++model.current_count, ++model.total_count;
          model.current_bytes += nbytes, model.total_bytes += nbytes;
          model.peak_bytes = std::max(model.peak_bytes, model.current_bytes);
          model.peak_count = std::max(model.peak_count, model.current_count);
        } else {
          std::swap(live[random() % live.size()], live.back());
          counted.deallocate(live.back().first, live.back().second, 0, queue_);
          --model.current_count;
          model.current_bytes -= live.back().second;
          live.pop_back();
        }
        if (i % 100 == 99) {
          im::reset_statistics(counted);
          model.peak_bytes = model.current_bytes, model.peak_count = model.current_count;
          model.total_bytes = model.total_count = 0;
        }
        ASSERT_TRUE(counts(im::statistics_of(counted), model)) << "after " << i;
      }
      for (const auto& [pointer, nbytes] : live) counted.deallocate(pointer, nbytes, 0, queue_);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
      EXPECT_EQ(im::statistics_of(counted).current_count, 0u);
    }
  }
}

TEST_P(counting, counts_buffers_until_they_are_freed) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      {
        const im::buffer buffer(1000, kind, {.queue = queue_, .resource = counted});
        im::fill(buffer, 1.0f);
        EXPECT_TRUE(counts(im::statistics_of(counted), {1000, 1, 1000, 1, 1000, 1}));
        const im::buffer empty(0, kind, {.queue = queue_, .resource = counted});
        EXPECT_EQ(im::statistics_of(counted).total_count, 1u) << "nothing is allocated for it";
      }
      queue_.wait();
      EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
      EXPECT_TRUE(counts(im::statistics_of(counted), {0, 0, 1000, 1, 1000, 1}));
      if (!can(im::capability::wait_for_host)) continue;
      im::host_event gate;
      {
        const im::buffer buffer(500, kind, {.queue = queue_, .resource = counted});
        (void)im::fill_async(buffer, static_cast<unsigned char>(1), {.after = {gate}});
      }
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u) << "freed, with work on it to come";
      gate.complete();
      queue_.wait();
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
    }
  }
}

TEST_P(counting, counts_no_failure_and_no_misuse) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      EXPECT_THROW((void)counted.allocate(std::size_t{1} << 62, 0, queue_), im::out_of_memory);
      EXPECT_THROW((void)counted.allocate(10, 24, queue_), im::invalid_argument);
      EXPECT_TRUE(counts(im::statistics_of(counted), {}));
      auto* memory = static_cast<std::byte*>(counted.allocate(1000, 0, queue_));
      const im::statistics one{1000, 1, 1000, 1, 1000, 1};
      int local = 0;
      for (void* wrong : {static_cast<void*>(&local), static_cast<void*>(memory + 1)}) {
        EXPECT_THROW(counted.deallocate(wrong, 1000, 0, queue_), im::invalid_argument);
      }
      const im::resource other = im::resource::statistics(upstreams(kind)[0]);
      EXPECT_THROW(other.deallocate(memory, 1000, 0, queue_), im::invalid_argument);
      EXPECT_TRUE(counts(im::statistics_of(other), {}));
      EXPECT_TRUE(counts(im::statistics_of(counted), one));
      counted.deallocate(memory, 1000, 0, queue_);
      EXPECT_THROW(counted.deallocate(memory, 1000, 0, queue_), im::invalid_argument);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
      im::buffer buffer(1000, kind, {.queue = queue_, .resource = counted});
      EXPECT_THROW(counted.deallocate(buffer.pointer(), 1000, 0, queue_), im::invalid_argument);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 1000u);
    }
  }
}

TEST_P(counting, knows_blocks_that_operations_met_as_pointers) {
  for (im::kind kind : kinds()) {
    const im::resource counted = im::resource::statistics(upstreams(kind)[0]);
    void* block = counted.allocate(64 * k_kib, 0, queue_);
    const isthmus_endpoint_t there{nullptr, block, 0};
    const unsigned char zero = 0;
    im::detail::check(isthmus_fill(queue_.get(), &there, &zero, 1, 64 * k_kib, nullptr, nullptr));
    counted.deallocate(block, 64 * k_kib, 0, queue_);
    EXPECT_THROW(counted.deallocate(block, 64 * k_kib, 0, queue_), im::invalid_argument);
    EXPECT_EQ(im::statistics_of(counted).current_count, 0u);
  }
}

TEST_P(counting, counts_within_scopes) {
  const im::kind kind = kinds().front();
  for (const im::resource& upstream : upstreams(kind)) {
    const im::resource counted = im::resource::statistics(upstream);
    const im::resource other = im::resource::statistics(upstream);
    void* before = counted.allocate(100, 0, queue_);
    void* kept = nullptr;
    {
      const im::statistics_scope outer(counted);
      counted.deallocate(before, 100, 0, queue_);
      EXPECT_TRUE(counts(outer.read(), {})) << "it was not allocated here";
      void* mine = counted.allocate(200, 0, queue_);
      {
        const im::statistics_scope between(other);
        const im::statistics_scope inner(counted);
        kept = counted.allocate(300, 0, queue_);
        other.deallocate(other.allocate(1, 0, queue_), 1, 0, queue_);
        std::thread([&] { counted.deallocate(mine, 200, 0, queue_); }).join();
        std::thread([&] {
          counted.deallocate(counted.allocate(5000, 0, queue_), 5000, 0, queue_);
        }).join();
        EXPECT_TRUE(counts(inner.read(), {300, 1, 300, 1, 300, 1}));
        EXPECT_TRUE(counts(between.read(), {0, 0, 1, 1, 1, 1}));
      }
      EXPECT_TRUE(counts(outer.read(), {300, 1, 500, 2, 500, 2}));
    }
    void* after = counted.allocate(7, 0, queue_);
    counted.deallocate(kept, 300, 0, queue_);
    counted.deallocate(after, 7, 0, queue_);
    EXPECT_TRUE(counts(im::statistics_of(counted), {0, 0, 5300, 2, 5607, 5}));
  }
  EXPECT_THROW(im::statistics_scope(upstreams(kind)[0]), im::invalid_argument);
  EXPECT_THROW((void)im::statistics_of(upstreams(kind)[0]), im::invalid_argument);
  EXPECT_THROW(im::reset_statistics(upstreams(kind)[0]), im::invalid_argument);
}

TEST_P(counting, scopes_within_scopes_without_end) {
  const im::resource counted = im::resource::statistics(upstreams(kinds().front())[0]);
  isthmus_scope_t* innermost = nullptr;
  for (int i = 0; i < 500'000; ++i) {
    isthmus_scope_t* outer = innermost;
    im::detail::check(isthmus_scope_create(counted.get(), outer, &innermost));
    isthmus_scope_release(outer);
  }
  isthmus_scope_release(innermost);
}

TEST_P(counting, counts_no_less_than_nothing) {
  for (im::kind kind : kinds()) {
    const im::resource pool = upstreams(kind)[0];
    const im::resource counted = im::resource::statistics(pool);
    const im::resource limited = im::resource::limit(pool, 1000);
    void* blocks[2] = {pool.allocate(500, 0, queue_), pool.allocate(500, 0, queue_)};
    // The pool accepts its own block through an adaptor that did not allocate it.
    counted.deallocate(blocks[0], 500, 0, queue_);
    limited.deallocate(blocks[1], 500, 0, queue_);
    EXPECT_TRUE(counts(im::statistics_of(counted), {}));
    EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u);
    limited.deallocate(limited.allocate(1000, 0, queue_), 1000, 0, queue_);
    EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u);
  }
}

TEST_P(counting, counts_no_peak_that_never_was) {
  for (im::kind kind : kinds()) {
    const im::resource counted =
        im::resource::statistics(im::resource::limit(upstreams(kind)[0], 1000));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 3000; ++round) {
          try {
            counted.deallocate(counted.allocate(1000, 0, queue_), 1000, 0, queue_);
          } catch (const im::out_of_memory&) {
          }
        }
      });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(im::statistics_of(counted).peak_count, 1u);
    EXPECT_EQ(im::statistics_of(counted).peak_bytes, 1000u);
    EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
  }
}

TEST_P(counting, resets_among_threads) {
  const im::kind kind = kinds().front();
  const im::resource counted = im::resource::statistics(upstreams(kind)[0]);
  constexpr std::size_t k_threads = 3, k_blocks = 1000;
  std::atomic<std::size_t> left{k_threads};
  std::vector<std::thread> threads;
  std::vector<std::vector<void*>> live(k_threads);
  for (std::size_t i = 0; i < k_threads; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t block = 0; block < k_blocks; ++block) {
        live[i].push_back(counted.allocate(100, 0, queue_));
        counted.deallocate(counted.allocate(70, 0, queue_), 70, 0, queue_);
      }
      --left;
    });
  }
  while (left != 0) {
    im::reset_statistics(counted);
    const im::statistics now = im::statistics_of(counted);
    EXPECT_GE(now.peak_bytes, now.current_bytes);
    EXPECT_GE(now.peak_count, now.current_count);
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(im::statistics_of(counted).current_bytes, 100 * k_threads * k_blocks);
  im::reset_statistics(counted);
  EXPECT_TRUE(
      counts(im::statistics_of(counted), {100 * k_threads * k_blocks, k_threads * k_blocks,
                                          100 * k_threads * k_blocks, k_threads * k_blocks, 0, 0}));
  for (const auto& each : live) {
    for (void* block : each) counted.deallocate(block, 100, 0, queue_);
  }
}

TEST_P(counting, counts_exactly_with_threads) {
  for (im::kind kind : kinds()) {
    const im::resource counted = im::resource::statistics(upstreams(kind)[0]);
    constexpr int k_threads = 4, k_rounds = 2000;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < k_threads; ++seed) {
      threads.emplace_back([&, seed] {
        const im::statistics_scope mine(counted);
        std::mt19937 random(seed);
        std::deque<std::pair<void*, std::size_t>> live;
        std::uint64_t total = 0;
        for (int i = 0; i < k_rounds; ++i) {
          const std::size_t nbytes = 1 + random() % (8 * k_kib);
          total += nbytes;
          live.emplace_back(counted.allocate(nbytes, 0, queue_), nbytes);
          if (live.size() < 10) continue;
          counted.deallocate(live.front().first, live.front().second, 0, queue_);
          live.pop_front();
        }
        EXPECT_EQ(mine.read().peak_count, 10u);
        EXPECT_EQ(mine.read().total_bytes, total);
        for (const auto& [pointer, nbytes] : live) {
          counted.deallocate(pointer, nbytes, 0, queue_);
        }
        EXPECT_EQ(mine.read().current_bytes, 0u);
      });
    }
    for (std::thread& each : threads) each.join();
    const im::statistics all = im::statistics_of(counted);
    EXPECT_EQ(all.current_bytes, 0u);
    EXPECT_EQ(all.current_count, 0u);
    EXPECT_EQ(all.total_count, std::uint64_t{k_threads} * k_rounds);
    EXPECT_GE(all.peak_count, 10u);
    EXPECT_LE(all.peak_count, 10u * k_threads);
  }
}

}  // namespace
