// SPDX-License-Identifier: Apache-2.0
// Memory that resources keep but no caller owns serves every request that the driver refuses.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "backend/event.hpp"
#include "buffer/buffer.hpp"
#include "memory/base/other_pools.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/bare_pointers.hpp"
#include "memory/records/recorded_upstream.hpp"
#include "memory/resources/aligned_resource.hpp"
#include "memory/resources/arena_resource.hpp"
#include "memory/resources/custom_resource.hpp"
#include "memory/resources/debug_resource.hpp"
#include "memory/resources/fixed_size_resource.hpp"
#include "memory/resources/monotonic_resource.hpp"
#include "support/sizes.hpp"
#include "unified/unified_buffer.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::unused_memory_test {
namespace {

using sim_test::counted;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;
using support::k_kib;
using support::k_mib;

constexpr std::size_t k_blocks = 8;  // of 1 MiB, all memory of the device
constexpr std::size_t k_wanted = 4 * k_mib;

using resource = Ref<MemoryResource>;

resource provider_of(const rig& sim, UsmKind kind = ISTHMUS_KIND_DEVICE) {
  return make_ref<Provider>(*sim.test_context, *sim.test_device, kind);
}
Ref<Pool> pool_of(const rig& sim, const Pool::Options& how = {.growth_bytes = k_mib}) {
  return expect_value(Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE, how));
}
resource arena_over(MemoryResource& upstream) {
  return make_ref<ArenaResource>(upstream, UINT64_MAX);
}
resource fixed_over(MemoryResource& upstream, std::size_t in_slab = 1) {
  return make_ref<FixedSizeResource>(upstream, k_mib, in_slab);
}
resource monotonic_over(MemoryResource& upstream) {
  return make_ref<MonotonicResource>(upstream, k_mib);
}

struct keeper {
  const char* name;
  resource (*make)(const rig& sim);
};
const keeper k_keepers[] = {
    {"arena", [](const rig& sim) { return arena_over(*provider_of(sim)); }},
    {"arena_over_pool", [](const rig& sim) { return arena_over(*pool_of(sim)); }},
    {"arena_over_arena", [](const rig& sim) { return arena_over(*arena_over(*provider_of(sim))); }},
    {"arena_over_other",
     [](const rig& sim) {
       return arena_over(*make_ref<AlignedResource>(*provider_of(sim), std::size_t{4096}, k_mib));
     }},
    {"fixed", [](const rig& sim) { return fixed_over(*provider_of(sim)); }},
    {"fixed_over_pool", [](const rig& sim) { return fixed_over(*pool_of(sim)); }},
    {"fixed_over_arena", [](const rig& sim) { return fixed_over(*arena_over(*pool_of(sim))); }},
    {"monotonic", [](const rig& sim) { return monotonic_over(*provider_of(sim)); }},
    {"monotonic_over_pool", [](const rig& sim) { return monotonic_over(*pool_of(sim)); }},
};

// Allocates `k_wanted` bytes and frees them.
struct requester {
  const char* name;
  std::function<void(const rig& sim)> take;
};
void take_of(const rig& sim, MemoryResource& from, std::size_t nbytes = k_wanted) {
  auto* const block = expect_value(allocate_raw(from, nbytes, 0, *sim.queue));
  EXPECT_TRUE(deallocate_raw(from, block, nbytes, sim.queue.get()));
}
void take_unified(const rig& sim) {
  UnifiedRequest wanted;
  wanted.nbytes = k_wanted;
  wanted.separate = true;
  const auto made = expect_value(UnifiedBuffer::create(*sim.queue, wanted, nullptr));
  const auto there = made->device({made->all()});
  EXPECT_TRUE(there) << there.failure().message();
}
void take_fixed(const rig& sim) {  // its slab is larger than the request
  const auto from = fixed_over(*provider_of(sim), k_wanted / k_mib);
  const auto made = Buffer::create(*sim.queue, {k_mib, ISTHMUS_KIND_DEVICE, 0}, from.get());
  EXPECT_TRUE(made) << made.failure().message();
}
const requester k_requesters[] = {
    {"buffer",
     [](const rig& sim) {
       const auto made = Buffer::create(*sim.queue, {k_wanted, ISTHMUS_KIND_DEVICE, 0});
       EXPECT_TRUE(made) << made.failure().message();
     }},
    {"unified", take_unified},
    {"driver", [](const rig& sim) { take_of(sim, *provider_of(sim)); }},
    {"pool", [](const rig& sim) { take_of(sim, *pool_of(sim)); }},
    {"pool_over_other",
     [](const rig& sim) {
       take_of(sim, *pool_of(sim, {.growth_bytes = k_mib,
                                   .upstream = sim_test::expect_value(
                                       RecordedUpstream::create(provider_of(sim)))}));
     }},
    {"initial_bytes",
     [](const rig& sim) {
       const auto made = pool_of(sim, {.growth_bytes = k_mib, .initial_bytes = k_wanted});
       EXPECT_EQ(made->usage().held_bytes, k_wanted);
     }},
    {"arena", [](const rig& sim) { take_of(sim, *arena_over(*provider_of(sim))); }},
    {"arena_over_pool", [](const rig& sim) { take_of(sim, *arena_over(*pool_of(sim))); }},
    {"fixed", take_fixed},
    {"monotonic", [](const rig& sim) { take_of(sim, *monotonic_over(*provider_of(sim))); }},
};

