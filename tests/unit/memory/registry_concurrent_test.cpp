// The registry against std::map, through real allocations of the host.

#include "memory/registry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "memory/facts.hpp"
#include "memory/live_counts.hpp"

namespace isthmus {
namespace {

ref<queue> host_queue() { return *(*find_device("host"))->default_queue(); }

TEST(registry, finds_inner_pointers_of_a_random_population) {
  std::mt19937_64 random{7};
  const auto on = host_queue();
  const auto before = process_live_counts().total(ISTHMUS_KIND_UNKNOWN);
  std::map<std::byte*, ref<allocation>> live;
  for (int step = 0; step < 4000; ++step) {
    if (live.size() < 500 || random() % 2 == 0) {
      const std::size_t nbytes = 1 + random() % (std::size_t{1} << (random() % 20));
      auto made = allocation::create(*on, {ISTHMUS_KIND_SHARED, nbytes, 0}, nullptr);
      ASSERT_TRUE(made);
      live.emplace(static_cast<std::byte*>((*made)->what().base), *made);
    } else {
      live.erase(std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size())));
    }
    auto& [base, record] =
        *std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
    const auto nbytes = record->what().nbytes;
    EXPECT_EQ(process_registry().find(base + random() % nbytes).get(), record.get());
    const auto past = process_registry().find(base + nbytes);
    EXPECT_NE(past.get(), record.get());
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
  EXPECT_EQ(facts_of(&local).kind, ISTHMUS_KIND_UNKNOWN);
}

TEST(registry_concurrent, finds_while_others_come_and_go) {
  const auto on = host_queue();
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&on, seed] {
      std::mt19937 random{seed};
      for (int step = 0; step < 2000; ++step) {
        const std::size_t nbytes = 1 + random() % 5000;
        auto made = allocation::create(*on, {ISTHMUS_KIND_HOST, nbytes, 0}, nullptr);
        auto* base = static_cast<std::byte*>((*made)->what().base);
        EXPECT_EQ(process_registry().find(base + nbytes / 2).get(), (*made).get());
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus
