// SPDX-License-Identifier: Apache-2.0
// The monotonic resource, which frees all of its memory together.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class monotonic : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(monotonic);

TEST_P(monotonic, cuts_blocks_off_chunks_that_double) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      const im::resource cut = im::resource::monotonic(counted, 4 * k_kib);
      EXPECT_EQ(im::statistics_of(counted).total_count, 0u) << "none before it is needed";
      std::map<std::byte*, std::size_t> all;
      for (int i = 0; i < 200; ++i) {
        const std::size_t nbytes = 1 + static_cast<std::size_t>(i) * 7 % 300;
        auto* const made = static_cast<std::byte*>(cut.allocate(nbytes, 64, queue_));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made) % 64, 0u);
        all[made] = nbytes;
      }
      ASSERT_EQ(all.size(), 200u);
      const std::byte* end = nullptr;
      for (const auto& [begin, nbytes] : all) {
        EXPECT_GE(begin, end) << "no two overlap";
        end = begin + nbytes;
      }
      EXPECT_LE(im::statistics_of(counted).current_count, 5u);
      (void)cut.allocate(k_mib, 0, queue_);
      EXPECT_GE(im::statistics_of(counted).current_bytes, k_mib);
      im::release_monotonic(cut);
      EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
      (void)cut.allocate(1, 0, queue_);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 4 * k_kib) << "as at first";
    }
  }
}

TEST_P(monotonic, frees_nothing_but_checks_its_arguments) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource cut = im::resource::monotonic(upstream);
    auto* const first = static_cast<std::byte*>(cut.allocate(100, 0, queue_));
    cut.deallocate(first, 100, 0, queue_);
    EXPECT_NE(cut.allocate(100, 0, queue_), first);
    int local = 0;
    EXPECT_THROW(cut.deallocate(&local, 4, 0, queue_), im::invalid_argument);
    EXPECT_THROW(cut.deallocate(first + 10'000, 4, 0, queue_), im::invalid_argument)
        << "which nobody was given";
    im::release_monotonic(cut);
    EXPECT_THROW(cut.deallocate(first, 100, 0, queue_), im::invalid_argument);
  }
}

TEST_P(monotonic, continues_after_a_failure) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource cut =
        im::resource::monotonic(im::resource::limit(upstream, 10 * k_kib), 4 * k_kib);
    void* const first = cut.allocate(1000, 0, queue_);
    EXPECT_THROW((void)cut.allocate(20 * k_kib, 0, queue_), im::out_of_memory);
    EXPECT_THROW((void)cut.allocate(SIZE_MAX, 0, queue_), im::out_of_memory);
    EXPECT_THROW((void)cut.allocate(10, 24, queue_), im::invalid_argument);
    void* const second = cut.allocate(1000, 0, queue_);
    EXPECT_NE(first, second);
    EXPECT_LT(static_cast<std::byte*>(second) - static_cast<std::byte*>(first), 4096);
    EXPECT_THROW((void)cut.allocate(8 * k_kib, 0, queue_), im::out_of_memory);
    im::release_monotonic(cut);
    EXPECT_NE(cut.allocate(8 * k_kib, 0, queue_), nullptr);
  }
}

// Forwards to another resource and counts the blocks that were not freed.
struct counted_source {
  im::resource upstream;
  std::shared_ptr<std::atomic<int>> chunks = std::make_shared<std::atomic<int>>(0);

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& queue) {
    void* const chunk = upstream.allocate(nbytes, alignment, queue);
    ++*chunks;
    return chunk;
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& queue) noexcept {
    --*chunks;
    upstream.deallocate(pointer, nbytes, 0, queue);
  }
};

TEST_P(monotonic, chunks_return_after_the_work_of_every_queue) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const counted_source source{upstream};
      const im::resource cut =
          im::resource::monotonic(im::resource::custom(queue_.context(), kind, source));
      const im::queue one(queue_.context(), device_);
      const im::queue other(queue_.context(), device_);
      void* const block = cut.allocate(100, 0, one);
      cut.deallocate(block, 100, 0, other);
      im::host_event early;
      im::host_event late;
      (void)one.fence({early});
      (void)other.fence({late});
      im::release_monotonic(cut);
      EXPECT_EQ(*source.chunks, 1);
      early.complete();
      one.wait();
      EXPECT_EQ(*source.chunks, 1) << "work of the other queue runs";
      late.complete();
      other.wait();
      EXPECT_TRUE(eventually([&] { return *source.chunks == 0; }));
    }
  }
}

TEST_P(monotonic, buffers_keep_their_chunk) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      im::resource cut = im::resource::monotonic(counted);
      {
        const im::buffer one(1000, kind, {.queue = queue_, .resource = cut});
        const im::buffer other(1000, kind, {.queue = queue_, .resource = cut});
        im::fill(one, static_cast<unsigned char>(1));
        im::fill(other, static_cast<unsigned char>(2));
        im::release_monotonic(cut);
        cut = {};
        im::copy(other, one);
        std::vector<unsigned char> seen(1000);
        im::copy(std::span(seen), other);
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 1000);
        EXPECT_EQ(im::statistics_of(counted).current_count, 1u);
      }
      EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
    }
  }
}

TEST_P(monotonic, threads) {
  const im::resource counted = im::resource::statistics(upstreams(kinds().front())[0]);
  const im::resource cut = im::resource::monotonic(counted, k_kib);
  std::mutex lock;
  std::map<std::byte*, std::size_t> all;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 1000; ++i) {
      const std::size_t nbytes = 1 + random() % 500;
      auto* const made = static_cast<std::byte*>(cut.allocate(nbytes, 0, queue_));
      const std::lock_guard hold(lock);
      all[made] = nbytes;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  ASSERT_EQ(all.size(), 3000u);
  const std::byte* end = nullptr;
  for (const auto& [begin, nbytes] : all) {
    ASSERT_GE(begin, end);
    end = begin + nbytes;
  }
  for (const auto& [begin, nbytes] : all) cut.deallocate(begin, nbytes, 0, queue_);
  im::release_monotonic(cut);
  EXPECT_EQ(im::statistics_of(counted).current_count, 0u);
}

TEST_P(monotonic, refuses_bad_arguments) {
  const im::resource upstream = upstreams(kinds().front())[0];
  isthmus_resource_t* made = nullptr;
  EXPECT_EQ(isthmus_resource_monotonic(nullptr, 0, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_monotonic(upstream.get(), 0, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_monotonic_release(nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_THROW(im::release_monotonic(upstream), im::invalid_argument);
  if (kinds().size() < 2) return;
  const im::resource mixed = im::resource::fallback(upstream, upstreams(kinds()[1])[0]);
  EXPECT_THROW((void)im::resource::monotonic(mixed), im::unsupported);
}

}  // namespace