class unused_memory : public testing::Test {
 protected:
  unused_memory() : sim_{"capacity=8MiB"} {}

  std::vector<void*> take_all(MemoryResource& of) {
    std::vector<void*> blocks;
    for (std::size_t each = 0; each < k_blocks; ++each) {
      blocks.push_back(expect_value(of.allocate(k_mib, 0, *sim_.queue)));
    }
    return blocks;
  }
  void free(MemoryResource& of, const std::vector<void*>& blocks) {
    for (auto* each : blocks) {
      EXPECT_TRUE(of.deallocate(each, k_mib, sim_.queue.get()));
    }
  }
  // The resource holds all memory of the device. All but one block, which it returns, is free.
  void* fill(MemoryResource& with) {
    auto blocks = take_all(with);
    auto* const live = blocks.front();
    blocks.erase(blocks.begin());
    free(with, blocks);
    return live;
  }

  // The resource serves the next block from memory that it holds.
  void expect_kept(MemoryResource& by) {
    const auto calls = sim_.calls("allocate");
    take_of(sim_, by, k_mib);
    EXPECT_EQ(sim_.calls("allocate"), calls);
  }

  void serve_the_pool_below(std::chrono::nanoseconds longest_wait) {
    const auto below = pool_of(sim_, {.growth_bytes = k_mib, .max_wait = longest_wait});
    const auto keeps = fixed_over(*below);
    auto* const live = fill(*keeps);
    take_of(sim_, *below);
    free(*keeps, {live});
  }

  rig sim_;
};

class unused_memory_of : public unused_memory,
                         public testing::WithParamInterface<std::tuple<keeper, requester>> {};
INSTANTIATE_TEST_SUITE_P(each, unused_memory_of,
                         testing::Combine(testing::ValuesIn(k_keepers),
                                          testing::ValuesIn(k_requesters)),
                         [](const auto& of) {
                           return std::string{std::get<0>(of.param).name} + "_for_" +
                                  std::get<1>(of.param).name;
                         });

TEST_P(unused_memory_of, serves_every_request) {
  const auto keeps = std::get<0>(GetParam()).make(sim_);
  auto* const live = fill(*keeps);
  const auto bytes = counted(k_mib, 3);
  EXPECT_TRUE(sim_.copy(live, bytes.data(), k_mib)->wait({}));
  std::get<1>(GetParam()).take(sim_);
  EXPECT_EQ(sim_.read(live, k_mib), bytes);
  free(*keeps, {live});
  auto* const again = expect_value(allocate_raw(*keeps, k_mib, 0, *sim_.queue));
  EXPECT_TRUE(deallocate_raw(*keeps, again, k_mib, sim_.queue.get()));
}

TEST_F(unused_memory, serves_the_resource_that_keeps_it) {
  const auto keeps = arena_over(*pool_of(sim_));
  auto* const live = fill(*keeps);
  take_of(sim_, *keeps);
  free(*keeps, {live});
}

TEST_F(unused_memory, serves_the_pool_below) { serve_the_pool_below(std::chrono::seconds{1}); }

// The pool inspects at once the memory that was returned to it.
TEST_F(unused_memory, serves_the_pool_below_that_waits_for_nothing) {
  serve_the_pool_below(std::chrono::seconds{0});
}

TEST_F(unused_memory, stays_where_pools_have_enough) {
  const auto keeps = fixed_over(*provider_of(sim_));
  const auto below = pool_of(sim_);
  for (auto* of : {keeps.get(), static_cast<MemoryResource*>(below.get())}) {
    std::vector<void*> blocks;
    for (std::size_t each = 0; each < k_blocks / 2; ++each) {
      blocks.push_back(expect_value(of->allocate(k_mib, 0, *sim_.queue)));
    }
    free(*of, blocks);
  }
  take_of(sim_, *provider_of(sim_));
  expect_kept(*keeps);
}

TEST_F(unused_memory, of_other_devices_stays) {
  const auto keeps = fixed_over(*provider_of(sim_));
  free(*keeps, {fill(*keeps)});
  const rig elsewhere{"capacity=1MiB"};
  const auto there = provider_of(elsewhere);
  auto* const all = expect_value(allocate_raw(*there, k_mib, 0, *elsewhere.queue));
  expect_failure(allocate_raw(*there, k_mib, 0, *elsewhere.queue), ISTHMUS_ERROR_OUT_OF_MEMORY);
  expect_kept(*keeps);
  EXPECT_TRUE(deallocate_raw(*there, all, k_mib, elsewhere.queue.get()));
}

