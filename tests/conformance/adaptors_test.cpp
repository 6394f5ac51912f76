// Resources over others: what they count, refuse, ask elsewhere, and where memory goes back to.
#include <deque>
#include <numeric>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_kib = 1024;
constexpr std::size_t k_mib = k_kib * k_kib;

class adaptors : public on_backend {
 protected:
  // What others stand on: with frees in the queue's order, and without.
  std::vector<im::resource> upstreams(im::kind kind) const {
    const im::context home = queue_.context();
    return {im::resource::pool(home, kind, {}, device_),
            im::resource::provider(home, kind, device_)};
  }
};
INSTANTIATE_ON_BACKENDS(adaptors);

// Frees of buffers may have to wait for work that has just ended.
template <class Holds>
bool patiently(Holds holds) {
  const auto patience = std::chrono::steady_clock::now() + 10s;
  while (!holds() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(1ms);
  return holds();
}

::testing::AssertionResult counts(const im::statistics& got, const im::statistics& wanted) {
  if (got == wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "current " << got.current_count << "x" << got.current_bytes << ", peak "
         << got.peak_count << "x" << got.peak_bytes << ", total " << got.total_count << "x"
         << got.total_bytes << "; wanted " << wanted.current_count << "x" << wanted.current_bytes
         << ", " << wanted.peak_count << "x" << wanted.peak_bytes << ", " << wanted.total_count
         << "x" << wanted.total_bytes;
}

TEST_P(adaptors, count_as_a_simple_model) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::count(upstream);
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

TEST_P(adaptors, count_buffers_till_their_memory_goes_back) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::count(upstream);
      {
        const im::buffer buffer(1000, kind, {.on = queue_, .from = counted});
        im::fill(buffer, 1.0f);
        EXPECT_TRUE(counts(im::statistics_of(counted), {1000, 1, 1000, 1, 1000, 1}));
        const im::buffer empty(0, kind, {.on = queue_, .from = counted});
        EXPECT_EQ(im::statistics_of(counted).total_count, 1u) << "nothing is allocated for it";
      }
      queue_.wait();
      EXPECT_TRUE(patiently([&] { return im::statistics_of(counted).current_count == 0; }));
      EXPECT_TRUE(counts(im::statistics_of(counted), {0, 0, 1000, 1, 1000, 1}));
      if (!can(im::capability::wait_for_host)) continue;
      im::host_event gate;
      {
        const im::buffer buffer(500, kind, {.on = queue_, .from = counted});
        (void)im::fill_async(buffer, static_cast<unsigned char>(1), {.after = {gate}});
      }
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 500u) << "work on it is still to come";
      gate.complete();
      queue_.wait();
      EXPECT_TRUE(patiently([&] { return im::statistics_of(counted).current_bytes == 0; }));
    }
  }
}

TEST_P(adaptors, count_no_failure_and_no_misuse) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::count(upstream);
      EXPECT_THROW((void)counted.allocate(std::size_t{1} << 62, 0, queue_), im::out_of_memory);
      EXPECT_THROW((void)counted.allocate(10, 24, queue_), im::invalid_argument);
      EXPECT_TRUE(counts(im::statistics_of(counted), {}));
      auto* memory = static_cast<std::byte*>(counted.allocate(1000, 0, queue_));
      const im::statistics one{1000, 1, 1000, 1, 1000, 1};
      int local = 0;
      for (void* wrong : {static_cast<void*>(&local), static_cast<void*>(memory + 1)}) {
        EXPECT_THROW(counted.deallocate(wrong, 1000, 0, queue_), im::invalid_argument);
      }
      const im::resource other = im::count(upstreams(kind)[0]);
      EXPECT_THROW(other.deallocate(memory, 1000, 0, queue_), im::invalid_argument);
      EXPECT_TRUE(counts(im::statistics_of(other), {}));
      EXPECT_TRUE(counts(im::statistics_of(counted), one));
      counted.deallocate(memory, 1000, 0, queue_);
      EXPECT_THROW(counted.deallocate(memory, 1000, 0, queue_), im::invalid_argument);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
      im::buffer buffer(1000, kind, {.on = queue_, .from = counted});
      EXPECT_THROW(counted.deallocate(buffer.pointer(), 1000, 0, queue_), im::invalid_argument);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 1000u);
    }
  }
}

TEST_P(adaptors, know_blocks_that_operations_met_as_pointers) {
  for (im::kind kind : kinds()) {
    const im::resource counted = im::count(upstreams(kind)[0]);
    void* block = counted.allocate(64 * k_kib, 0, queue_);
    const isthmus_place_t there{nullptr, block, 0};
    const unsigned char zero = 0;
    im::detail::check(isthmus_fill(queue_.get(), &there, &zero, 1, 64 * k_kib, nullptr, nullptr));
    counted.deallocate(block, 64 * k_kib, 0, queue_);
    EXPECT_THROW(counted.deallocate(block, 64 * k_kib, 0, queue_), im::invalid_argument);
    EXPECT_EQ(im::statistics_of(counted).current_count, 0u);
  }
}

