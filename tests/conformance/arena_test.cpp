// SPDX-License-Identifier: Apache-2.0
// The arena resource: blocks of any size from arenas that threads do not share.
#include <mutex>
#include <set>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class arenas : public on_upstreams {
 protected:
  // Whether `arena` returns all of its memory to `counted`, its upstream.
  static bool goes_back(const im::resource& arena, const im::resource& counted) {
    return eventually([&] {
      (void)arena.trim();
      return im::statistics_of(counted).current_count == 0;
    });
  }
};
INSTANTIATE_ON_BACKENDS(arenas);

TEST_P(arenas, cut_superblocks_into_blocks) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      const im::resource arena = im::resource::arena(counted);
      std::vector<std::pair<std::byte*, std::size_t>> all;
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t nbytes = 1 + i * 37 % 3000;
        const std::size_t alignment = i % 5 == 0 ? 1024 : 0;
        auto* const made = static_cast<std::byte*>(arena.allocate(nbytes, alignment, queue_));
        if (alignment != 0) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made) % alignment, 0u);
        }
        all.emplace_back(made, nbytes);
      }
      EXPECT_EQ(im::statistics_of(counted).current_count, 1u);
      std::sort(all.begin(), all.end());
      for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_GE(all[i].first, all[i - 1].first + all[i - 1].second) << "no two overlap";
      }
      (void)arena.trim();
      EXPECT_EQ(im::statistics_of(counted).current_count, 1u) << "in use";
      for (const auto& [made, nbytes] : all) arena.deallocate(made, nbytes, 0, queue_);
      void* const large = arena.allocate(k_mib, 0, queue_);
      EXPECT_EQ(large, all.front().first) << "joined to one again";
      void* const larger = arena.allocate(3 * k_mib, 0, queue_);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 4 * k_mib) << "one of its own size";
      arena.deallocate(large, k_mib, 0, queue_);
      arena.deallocate(larger, 3 * k_mib, 0, queue_);
      queue_.wait();
      EXPECT_TRUE(goes_back(arena, counted));
    }
  }
}

TEST_P(arenas, hold_what_was_put) {
  for (im::kind kind : kinds()) {
    const im::resource arena = im::resource::arena(upstreams(kind)[0]);
    std::vector<im::buffer> all;
    std::vector<bytes> wanted;
    for (unsigned i = 0; i < 40; ++i) {
      wanted.push_back(noise(1 + i * 531 % 9000, i));
      all.emplace_back(wanted.back().size(), kind,
                       im::buffer_options{.queue = queue_, .resource = arena});
      write(all.back(), wanted.back());
    }
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same(read(all[i]), wanted[i]));
  }
}

TEST_P(arenas, fit_best) {
  const im::resource arena = im::resource::arena(upstreams(kinds().front())[0]);
  std::vector<void*> all;
  for (const std::size_t nbytes : {8192u, 4096u, 8192u, 4096u, 16384u, 4096u}) {
    all.push_back(arena.allocate(nbytes, 0, queue_));
  }
  arena.deallocate(all[4], 16384, 0, queue_);
  arena.deallocate(all[2], 8192, 0, queue_);
  arena.deallocate(all[0], 8192, 0, queue_);
  EXPECT_EQ(arena.allocate(8000, 0, queue_), all[0]) << "of equals the first";
  EXPECT_EQ(arena.allocate(8000, 0, queue_), all[2]);
  EXPECT_EQ(arena.allocate(16000, 0, queue_), all[4]);
  for (std::size_t i = 0; i < all.size(); ++i) arena.deallocate(all[i], 1, 0, queue_);
}

TEST_P(arenas, refuse_what_is_no_live_block) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource arena = im::resource::arena(upstream);
    auto* const block = static_cast<std::byte*>(arena.allocate(1000, 0, queue_));
    int local = 0;
    EXPECT_THROW(arena.deallocate(&local, 4, 0, queue_), im::invalid_argument);
    EXPECT_THROW(arena.deallocate(block + 1, 1000, 0, queue_), im::invalid_argument);
    EXPECT_THROW(arena.deallocate(block + k_mib, 1000, 0, queue_), im::invalid_argument);
    arena.deallocate(block, 1000, 0, queue_);
    EXPECT_THROW(arena.deallocate(block, 1000, 0, queue_), im::invalid_argument);
    const im::resource other = im::resource::arena(upstream);
    void* const theirs = other.allocate(1, 0, queue_);
    EXPECT_THROW(arena.deallocate(theirs, 1, 0, queue_), im::invalid_argument);
    other.deallocate(theirs, 1, 0, queue_);
  }
}

TEST_P(arenas, keep_the_order_of_queues) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource counted = im::resource::statistics(upstream);
    const im::resource arena = im::resource::arena(counted, k_mib);
    const im::queue one(queue_.context(), device_);
    const im::queue other(queue_.context(), device_);
    void* const first = arena.allocate(k_mib, 0, one);
    im::host_event late;
    (void)one.fence({late});
    arena.deallocate(first, k_mib, 0, one);
    EXPECT_TRUE(throws(im::status::out_of_memory, {"1 MiB", "limit"}, [&] {
      (void)arena.allocate(1, 0, other);
    })) << "work of the first queue runs";
    EXPECT_EQ(arena.allocate(k_mib, 0, one), first) << "behind its own work";
    arena.deallocate(first, k_mib, 0, one);
    late.complete();
    one.wait();
    EXPECT_TRUE(eventually([&] {
      try {
        arena.deallocate(arena.allocate(1, 0, other), 1, 0, other);
        return true;
      } catch (const im::out_of_memory&) {
        return false;
      }
    })) << "gathered from the other's arena";
    EXPECT_TRUE(goes_back(arena, counted));
  }
}

TEST_P(arenas, outlive_their_handle_while_work_runs) {
  for (const im::resource& upstream : upstreams(kinds().front())) {
    const im::resource counted = im::resource::statistics(upstream);
    im::host_event late;
    {
      const im::resource arena = im::resource::arena(counted);
      void* const block = arena.allocate(4096, 0, queue_);
      (void)queue_.fence({late});
      arena.deallocate(block, 4096, 0, queue_);
    }
    EXPECT_EQ(im::statistics_of(counted).current_count, 1u);
    late.complete();
    queue_.wait();
    EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
  }
}

// A custom allocator that does not report how much memory it holds.
struct silent {
  im::resource under;

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    return under.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    under.deallocate(pointer, nbytes, 0, on);
  }
};

TEST_P(arenas, are_trimmed_over_upstreams_that_report_no_usage) {
  const im::kind kind = kinds().front();
  const im::resource counted = im::resource::statistics(upstreams(kind)[0]);
  const im::resource mute = im::resource::custom(queue_.context(), kind, silent{counted}, device_);
  for (const im::resource& of : {im::resource::arena(mute), im::resource::fixed_size(mute, 100)}) {
    of.deallocate(of.allocate(100, 0, queue_), 100, 0, queue_);
    queue_.wait();
    EXPECT_TRUE(goes_back(of, counted));
  }
}

TEST_P(arenas, continue_with_little_memory) {
  const im::resource limited = im::resource::limit(upstreams(kinds().front())[0], 100 * k_kib);
  const im::resource arena = im::resource::arena(limited);
  void* const first = arena.allocate(60 * k_kib, 0, queue_);
  EXPECT_THROW((void)arena.allocate(60 * k_kib, 0, queue_), im::out_of_memory);
  void* const second = arena.allocate(30 * k_kib, 0, queue_);
  arena.deallocate(first, 60 * k_kib, 0, queue_);
  EXPECT_EQ(arena.allocate(50 * k_kib, 0, queue_), first);
  arena.deallocate(second, 30 * k_kib, 0, queue_);
  arena.deallocate(first, 50 * k_kib, 0, queue_);
}

TEST_P(arenas, threads) {
  const im::resource counted = im::resource::statistics(upstreams(kinds().front())[0]);
  const im::resource arena = im::resource::arena(counted);
  const im::queue other(queue_.context(), device_);
  std::mutex lock;
  std::set<void*> out;
  std::vector<std::pair<void*, std::size_t>> shared;  // any thread may free these
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      const im::queue& on = random() % 2 == 0 ? queue_ : other;
      const std::size_t nbytes = 1 + random() % (i % 50 == 0 ? k_mib : 4 * k_kib);
      std::pair<void*, std::size_t> gone{};
      if (random() % 2 == 0) {
        void* const made = arena.allocate(nbytes, 0, on);
        const std::lock_guard hold(lock);
        EXPECT_TRUE(out.insert(made).second) << "given twice";
        shared.emplace_back(made, nbytes);
      } else if (const std::lock_guard hold(lock); !shared.empty()) {
        std::swap(shared[random() % shared.size()], shared.back());
        gone = shared.back();
        shared.pop_back();
        out.erase(gone.first);
      }
      if (gone.first != nullptr) arena.deallocate(gone.first, gone.second, 0, on);
      if (i % 500 == 0) (void)arena.trim();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  for (const auto& [left, nbytes] : shared) arena.deallocate(left, nbytes, 0, queue_);
  EXPECT_TRUE(goes_back(arena, counted));
}

TEST_P(arenas, refuse_bad_arguments) {
  const im::resource upstream = upstreams(kinds().front())[0];
  isthmus_resource_t* made = nullptr;
  EXPECT_EQ(isthmus_resource_arena(nullptr, 0, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_arena(upstream.get(), 0, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  const im::resource arena = im::resource::arena(upstream);
  EXPECT_THROW((void)arena.allocate(10, 24, queue_), im::invalid_argument);
  EXPECT_THROW((void)arena.allocate(SIZE_MAX, 0, queue_), im::error);
  EXPECT_THROW((void)arena.allocate(SIZE_MAX / 2, 0, queue_), im::error);
  EXPECT_THROW((void)im::resource::arena(upstream, 1).allocate(10, 0, queue_), im::out_of_memory);
  if (kinds().size() < 2) return;
  const im::resource mixed = im::resource::fallback(upstream, upstreams(kinds()[1])[0]);
  EXPECT_THROW((void)im::resource::arena(mixed), im::unsupported);
}

}  // namespace
