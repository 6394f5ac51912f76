// SPDX-License-Identifier: Apache-2.0
// Pools over another resource instead of the driver: custom resources and adaptors.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

constexpr std::size_t k_mib = std::size_t{1} << 20;

class pools_over_upstreams : public on_backend {
 protected:
  im::resource provider(im::kind kind) const {
    return im::resource::provider(queue_.context(), kind, device_);
  }
  template <class Source>
  im::resource custom(im::kind kind, Source source) const {
    return im::resource::custom(queue_.context(), kind, std::move(source), device_);
  }
};
INSTANTIATE_ON_BACKENDS(pools_over_upstreams);

// The live blocks of a custom resource. Thread-safe.
struct upstream_journal {
  std::mutex lock;
  std::map<void*, std::size_t> live;
  int given = 0;
  int taken = 0;
  std::atomic<bool> gone{false};

  int takes() {
    const std::lock_guard hold(lock);
    return taken;
  }
};

// Forwards to a provider, up to `most` bytes.
struct lender {
  im::resource from;
  std::shared_ptr<upstream_journal> log = std::make_shared<upstream_journal>();
  std::size_t most = SIZE_MAX;
  std::function<void()> meanwhile = {};

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    EXPECT_TRUE(on);
    {
      const std::lock_guard hold(log->lock);
      std::size_t in_use = nbytes;
      for (const auto& each : log->live) in_use += each.second;
      if (in_use > most) throw im::out_of_memory("the lender has no more");
    }
    if (meanwhile) meanwhile();
    void* pointer = from.allocate(nbytes, alignment, on);
    const std::lock_guard hold(log->lock);
    EXPECT_TRUE(log->live.emplace(pointer, nbytes).second) << "given out twice";
    ++log->given;
    return pointer;
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    {
      const std::lock_guard hold(log->lock);
      const auto found = log->live.find(pointer);
      ASSERT_NE(found, log->live.end()) << "never given out, or taken before";
      EXPECT_EQ(found->second, nbytes) << "the exact size";
      log->live.erase(found);
      ++log->taken;
    }
    from.deallocate(pointer, nbytes, 0, on);
  }
};

TEST_P(pools_over_upstreams, allocate_regions_and_release_exactly_these) {
  for (im::kind kind : kinds()) {
    lender source{provider(kind)};
    {
      const im::resource pool = im::resource::pool(custom(kind, source), {.growth_bytes = k_mib});
      std::vector<im::buffer> buffers;
      for (const std::size_t nbytes : {std::size_t{1}, std::size_t{5000}, 3 * k_mib, 7 * k_mib}) {
        buffers.emplace_back(nbytes, kind, im::buffer_options{.queue = queue_, .resource = pool});
        const bytes data = noise(nbytes);
        write(buffers.back(), data);
        EXPECT_TRUE(same(read(buffers.back()), data));
        const auto known = im::query(buffers.back().pointer());
        EXPECT_EQ(known.resource, pool);
        EXPECT_EQ(known.base, buffers.back().pointer());
        EXPECT_EQ(known.kind, kind);
      }
      EXPECT_GE(source.log->given, 3);
      EXPECT_EQ(pool.usage().maps, static_cast<std::uint64_t>(source.log->given));
      queue_.wait();
      buffers.clear();
      EXPECT_EQ(source.log->takes(), 0) << "a free gives nothing back";
      pool.trim();
      EXPECT_EQ(source.log->takes(), source.log->given);
      EXPECT_EQ(pool.usage().held, 0u);
      pool.deallocate(pool.allocate(100, 0, queue_), 100, 0, queue_);
      EXPECT_NO_THROW(pool.verify());
    }
    EXPECT_TRUE(eventually([&] { return source.log->takes() == source.log->given; }));
  }
}

// Memory from upstream has allocation records of its own, as all memory of a provider has.
TEST_P(pools_over_upstreams, know_their_blocks_from_what_these_lie_in) {
  for (im::kind kind : kinds()) {
    const im::resource pool =
        im::resource::pool(custom(kind, lender{provider(kind)}), {.growth_bytes = k_mib});
    for (const std::size_t nbytes : {std::size_t{1000}, k_mib}) {
      void* block = pool.allocate(nbytes, 0, queue_);
      pool.record(block, queue_);
      EXPECT_EQ(im::query(block).base, block);
      EXPECT_EQ(im::query(block).resource, pool);
      pool.deallocate(block, nbytes, 0, queue_);
      EXPECT_TRUE(throws(im::status::invalid_argument, {"freed before"},
                         [&] { pool.deallocate(block, nbytes, 0, queue_); }));
    }
  }
}

