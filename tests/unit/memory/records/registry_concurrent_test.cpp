// SPDX-License-Identifier: Apache-2.0
// The registry, compared with a std::map, with real allocations of host memory.

#include "memory/records/registry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "memory/base/live_counts.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_creation.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/facts.hpp"
#include "support/eventually.hpp"

namespace isthmus {
namespace {

Ref<Queue> host_queue() { return *Platform::default_queue(**find_device("host")); }

TEST(registry, finds_inner_pointers_of_a_random_population) {
  std::mt19937_64 random{7};
  const auto on = host_queue();
  const auto before =
      support::wait_until_stable([] { return process_live_counts().total(ISTHMUS_KIND_UNKNOWN); });
  std::map<std::byte*, Ref<Allocation>> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() < 500 || random() % 2 == 0) {
      const std::size_t nbytes = 1 + random() % (std::size_t{1} << (random() % 20));
      auto made = create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, nullptr);
      ASSERT_TRUE(made);
      live.emplace(static_cast<std::byte*>((*made)->facts().base), *made);
    } else {
      live.erase(std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size())));
    }
    auto& [base, record] =
        *std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
    const auto nbytes = record->facts().nbytes;
    auto* const within = base + random() % nbytes;
    EXPECT_EQ(process_registry().find(within).get(), record.get());
    const auto seen = process_registry().lookup(within);
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->facts.base, base);
    EXPECT_EQ(seen->facts.nbytes, nbytes);
    EXPECT_EQ(seen->facts.kind, ISTHMUS_KIND_SHARED);
    EXPECT_EQ(seen->queue_key, on->key());
    EXPECT_FALSE(seen->is_dying);
    EXPECT_NE(process_registry().find(base + nbytes).get(), record.get());
    const auto past = process_registry().lookup(base + nbytes);
    EXPECT_TRUE(!past || past->facts.base != base);
  }
  live.clear();
  EXPECT_EQ(process_live_counts().total(ISTHMUS_KIND_UNKNOWN).count, before.count);
  EXPECT_EQ(process_live_counts().total(ISTHMUS_KIND_UNKNOWN).bytes, before.bytes);
}

TEST(registry, knows_nothing_of_other_memory) {
  int local = 0;
  EXPECT_FALSE(process_registry().find(&local));
  EXPECT_FALSE(process_registry().find(nullptr));
  EXPECT_FALSE(process_registry().find(reinterpret_cast<void*>(UINTPTR_MAX)));
  EXPECT_FALSE(process_registry().lookup(&local));
  EXPECT_FALSE(process_registry().lookup(nullptr));
  EXPECT_EQ(record_of(nullptr, &local).facts.kind, ISTHMUS_KIND_UNKNOWN);
}

TEST(registry_concurrent, finds_while_others_are_added_and_removed) {
  const auto on = host_queue();
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&on, seed] {
      std::mt19937 random{seed};
      for (int step = 0; step < 2000; ++step) {
        const std::size_t nbytes = 1 + random() % 5000;
        auto made = create_allocation(*on, {ISTHMUS_KIND_HOST, nbytes, 0}, nullptr);
        auto* base = static_cast<std::byte*>((*made)->facts().base);
        EXPECT_EQ(process_registry().find(base + nbytes / 2).get(), (*made).get());
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

// A read without the lock sees one record consistently while chains grow and shrink around it.
TEST(registry_concurrent, is_consistent_while_others_are_added_and_removed) {
  const auto on = host_queue();
  const auto kept = *create_allocation(*on, {ISTHMUS_KIND_HOST, 12'345, 0}, nullptr);
  std::atomic<std::byte*> newest{nullptr};
  std::atomic<bool> done{false};
  std::vector<std::thread> lookers;
  for (int each = 0; each < 2; ++each) {
    lookers.emplace_back([&] {
      while (!done.load()) {
        const auto same =
            process_registry().lookup(static_cast<std::byte*>(kept->facts().base) + 99);
        ASSERT_TRUE(same);
        EXPECT_EQ(same->facts.base, kept->facts().base);
        EXPECT_EQ(same->facts.nbytes, 12'345U);
        if (const auto other = process_registry().lookup(newest.load())) {
          EXPECT_EQ(other->facts.nbytes % 1000, address(other->facts.base) / 64 % 1000);
          EXPECT_EQ(other->context, &on->context());
        }
      }
    });
  }
  std::vector<Ref<Allocation>> live;
  std::vector<std::byte> arena(std::size_t{1} << 22);
  for (int step = 0; step < 20'000; ++step) {
    auto* const base = arena.data() + static_cast<std::size_t>(step) % 1000 * 4096;
    const auto nbytes = 1000 + address(base) / 64 % 1000;
    auto made = Allocation::adopt(*on, {base, nbytes, 1, ISTHMUS_KIND_HOST}, {}, {});
    ASSERT_TRUE(made);
    newest.store(base + 500);
    live.push_back(*std::move(made));
    if (live.size() > 500) {
      live.clear();
    }
  }
  done.store(true);
  for (auto& each : lookers) {
    each.join();
  }
}

TEST(registry, knows_the_classes_about_every_byte_of_a_record) {
  const auto hints = std::make_unique<ClassHints>();
  std::mt19937_64 random{3};
  for (int step = 0; step < 2000; ++step) {
    const auto size_class = static_cast<unsigned>(random() % 44);
    const auto most = std::uint64_t{1} << size_class;
    const auto nbytes = most - random() % (most / 2 + 1);
    const auto base = random() % (std::uint64_t{1} << 46);
    hints->mark(reinterpret_cast<void*>(base), nbytes, size_class);
    for (const auto offset : {std::uint64_t{0}, random() % nbytes, nbytes - 1}) {
      const auto about = hints->classes_at(reinterpret_cast<void*>(base + offset));
      EXPECT_EQ(about >> size_class & 1, 1U) << base << ", " << nbytes << " at " << offset;
    }
  }
}

// Memory of the caller, who may have it adopted again while work on it is still running.
TEST(registry, reports_the_live_allocation_while_an_older_one_is_released) {
  const auto on = host_queue();
  std::vector<std::byte> arena(100'000);
  const auto adopted = [&](std::size_t nbytes) {
    return *Allocation::adopt(*on, {arena.data(), nbytes, 1, ISTHMUS_KIND_HOST}, {}, {});
  };
  const auto running = make_ref<HostEvent>();
  for (const std::size_t first : {std::size_t{4096}, std::size_t{70'000}}) {
    auto former = adopted(first);
    former->uses().add({0, {0, first}, true}, running, former->uses().begin());
    former = {};
    const auto dying = process_registry().lookup(arena.data());
    ASSERT_TRUE(dying);
    EXPECT_TRUE(dying->is_dying);
    EXPECT_TRUE(dying->stays_with_owner);
    EXPECT_FALSE(process_registry().is_pending_release(arena.data()));
    for (const std::size_t nbytes : {std::size_t{4000}, std::size_t{60'000}, arena.size()}) {
      const auto live = adopted(nbytes);
      const auto seen = process_registry().lookup(arena.data() + 100);
      ASSERT_TRUE(seen);
      EXPECT_FALSE(seen->is_dying);
      EXPECT_EQ(seen->facts.nbytes, nbytes);
      EXPECT_EQ(record_of(nullptr, arena.data()).state, ISTHMUS_MEMORY_LIVE);
      EXPECT_EQ(origin_of(arena.data() + 100).context.get(), &on->context());
    }
  }
  running->finish({});
  while (process_registry().is_dying(arena.data())) {
    std::this_thread::yield();
  }
}

TEST(registry, knows_memory_that_was_freed_while_work_used_it) {
  const auto on = host_queue();
  auto record = *create_allocation(*on, {ISTHMUS_KIND_HOST, 1000, 0}, nullptr);
  const auto* const base = static_cast<const std::byte*>(record->facts().base);
  const auto running = make_ref<HostEvent>();
  record->uses().add({0, {0, 1000}, true}, running, record->uses().begin());
  EXPECT_FALSE(process_registry().is_pending_release(base));
  EXPECT_TRUE(*allocation_at(base));
  record = {};
  EXPECT_TRUE(process_registry().is_pending_release(base + 999));
  const auto found = allocation_at(base);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  running->finish({});
  while (process_registry().is_dying(base)) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(process_registry().is_pending_release(base));
}

Ref<Pool> shared_pool(Queue& on) {
  return *Pool::create(on.context(), on.device(), ISTHMUS_KIND_SHARED, {});
}

TEST(registry, a_block_whose_buffer_has_ended_is_not_live) {
  const auto on = host_queue();
  const auto from = shared_pool(*on);
  // Marked live by a bit, by a byte, and by the state of a page.
  for (const std::size_t nbytes : {24U, 1000U, 300'000U}) {
    auto record = *create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, from.get());
    auto* const base = record->facts().base;
    EXPECT_EQ(process_registry().find_block(base).get(), record.get());
    record.detach()->release_last();
    EXPECT_FALSE(process_registry().find_block(base));
    EXPECT_EQ(from->deallocate(base, nbytes, on.get()).failure().code(),
              ISTHMUS_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ((*create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, from.get()))->facts().base,
              base);
  }
  EXPECT_TRUE(from->verify());
}

// An unchecked pool cannot detect this by itself, but the block has a record.
TEST(registry, a_pointer_into_a_buffers_block_frees_nothing) {
  const auto on = host_queue();
  Pool::Options unchecked;
  unchecked.checks = false;
  const auto from = *Pool::create(on->context(), on->device(), ISTHMUS_KIND_SHARED, unchecked);
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{300'000}}) {
    const auto record = *create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, from.get());
    auto* const base = static_cast<std::byte*>(record->facts().base);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{64}}) {
      EXPECT_EQ(from->deallocate(base + offset, nbytes, on.get()).failure().code(),
                ISTHMUS_ERROR_INVALID_ARGUMENT);
    }
  }
  EXPECT_TRUE(from->verify());
}

TEST(registry, a_reference_that_is_not_the_last_ends_nothing) {
  const auto on = host_queue();
  const auto from = shared_pool(*on);
  auto record = *create_allocation(*on, {ISTHMUS_KIND_SHARED, 1000, 0}, from.get());
  const auto other = record;
  record.detach()->release_last();
  EXPECT_EQ(process_registry().find_block(other->facts().base).get(), other.get());
}

TEST(registry_concurrent, blocks_end_while_others_find_them) {
  const auto on = host_queue();
  const auto from = shared_pool(*on);
  const std::set<std::size_t> sizes{1000, 300'000};
  std::atomic<std::byte*> newest{nullptr};
  std::atomic<bool> done{false};
  std::vector<std::thread> lookers;
  for (int each = 0; each < 2; ++each) {
    lookers.emplace_back([&] {
      while (!done.load()) {
        if (const auto found = process_registry().find_block(newest.load())) {
          EXPECT_TRUE(sizes.contains(found->facts().nbytes));
        }
      }
    });
  }
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t nbytes = step % 2 == 0 ? 1000 : 300'000;
    auto record = *create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, from.get());
    newest.store(static_cast<std::byte*>(record->facts().base));
    record.detach()->release_last();
  }
  done.store(true);
  for (auto& each : lookers) {
    each.join();
  }
  EXPECT_FALSE(process_registry().find_block(newest.load()));
  EXPECT_TRUE(from->verify());
}

// The record of a block is gone before the block can be reused, so every block that is allocated
// here is found by its own record alone.
TEST(registry_concurrent, runs_of_all_lengths_end_and_are_reused) {
  const auto on = host_queue();
  const auto from = shared_pool(*on);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random{seed};
      std::vector<Ref<Allocation>> live(24);
      for (int step = 0; step < 20'000; ++step) {
        auto& record = live[random() % live.size()];
        if (record) {
          auto* const base = record->facts().base;
          EXPECT_EQ(process_registry().find_block(base).get(), record.get());
          record.detach()->release_last();
        } else {
          const std::size_t nbytes = 1 + (random() % 12) * k_pool_page_bytes;
          record = *create_allocation(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, from.get());
        }
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
  EXPECT_TRUE(from->verify());
  from->trim(0);
  EXPECT_EQ(from->usage().held_bytes, 0U);
}

}  // namespace
}  // namespace isthmus
