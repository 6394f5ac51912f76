// SPDX-License-Identifier: Apache-2.0
// Limit, fallback and other adaptors: which requests they reject, which they forward to another
// resource, and which resource memory is returned to.
#include <isthmus/host_resource.hpp>
#include <mutex>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class adaptors : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(adaptors);

TEST_P(adaptors, limit_what_is_live) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource limited = im::resource::limit(upstream, 10'000);
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
      EXPECT_THROW((void)im::resource::limit(limited, 1 << 20).allocate(20'000, 0, queue_),
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
  const im::resource below = im::resource::statistics(upstreams(kind)[0]);
  const im::resource limited = im::resource::limit(below, k_limit);
  const im::resource counted = im::resource::statistics(limited);
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
  EXPECT_LE(im::statistics_of(counted).peak_bytes, k_limit);
  EXPECT_LE(im::statistics_of(below).peak_bytes, k_limit);
  EXPECT_GT(im::statistics_of(counted).peak_bytes, 8 * k_kib);
}

TEST_P(adaptors, fall_back_and_free_to_the_resource_that_allocated) {
  for (im::kind kind : kinds()) {
    for (im::kind other : kinds()) {
      for (const im::resource& second_upstream : upstreams(other)) {
        const im::resource first =
            im::resource::statistics(im::resource::limit(upstreams(kind)[0], 10'000));
        const im::resource second =
            im::resource::statistics(im::resource::limit(second_upstream, 5000));
        const im::resource both = im::resource::fallback(first, second);
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
          const im::buffer buffer(2000, kind, {.queue = queue_, .resource = both});
          EXPECT_EQ(buffer.kind(), other) << "it tells what it has";
          const bytes data = noise(2000);
          write(buffer, data);
          EXPECT_TRUE(same(read(buffer), data));
          EXPECT_EQ(im::statistics_of(second).current_bytes, 2000u);
        }
        queue_.wait();
        EXPECT_TRUE(eventually([&] { return im::statistics_of(second).current_bytes == 0; }));
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
  EXPECT_THROW((void)im::resource::fallback(upstreams(kinds().front())[0], far), im::wrong_context);
}

TEST_P(adaptors, report_why_a_fallback_fails) {
  for (im::kind kind : kinds()) {
    const im::resource full = im::resource::limit(upstreams(kind)[0], 0);
    EXPECT_TRUE(throws(im::status::out_of_memory, {"the fallback also failed"},
                       [&] { (void)im::resource::fallback(full, full).allocate(100, 0, queue_); }));
    const im::resource unsupported = im::resource::failure_callback(
        full, [](std::size_t) -> bool { throw im::unsupported("not here"); });
    EXPECT_TRUE(throws(im::status::unsupported, {"not here"}, [&] {
      (void)im::resource::fallback(full, unsupported).allocate(100, 0, queue_);
    }));
  }
}

TEST_P(adaptors, fall_back_among_threads) {
  const im::kind kind = kinds().front();
  const im::resource first =
      im::resource::statistics(im::resource::limit(upstreams(kind)[0], 30 * k_kib));
  const im::resource second = im::resource::statistics(upstreams(kind)[0]);
  const im::resource both = im::resource::fallback(first, second);
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

TEST_P(adaptors, call_a_function_where_there_is_no_memory) {
  const im::kind kind = kinds().front();
  for (const im::resource& upstream : upstreams(kind)) {
    const im::resource limited = im::resource::limit(upstream, 10'001);
    std::vector<void*> cache;
    std::vector<std::size_t> asked;
    const im::resource patient = im::resource::failure_callback(limited, [&](std::size_t nbytes) {
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
    const im::resource odd = im::resource::failure_callback(
        limited, [](std::size_t) -> bool { throw im::unsupported("not here"); });
    EXPECT_TRUE(throws(im::status::unsupported, {"not here"},
                       [&] { (void)odd.allocate(20'000, 0, queue_); }));
  }
}

TEST_P(adaptors, over_one_pool_count_its_memory_once) {
  for (im::kind kind : kinds()) {
    const im::resource pool = upstreams(kind)[0];
    const im::resource other = im::resource::pool(queue_.context(), kind, {}, device_);
    const im::resource bins = im::resource::binning(
        pool,
        {{1000, im::resource::statistics(pool)}, {100'000, im::resource::limit(pool, 1 << 20)}});
    const im::resource both = im::resource::fallback(bins, im::resource::fallback(other, pool));
    bins.deallocate(bins.allocate(500, 0, queue_), 500, 0, queue_);
    const std::uint64_t held = pool.usage().held;
    EXPECT_EQ(bins.usage().held, held);
    EXPECT_EQ(bins.usage().free, pool.usage().free);
    EXPECT_EQ(bins.trim(held), 0u);
    EXPECT_EQ(pool.usage().held, held);
    other.deallocate(other.allocate(1, 0, queue_), 1, 0, queue_);
    EXPECT_EQ(both.usage().held, held + other.usage().held);
    EXPECT_GT(both.trim(held), 0u) << "the second's first";
    EXPECT_EQ(pool.usage().held, held);
    EXPECT_EQ(other.usage().held, 0u);
    EXPECT_EQ(both.trim(), held);
    EXPECT_EQ(both.usage().held, 0u);
  }
}

TEST_P(adaptors, report_all_kinds_that_they_may_allocate) {
  std::uint32_t all = 0;
  for (im::kind kind : kinds()) {
    const im::resource one = im::resource::statistics(upstreams(kind)[1]);
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    im::detail::check(isthmus_resource_info(one.get(), &info));
    EXPECT_EQ(info.kinds, 1u << static_cast<unsigned>(kind));
    all |= info.kinds;
    for (im::kind other : kinds()) {
      const im::resource mixed = im::resource::aligned(
          im::resource::fallback(im::resource::limit(one, 0), upstreams(other)[0]), 64);
      im::detail::check(isthmus_resource_info(mixed.get(), &info));
      EXPECT_EQ(info.kinds, 1u << static_cast<unsigned>(kind) | 1u << static_cast<unsigned>(other));
      if (kind == im::kind::device || other == im::kind::device) {
        EXPECT_THROW(im::host_resource(mixed, queue_), im::unsupported);
        continue;
      }
      im::host_resource memory(mixed, queue_);
      const std::pmr::vector<int> values(100, 3, &memory);
      EXPECT_EQ(values[99], 3);
    }
  }
}

TEST_P(adaptors, can_be_stacked) {
  for (im::kind kind : kinds()) {
    const im::live_memory before = im::live();
    im::resource top;
    {
      im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
      top = im::resource::statistics(im::resource::fallback(
          im::resource::limit(im::resource::statistics(pool), 50'000),
          im::resource::failure_callback(pool, [](std::size_t) { return false; })));
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
  EXPECT_EQ(isthmus_resource_failure_callback(upstream.get(), nullptr, owner, &made),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(made, nullptr);
  const im::resource counted = im::resource::statistics(upstream);
  isthmus_statistics_info_t small{};
  EXPECT_EQ(isthmus_statistics_info(counted.get(), &small), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_scope_create(counted.get(), nullptr, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_scope_info(nullptr, &small), ISTHMUS_ERROR_INVALID_ARGUMENT);
  isthmus_scope_release(nullptr);
}

}  // namespace