TEST_F(unused_memory, stays_where_a_request_may_not_wait) {
  const auto keeps = fixed_over(*provider_of(sim_));
  free(*keeps, {fill(*keeps)});
  no_wait = 1;
  const auto made = allocate_raw(*provider_of(sim_), k_mib, 0, *sim_.queue);
  no_wait = 0;
  expect_failure(made, ISTHMUS_ERROR_OUT_OF_MEMORY);
  expect_kept(*keeps);
}

TEST_F(unused_memory, of_a_destroyed_resource_is_not_searched) {
  {
    const auto keeps = fixed_over(*provider_of(sim_));
    free(*keeps, {fill(*keeps)});
  }
  take_of(sim_, *provider_of(sim_), k_blocks * k_mib);
}

// Repeated many times, because the thread that completes the work also completes what waits for it,
// possibly after the request noticed that the work has ended.
TEST_F(unused_memory, that_work_still_uses_is_waited_for) {
  constexpr int k_rounds = 40;
  const auto bytes = counted(k_kib);
  for (int round = 0; round < k_rounds; ++round) {
    for (const auto& of : {k_keepers[0], k_keepers[5], k_keepers[7]}) {
      const auto keeps = of.make(sim_);
      const auto blocks = take_all(*keeps);
      const auto gate = make_ref<HostEvent>();
      const auto ended = sim_.copy(blocks.front(), bytes.data(), bytes.size(), {gate});
      free(*keeps, blocks);
      std::thread opener{[&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        gate->finish({});
      }};
      take_of(sim_, *provider_of(sim_), k_blocks * k_mib);
      EXPECT_FALSE(ended->pending()) << of.name;
      opener.join();
    }
  }
}

TEST_F(unused_memory, of_a_monotonic_resource_is_a_chunk_of_which_all_was_freed) {
  const auto keeps = monotonic_over(*provider_of(sim_));
  std::vector<void*> blocks;
  for (int each = 0; each < 3; ++each) {  // chunks of 1 MiB and 2 MiB
    blocks.push_back(expect_value(keeps->allocate(k_mib, 0, *sim_.queue)));
  }
  free(*keeps, {blocks[1]});
  expect_failure(allocate_raw(*provider_of(sim_), 7 * k_mib, 0, *sim_.queue),
                 ISTHMUS_ERROR_OUT_OF_MEMORY);
  free(*keeps, {blocks[2]});
  take_of(sim_, *provider_of(sim_), 7 * k_mib);
  expect_failure(keeps->deallocate(blocks[2], k_mib, sim_.queue.get()),
                 ISTHMUS_ERROR_INVALID_ARGUMENT);
  free(*keeps, {blocks[0]});
}

// The USM kinds that it supports do not count towards the capacity.
TEST_F(unused_memory, of_a_debug_resource_is_what_it_keeps_to_inspect) {
  const auto below = provider_of(sim_, ISTHMUS_KIND_SHARED);
  const auto keeps = expect_value(DebugResource::create(*below, 64 * k_mib));
  auto* const live = expect_value(keeps->allocate(k_mib, 0, *sim_.queue));
  free(*keeps, {expect_value(keeps->allocate(k_mib, 0, *sim_.queue))});
  const auto held = below->usage().held_bytes;
  sim_.configure("fail=allocate:1");
  take_of(sim_, *provider_of(sim_), k_mib);
  EXPECT_LT(below->usage().held_bytes, held - k_mib / 2);
  EXPECT_TRUE(keeps->verify());
  free(*keeps, {live});
}

// A resource of the program that holds its lock while it calls the library.
struct locked_source {
  resource upstream;
  std::mutex lock;

  static Status allocate(void* self, std::size_t nbytes, std::size_t alignment, isthmus_queue_t* on,
                         void** out, const char**) {
    auto& of = *static_cast<locked_source*>(self);
    const std::lock_guard hold{of.lock};
    auto made = allocate_raw(*of.upstream, nbytes, alignment, *reinterpret_cast<Queue*>(on));
    *out = made ? *made : nullptr;
    return made ? Status{ISTHMUS_OK} : made.failure().code();
  }
  static void deallocate(void* self, void* pointer, std::size_t nbytes, isthmus_queue_t* on) {
    auto& of = *static_cast<locked_source*>(self);
    const std::lock_guard hold{of.lock};
    EXPECT_TRUE(deallocate_raw(*of.upstream, pointer, nbytes, reinterpret_cast<Queue*>(on)));
  }
};

TEST_F(unused_memory, is_released_outside_the_locks_of_other_resources) {
  locked_source source{provider_of(sim_), {}};
  CustomResource::Operations calls{};
  calls.struct_size = sizeof calls;
  calls.allocate = &locked_source::allocate;
  calls.deallocate = &locked_source::deallocate;
  const auto custom =
      make_ref<CustomResource>(*sim_.test_context, *sim_.test_device, ISTHMUS_KIND_DEVICE, calls,
                               Owner{isthmus_owner_t{&source, nullptr}});
  const auto keeps = fixed_over(*custom);
  auto* const live = fill(*keeps);
  take_of(sim_, *custom);
  free(*keeps, {live});
}

}  // namespace
}  // namespace isthmus::unused_memory_test
