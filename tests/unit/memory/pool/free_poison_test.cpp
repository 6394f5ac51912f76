// SPDX-License-Identifier: Apache-2.0
// Under AddressSanitizer, pool memory that no caller owns is poisoned, and no other memory: every
// invalid access is reported, no valid one is.

#include "memory/pool/free_poison.hpp"

#include <sys/mman.h>

#include <cstring>

#include "backend/drivers.hpp"
#include "memory/pool/pool.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

using support::k_kib;
using support::k_mib;

// The first poisoned byte. Null if there is none.
void* poisoned_in([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t nbytes) {
#if ISTHMUS_ADDRESS_SANITIZER
  return __asan_region_is_poisoned(begin, nbytes);
#else
  return nullptr;
#endif
}

void read_byte(const std::byte* at) {
  static_cast<void>(*static_cast<const volatile std::byte*>(at));
}

struct way {
  const char* name;
  UsmKind kind;
  bool remaps;
};

class free_poison_test : public testing::TestWithParam<way> {
 protected:
  void SetUp() override {
    if (!k_address_sanitizer) {
      GTEST_SKIP() << "only a build with AddressSanitizer has poison";
    }
    device_ = expect_value(find_device("host"));
    on_ =
        expect_value(Queue::create(*expect_value(device_->platform().default_context()), *device_));
    from_ = expect_value(
        Pool::create(on_->context(), *device_, GetParam().kind, {.remaps = GetParam().remaps}));
  }
  std::byte* take(std::size_t nbytes) {
    return static_cast<std::byte*>(expect_value(from_->allocate(nbytes, 0, *on_)));
  }
  void give(std::byte* block, std::size_t nbytes, Queue* behind) {
    EXPECT_TRUE(from_->deallocate(block, nbytes, behind));
  }

  Device* device_ = nullptr;
  Ref<Queue> on_;
  Ref<Pool> from_;
};
INSTANTIATE_TEST_SUITE_P(ways, free_poison_test,
                         testing::Values(way{"device", ISTHMUS_KIND_DEVICE, true},
                                         way{"shared", ISTHMUS_KIND_SHARED, true},
                                         way{"host", ISTHMUS_KIND_HOST, true},
                                         way{"fixed", ISTHMUS_KIND_HOST, false}),
                         [](const auto& instance) { return std::string{instance.param.name}; });
using free_poison_death_test = free_poison_test;
INSTANTIATE_TEST_SUITE_P(ways, free_poison_death_test,
                         testing::Values(way{"device", ISTHMUS_KIND_DEVICE, true},
                                         way{"fixed", ISTHMUS_KIND_HOST, false}),
                         [](const auto& instance) { return std::string{instance.param.name}; });

TEST_P(free_poison_death_test, reports_accesses_to_a_freed_block) {
  for (const std::size_t nbytes : {1000 * std::size_t{1}, 3 * k_mib}) {
    auto* const block = take(nbytes);
    read_byte(block);
    give(block, nbytes, on_.get());
    EXPECT_DEATH(read_byte(block), "use-after-poison") << nbytes;
    EXPECT_DEATH(std::memset(block + nbytes / 2, 0, 1), "use-after-poison") << nbytes;
  }
}

TEST_P(free_poison_death_test, reports_accesses_past_a_block) {
  auto* const small = take(1024);
  EXPECT_DEATH(read_byte(small + 1024), "use-after-poison");
  auto* const large = take(k_mib);
  EXPECT_DEATH(read_byte(large + k_mib), "use-after-poison");
  give(small, 1024, nullptr);
  give(large, k_mib, nullptr);
}

TEST_P(free_poison_test, is_on_what_was_freed_warm) {
  for (const std::size_t nbytes : {256 * k_kib, k_mib}) {
    give(take(nbytes), nbytes, on_.get());
    auto* const block = static_cast<std::byte*>(from_->allocate_fast(nbytes, 0, on_.get()));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(poisoned_in(block, nbytes), nullptr);
    ASSERT_TRUE(from_->deallocate_fast(block, nbytes, on_.get()));
    EXPECT_EQ(poisoned_in(block, nbytes), block);
    EXPECT_EQ(poisoned_in(block + nbytes - 8, 8), block + nbytes - 8);
  }
}

TEST_P(free_poison_test, is_not_on_what_a_caller_has) {
  std::vector<std::pair<std::byte*, std::size_t>> all;
  for (unsigned round = 0; round < 3; ++round) {  // sizes differ from those freed in the last round
    for (std::size_t nbytes = 1; nbytes < 3 * k_mib; nbytes = nbytes * 3 / 2 + 1 + round) {
      all.emplace_back(take(nbytes), nbytes);
      EXPECT_EQ(poisoned_in(all.back().first, nbytes), nullptr) << nbytes;
      std::memset(all.back().first, 1, nbytes);
    }
    for (const auto& [block, nbytes] : all) {
      EXPECT_EQ(poisoned_in(block, nbytes), nullptr) << "others were freed";
      give(block, nbytes, nbytes % 2 == 0 ? on_.get() : nullptr);
    }
    all.clear();
    from_->trim(SIZE_MAX);
  }
}

TEST_P(free_poison_test, is_not_on_what_work_still_uses) {
  for (const std::size_t nbytes : {100 * k_kib, 3 * k_mib}) {
    auto* const block = take(nbytes);
    std::memset(block, 7, nbytes);
    std::vector<std::byte> copied(nbytes);
    const auto gate = make_ref<HostEvent>();
    const std::vector<Ref<Event>> after{gate};
    const auto done = expect_value(on_->copy(copied.data(), block, nbytes, after));
    give(block, nbytes, on_.get());
    EXPECT_EQ(poisoned_in(block, nbytes), nullptr);
    from_->trim(0);
    EXPECT_EQ(poisoned_in(block, nbytes), nullptr) << "the pool looked, and it still is";
    gate->finish({});
    EXPECT_TRUE(done->wait({}));
    EXPECT_EQ(copied.back(), std::byte{7});
  }
}

TEST_P(free_poison_test, comes_when_the_pool_learns_that_work_has_ended) {
  for (const std::size_t nbytes : {100 * k_kib, 3 * k_mib}) {
    auto* const live = take(nbytes);  // keeps its slab in use
    auto* const late = take(nbytes);
    auto* const block = take(nbytes);
    const auto gate = make_ref<HostEvent>();
    const std::vector<Ref<Event>> after{gate};
    const auto done = expect_value(on_->fence(after));
    give(block, nbytes, on_.get());
    from_->trim(SIZE_MAX);
    gate->finish({});
    EXPECT_TRUE(done->wait({}));
    // The thread that completes a fence wakes waiting threads before it notifies the pool.
    EXPECT_TRUE(support::eventually([&] { return from_->fences().running().empty(); }));
    EXPECT_EQ(poisoned_in(block, nbytes), nullptr);
    give(late, nbytes, nullptr);
    from_->trim(SIZE_MAX);
    EXPECT_EQ(poisoned_in(block, nbytes), block) << nbytes;
    give(live, nbytes, nullptr);
  }
}

TEST_P(free_poison_test, does_not_stay_where_memory_was) {
  if (!GetParam().remaps || !device_->can(ISTHMUS_CAN_REMAP)) {
    GTEST_SKIP() << "what the C++ allocator gets back it marks itself";
  }
  constexpr std::size_t k_nbytes = 4 * k_mib;
  auto* const block = take(k_nbytes);
  give(block, k_nbytes, nullptr);
  EXPECT_EQ(poisoned_in(block, k_nbytes), block);
  from_->trim(0);
  EXPECT_EQ(poisoned_in(block, k_nbytes), nullptr);
  auto* const others = mmap(block, k_nbytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(others, block);
  std::memset(others, 1, k_nbytes);
  munmap(others, k_nbytes);
}

TEST_P(free_poison_test, does_not_stay_where_memory_left) {
  if (!GetParam().remaps || !device_->can(ISTHMUS_CAN_REMAP)) {
    GTEST_SKIP() << "memory that cannot move";
  }
  constexpr std::size_t k_nbytes = 4 * k_mib;
  std::vector<std::byte*> blocks;
  for (int each = 0; each < 8; ++each) {
    blocks.push_back(take(k_nbytes));
  }
  for (std::size_t each = 0; each < blocks.size(); each += 2) {
    give(blocks[each], k_nbytes, nullptr);
  }
  ThreadCache::flush_own(*from_);
  auto* const large = take(4 * k_nbytes);
  EXPECT_EQ(poisoned_in(large, 4 * k_nbytes), nullptr);
  std::size_t left = 0;
  for (auto* each : blocks) {
    if (process_page_map.find(each) == nullptr) {
      ++left;
      EXPECT_EQ(poisoned_in(each, k_nbytes), nullptr);
    }
  }
  EXPECT_EQ(left, 4U);
  give(large, 4 * k_nbytes, nullptr);
  for (std::size_t each = 1; each < blocks.size(); each += 2) {
    give(blocks[each], k_nbytes, nullptr);
  }
  from_ = {};
  for (auto* each : blocks) {
    EXPECT_EQ(poisoned_in(each, k_nbytes), nullptr) << "the pool has gone";
  }
}

TEST(free_poison_of_a_device, is_where_the_host_reaches_the_memory) {
  if (!k_address_sanitizer) {
    GTEST_SKIP() << "only a build with AddressSanitizer has poison";
  }
  rig sim;
  for (const UsmKind kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    const auto from = expect_value(Pool::create(*sim.test_context, *sim.test_device, kind, {}));
    for (const std::size_t nbytes : {std::size_t{1024}, k_mib}) {
      auto* const block = expect_value(from->allocate(nbytes, 0, *sim.queue));
      EXPECT_TRUE(from->deallocate(block, nbytes, nullptr));
      EXPECT_EQ(poisoned_in(block, nbytes), kind == ISTHMUS_KIND_DEVICE ? nullptr : block);
    }
  }
}

}  // namespace
}  // namespace isthmus::sim_test