TEST_P(adaptors, count_within_scopes) {
  const im::kind kind = kinds().front();
  for (const im::resource& upstream : upstreams(kind)) {
    const im::resource counted = im::count(upstream);
    const im::resource other = im::count(upstream);
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

TEST_P(adaptors, count_exactly_with_threads) {
  for (im::kind kind : kinds()) {
    const im::resource counted = im::count(upstreams(kind)[0]);
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

TEST_P(adaptors, limit_what_is_live) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource limited = im::limit(upstream, 10'000);
      void* first = limited.allocate(6000, 0, queue_);
      EXPECT_TRUE(throws(im::status::out_of_memory, {"4001", "6000", "10000"},
                         [&] { (void)limited.allocate(4001, 0, queue_); }));
      void* second = limited.allocate(4000, 0, queue_);
      EXPECT_EQ(im::limit_of(limited).in_use_bytes, 10'000u);
      EXPECT_EQ(im::limit_of(limited).limit_bytes, 10'000u);
      EXPECT_THROW((void)limited.allocate(1, 0, queue_), im::out_of_memory);
      EXPECT_THROW((void)limited.allocate(SIZE_MAX, 0, queue_), im::out_of_memory);
      limited.deallocate(second, 4000, 0, queue_);
      EXPECT_THROW(limited.deallocate(second, 4000, 0, queue_), im::invalid_argument);
      EXPECT_EQ(im::limit_of(limited).in_use_bytes, 6000u);
      limited.deallocate(first, 6000, 0, queue_);
      EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u);
      EXPECT_THROW((void)im::limit(limited, 1 << 20).allocate(20'000, 0, queue_),
                   im::out_of_memory);
      EXPECT_THROW((void)limited.allocate(10, 24, queue_), im::invalid_argument);
      EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u) << "upstream's failure is taken back";
    }
  }
  EXPECT_THROW((void)im::limit_of(upstreams(kinds().front())[0]), im::invalid_argument);
}

TEST_P(adaptors, limit_threads) {
  const im::kind kind = kinds().front();
  constexpr std::uint64_t k_limit = 20 * k_kib;
  const im::resource limited = im::limit(im::count(upstreams(kind)[0]), k_limit);
  const im::resource counted = im::count(limited);
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t nbytes = 1 + random() % (9 * k_kib);
      try {
        void* block = counted.allocate(nbytes, 0, queue_);
        EXPECT_LE(im::limit_of(limited).in_use_bytes, k_limit);
        counted.deallocate(block, nbytes, 0, queue_);
      } catch (const im::out_of_memory&) {
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u);
  EXPECT_LE(im::statistics_of(counted).peak_bytes, k_limit + 3 * 9 * k_kib);
}

TEST_P(adaptors, fall_back_and_give_back_where_it_came_from) {
  for (im::kind kind : kinds()) {
    for (im::kind other : kinds()) {
      for (const im::resource& second_upstream : upstreams(other)) {
        const im::resource first = im::count(im::limit(upstreams(kind)[0], 10'000));
        const im::resource second = im::count(im::limit(second_upstream, 5000));
        const im::resource both = im::fall_back(first, second);
        void* a = both.allocate(9000, 0, queue_);
        void* b = both.allocate(4000, 0, queue_);
        EXPECT_EQ(im::query(a).kind, kind);
        EXPECT_EQ(im::query(b).kind, other);
        EXPECT_EQ(im::statistics_of(second).current_bytes, 4000u);
        EXPECT_TRUE(throws(im::status::out_of_memory, {"9000", "10000", "4000", "5000"},
                           [&] { (void)both.allocate(1001, 0, queue_); }));
        EXPECT_THROW((void)both.allocate(10, 24, queue_), im::invalid_argument);
        both.deallocate(b, 4000, 0, queue_);
        EXPECT_THROW(both.deallocate(b, 4000, 0, queue_), im::invalid_argument);
        EXPECT_EQ(im::statistics_of(second).current_bytes, 0u);
        EXPECT_EQ(im::statistics_of(first).current_bytes, 9000u);
        {
          const im::buffer buffer(2000, kind, {.on = queue_, .from = both});
          EXPECT_EQ(buffer.kind(), other) << "it tells what it has";
          const bytes data = noise(2000);
          write(buffer, data);
          EXPECT_TRUE(same(read(buffer), data));
          EXPECT_EQ(im::statistics_of(second).current_bytes, 2000u);
        }
        queue_.wait();
        EXPECT_TRUE(patiently([&] { return im::statistics_of(second).current_bytes == 0; }));
        both.deallocate(a, 9000, 0, queue_);
        EXPECT_EQ(im::statistics_of(first).current_bytes, 0u);
        EXPECT_GE(both.usage().held, first.usage().held);
        (void)both.trim();
      }
    }
  }
  const im::device apart = im::sim_device("");
  const im::resource far =
      im::resource::provider(im::queue(apart).context(), im::kind::device, apart);
  EXPECT_THROW((void)im::fall_back(upstreams(kinds().front())[0], far), im::wrong_context);
}

TEST_P(adaptors, fall_back_among_threads) {
  const im::kind kind = kinds().front();
  const im::resource first = im::count(im::limit(upstreams(kind)[0], 30 * k_kib));
  const im::resource second = im::count(upstreams(kind)[0]);
  const im::resource both = im::fall_back(first, second);
  std::mutex lock;
  std::vector<std::pair<void*, std::size_t>> between;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t nbytes = 1 + random() % (5 * k_kib);
      void* mine = both.allocate(nbytes, 0, queue_);
      std::unique_lock hold(lock);
      between.emplace_back(mine, nbytes);
      if (between.size() < 20) continue;
      std::swap(between[random() % between.size()], between.back());
      const auto [theirs, size] = between.back();
      between.pop_back();
      hold.unlock();
      both.deallocate(theirs, size, 0, queue_);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (std::thread& each : threads) each.join();
  for (const auto& [pointer, nbytes] : between) both.deallocate(pointer, nbytes, 0, queue_);
  EXPECT_GT(im::statistics_of(second).total_count, 0u);
  EXPECT_EQ(im::statistics_of(first).current_bytes, 0u);
  EXPECT_EQ(im::statistics_of(second).current_bytes, 0u);
}

TEST_P(adaptors, ask_a_function_where_there_is_no_memory) {
  const im::kind kind = kinds().front();
  for (const im::resource& upstream : upstreams(kind)) {
    const im::resource limited = im::limit(upstream, 10'001);
    std::vector<void*> cache;
    std::vector<std::size_t> asked;
    const im::resource patient = im::on_failure(limited, [&](std::size_t nbytes) {
      asked.push_back(nbytes);
      limited.deallocate(limited.allocate(1, 0, queue_), 1, 0, queue_);
      if (cache.empty()) return false;
      limited.deallocate(cache.back(), 3000, 0, queue_);
      cache.pop_back();
      return true;
    });
    for (int i = 0; i < 3; ++i) cache.push_back(limited.allocate(3000, 0, queue_));
    void* large = patient.allocate(7000, 0, queue_);
    EXPECT_EQ(asked, std::vector<std::size_t>(2, 7000));
    EXPECT_TRUE(throws(im::status::out_of_memory, {"9000", "10001"},
                       [&] { (void)patient.allocate(9000, 0, queue_); }));
    EXPECT_EQ(asked.size(), 4u) << "till it gives up";
    EXPECT_THROW((void)patient.allocate(10, 24, queue_), im::invalid_argument);
    EXPECT_EQ(asked.size(), 4u) << "asked for lack of memory alone";
    patient.deallocate(large, 7000, 0, queue_);
    EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0u);
    const im::resource odd =
        im::on_failure(limited, [](std::size_t) -> bool { throw im::unsupported("not here"); });
    EXPECT_TRUE(throws(im::status::unsupported, {"not here"},
                       [&] { (void)odd.allocate(20'000, 0, queue_); }));
  }
}

TEST_P(adaptors, stand_on_one_another) {
  for (im::kind kind : kinds()) {
    const im::live_memory before = im::live();
    im::resource top;
    {
      im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
      top = im::count(im::fall_back(im::limit(im::count(pool), 50'000),
                                    im::on_failure(pool, [](std::size_t) { return false; })));
    }
    std::vector<im::buffer> all;
    for (int i = 0; i < 20; ++i) all.emplace_back(4000, kind, im::buffer_options{queue_, 0, top});
    EXPECT_TRUE(counts(im::statistics_of(top), {80'000, 20, 80'000, 20, 80'000, 20}));
    const im::statistics_scope scope(top);
    top.deallocate(top.allocate(1, 0, queue_), 1, 0, queue_);
    EXPECT_EQ(scope.read().total_count, 1u);
    top = {};
    for (const im::buffer& each : all) im::fill(each, 1.0f);
    all.clear();
    queue_.wait();
    if (kind != kinds().back()) continue;
    EXPECT_GE(im::live().bytes, before.bytes);
  }
}

TEST_P(adaptors, are_refused_what_is_no_resource) {
  isthmus_resource_t* made = nullptr;
  const im::resource upstream = upstreams(kinds().front())[0];
  EXPECT_EQ(isthmus_resource_statistics(nullptr, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_statistics(upstream.get(), nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_limit(nullptr, 1, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_fallback(upstream.get(), nullptr, &made),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  int released = 0;
  const isthmus_owner_t owner{&released, [](void* object) { ++*static_cast<int*>(object); }};
  EXPECT_EQ(isthmus_resource_on_failure(upstream.get(), nullptr, owner, &made),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(made, nullptr);
  const im::resource counted = im::count(upstream);
  isthmus_statistics_t small{};
  EXPECT_EQ(isthmus_statistics_query(counted.get(), &small), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_scope_create(counted.get(), nullptr, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_scope_query(nullptr, &small), ISTHMUS_ERROR_INVALID_ARGUMENT);
  isthmus_scope_release(nullptr);
}

}  // namespace