TEST_P(pools_over_upstreams, go_through_the_oom_stages_where_upstream_has_no_memory) {
  const im::kind kind = kinds().front();
  lender source{provider(kind)};
  source.most = 8 * k_mib;
  const im::resource pool =
      im::resource::pool(custom(kind, source), {.growth_bytes = k_mib, .wait = 0ns});
  void* kept = pool.allocate(3 * k_mib, 0, queue_);
  void* freed = pool.allocate(4 * k_mib, 0, queue_);
  pool.deallocate(freed, 4 * k_mib, 0, queue_);
  queue_.wait();
  EXPECT_TRUE(throws(im::status::out_of_memory, {"the lender has no more", "tried collect", "grow"},
                     [&] { (void)pool.allocate(6 * k_mib, 0, queue_); }));
  EXPECT_TRUE(im::error_snapshot());
  void* fits = pool.allocate(5 * k_mib, 0, queue_);  // after the pool has returned its free memory
  EXPECT_GE(source.log->takes(), 1);
  pool.deallocate(fits, 5 * k_mib, 0, queue_);
  pool.deallocate(kept, 3 * k_mib, 0, queue_);
  queue_.wait();
}

TEST_P(pools_over_upstreams, pass_other_errors_of_upstream_on) {
  const im::kind kind = kinds().front();
  lender source{provider(kind)};
  source.meanwhile = [] { throw im::unsupported("not today"); };
  const im::resource pool = im::resource::pool(custom(kind, source));
  EXPECT_TRUE(
      throws(im::status::unsupported, {"not today"}, [&] { (void)pool.allocate(100, 0, queue_); }));
  EXPECT_TRUE(throws(im::status::unsupported, {"not today"}, [&] {
    (void)im::resource::pool(custom(kind, source), {.initial_bytes = k_mib});
  }));
}

TEST_P(pools_over_upstreams, hold_no_lock_meanwhile) {
  const im::kind kind = kinds().front();
  im::resource pool;
  int depth = 0;
  lender source{provider(kind)};
  source.meanwhile = [&] {
    if (depth++ != 0) return;
    void* block = pool.allocate(k_mib, 0, queue_);
    pool.deallocate(block, k_mib, 0, queue_);
    pool.trim();
    EXPECT_NO_THROW(pool.verify());
  };
  pool = im::resource::pool(custom(kind, source), {.growth_bytes = k_mib});
  void* block = pool.allocate(100, 0, queue_);
  EXPECT_GE(depth, 2) << "the same pool was asked from inside its upstream";
  pool.deallocate(block, 100, 0, queue_);
  queue_.wait();
  pool = {};
}

// If upstream rejects a request while another thread is obtaining enough memory for both, the
// request is served too.
TEST_P(pools_over_upstreams, wait_for_threads_that_are_at_upstream) {
  const im::kind kind = kinds().front();
  lender source{provider(kind)};
  std::atomic<int> asked{0};
  // The memory that the first thread frees can be allocated again.
  std::atomic<bool> has_it_all{true};
  source.meanwhile = [&] {
    if (asked++ == 0) {
      while (asked.load() == 1) std::this_thread::sleep_for(1ms);
      has_it_all.store(false);
    } else if (has_it_all.load()) {
      throw im::out_of_memory("somebody else is about to have it all");
    }
  };
  const im::resource pool =
      im::resource::pool(custom(kind, source), {.growth_bytes = 4 * k_mib, .wait = 10s});
  const auto work = [&] {
    const im::queue own(device_);
    pool.deallocate(pool.allocate(k_mib, 0, own), k_mib, 0, own);
  };
  std::thread first(work);
  while (asked.load() == 0) std::this_thread::sleep_for(1ms);
  EXPECT_NO_THROW(work());
  first.join();
}

// Has a single block, which another thread is about to return.
struct one_piece {
  struct events {
    std::atomic<bool> is_here{true}, comes{false}, may_come{false}, came{false};
    std::atomic<int> refused{0};
  };
  im::resource from;
  std::shared_ptr<events> seen = std::make_shared<events>();

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    if (!seen->is_here.exchange(false)) {
      constexpr int k_last = 4;  // then the request has tried every stage except waiting
      if (seen->comes && ++seen->refused == k_last) {
        seen->may_come = true;
        while (!seen->came) std::this_thread::sleep_for(1ms);
      }
      throw im::out_of_memory("its one piece was away");
    }
    return from.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    seen->comes = true;
    while (!seen->may_come) std::this_thread::sleep_for(1ms);
    from.deallocate(pointer, nbytes, 0, on);
    seen->is_here = true;
  }
};

TEST_P(pools_over_upstreams, miss_no_release_during_an_upstream_request) {
  const im::kind kind = kinds().front();
  const one_piece source{provider(kind)};
  auto& seen = *source.seen;
  const im::resource pool = im::resource::pool(custom(kind, source), {.wait = 1s});
  const auto work = [&] {
    pool.deallocate(pool.allocate(16 * k_mib, 0, queue_), 16 * k_mib, 0, queue_);
  };
  work();
  std::thread giving([&] {
    (void)pool.trim();
    seen.came = true;
  });
  while (!seen.comes) std::this_thread::sleep_for(1ms);
  EXPECT_NO_THROW(work());
  giving.join();
}

TEST_P(pools_over_upstreams, stand_on_adaptors) {
  for (im::kind kind : kinds()) {
    const im::resource counted = im::resource::statistics(provider(kind));
    const im::resource limited = im::resource::limit(im::resource::tracking(counted), 4 * k_mib);
    {
      const im::resource pool = im::resource::pool(limited, {.growth_bytes = k_mib, .wait = 0ns});
      void* block = pool.allocate(100, 0, queue_);
      EXPECT_EQ(im::statistics_of(counted).current_count, 1u);
      EXPECT_EQ(im::statistics_of(counted).current_bytes, pool.usage().held);
      EXPECT_TRUE(throws(im::status::out_of_memory, {"of a limit of 4 MiB"},
                         [&] { (void)pool.allocate(5 * k_mib, 0, queue_); }));
      pool.deallocate(block, 100, 0, queue_);
      queue_.wait();
    }
    EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
    const im::resource arenas = im::resource::arena(provider(kind));
    const im::resource pool = im::resource::pool(arenas, {.growth_bytes = k_mib});
    const im::buffer buffer(3 * k_mib, kind, {.queue = queue_, .resource = pool});
    const bytes data = noise(3 * k_mib);
    EXPECT_TRUE((write(buffer, data), same(read(buffer), data)));
  }
}

TEST_P(pools_over_upstreams, share_a_budget_and_keep_limits) {
  const im::kind kind = kinds().front();
  const im::budget share(8 * k_mib);
  const im::pool_options how{.growth_bytes = k_mib, .budget = share, .wait = 0ns};
  lender source{provider(kind)};
  const im::resource over = im::resource::pool(custom(kind, source), how);
  const im::resource plain = im::resource::pool(queue_.context(), kind, how, device_);
  over.deallocate(over.allocate(6 * k_mib, 0, queue_), 6 * k_mib, 0, queue_);
  queue_.wait();
  plain.deallocate(plain.allocate(6 * k_mib, 0, queue_), 6 * k_mib, 0, queue_);
  EXPECT_EQ(source.log->takes(), source.log->given) << "it gave way to its sibling";
  EXPECT_TRUE(throws(im::status::out_of_memory, {"budget"},
                     [&] { (void)over.allocate(9 * k_mib, 0, queue_); }));
  queue_.wait();
}

TEST_P(pools_over_upstreams, refuse_what_they_cannot_stand_on) {
  const im::kind kind = kinds().front();
  const im::resource lower = im::resource::pool(queue_.context(), kind, {}, device_);
  const auto refused = [&](const im::resource& upstream, const char* text) {
    return throws(im::status::unsupported, {text}, [&] { (void)im::resource::pool(upstream); });
  };
  EXPECT_TRUE(refused(lower, "built on another pool"));
  EXPECT_TRUE(refused(im::resource::statistics(lower), "built on another pool"));
  EXPECT_TRUE(refused(im::resource::fallback(provider(kind), lower), "built on another pool"));
  EXPECT_TRUE(refused(im::resource::monotonic(provider(kind)), "monotonic"));
  if (kinds().size() > 1) {
    EXPECT_TRUE(
        refused(im::resource::fallback(provider(kind), provider(kinds().back())), "several kinds"));
  }
  EXPECT_TRUE(throws(im::status::invalid_argument, {"is empty"},
                     [] { (void)im::resource::pool(im::resource()); }));
  // A custom resource that hides where its memory comes from is detected at its first allocation.
  lender source{lower};
  const im::resource pool = im::resource::pool(custom(kind, source));
  EXPECT_TRUE(throws(im::status::callback, {"manages already"},
                     [&] { (void)pool.allocate(100, 0, queue_); }));
  EXPECT_TRUE(eventually([&] { return source.log->takes() == source.log->given; }));
  EXPECT_EQ(pool.usage().held, 0u);
}

TEST_P(pools_over_upstreams, keep_upstreams_alive_and_end_before_them) {
  struct owned {
    lender of;
    ~owned() {
      EXPECT_TRUE(of.log->live.empty()) << "the pool gave all back first";
      of.log->gone = true;
    }
  };
  struct held {
    std::shared_ptr<owned> what;
    void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
      return what->of.allocate(nbytes, alignment, on);
    }
    void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
      what->of.deallocate(pointer, nbytes, on);
    }
  };
  const im::kind kind = kinds().front();
  auto source = std::make_shared<owned>();
  source->of.from = provider(kind);
  const auto log = source->of.log;
  im::resource pool = im::resource::pool(custom(kind, held{std::move(source)}));
  {
    const im::buffer buffer(k_mib, kind, {.queue = queue_, .resource = pool});
    pool = {};
    EXPECT_FALSE(log->gone);
    im::fill(buffer, 1.0f);
  }
  EXPECT_TRUE(eventually([&] { return log->gone.load(); }));
}

}  // namespace
