// SPDX-License-Identifier: Apache-2.0
// The current resource: which requests without a resource it serves, of the process and in blocks.
#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class current_resources : public on_upstreams {
 protected:
  void TearDown() override {
    EXPECT_EQ(*isthmus_current_resource_watch(), 0u) << "a test left a resource set";
    on_upstreams::TearDown();
  }
  im::resource counted(im::kind kind) const {
    return im::resource::statistics(im::resource::pool(queue_, kind));
  }
  im::resource default_pool(im::kind kind) const { return im::default_pool(kind, queue_); }
  static std::uint64_t total(const im::resource& resource) {
    return im::statistics_of(resource).total_count;
  }
  void allocate(im::kind kind) const { (void)make(100, kind); }
};
INSTANTIATE_ON_BACKENDS(current_resources);

TEST_P(current_resources, is_the_default_pool_at_first) {
  for (im::kind kind : kinds()) {
    for (im::pool_use use : {im::pool_use::arrays, im::pool_use::buffers}) {
      EXPECT_EQ(im::current_resource(kind, queue_, use), im::default_pool(kind, queue_, use));
    }
    im::resource none = default_pool(kind);
    EXPECT_EQ(isthmus_current_resource(queue_.get(), static_cast<isthmus_kind_t>(kind),
                                       ISTHMUS_NO_DEFAULT_POOL, none.out()),
              ISTHMUS_OK);
    EXPECT_EQ(none.get(), nullptr);
  }
}

TEST_P(current_resources, of_the_process_serves_all_that_names_none) {
  for (im::kind kind : kinds()) {
    const im::resource pool = counted(kind);
    im::set_resource(pool);
    EXPECT_EQ(im::current_resource(kind, queue_), pool);
    const im::buffer buffer = make(1000, kind);
    const auto array = im::empty<float>({10, 10}, kind, {.queue = queue_});
    const auto dynamic = im::empty(im::dtype::int32, {7}, kind, {.queue = queue_});
    EXPECT_TRUE(counts(im::statistics_of(pool), {1428, 3, 1428, 3, 1428, 3}));
    const im::buffer named(10, kind, {.queue = queue_, .resource = default_pool(kind)});
    EXPECT_EQ(total(pool), 3u);
    write(buffer, noise(1000));
    EXPECT_TRUE(same(read(buffer), noise(1000)));
    im::set_resource({});
    allocate(kind);
    EXPECT_EQ(total(pool), 3u) << "the default pool was restored";
  }
}

TEST_P(current_resources, serves_the_device_copy_of_unified_buffers_created_meanwhile) {
  if (!device_.offers(im::kind::device)) GTEST_SKIP() << "no device memory";
  const im::resource pool = counted(im::kind::device);
  im::unified_buffer<float> before(100, {.queue = queue_, .separate = true});
  im::set_resource(pool);
  im::unified_buffer<float> meanwhile(100, {.queue = queue_, .separate = true});
  (void)before.device();
  EXPECT_EQ(total(pool), 0u) << "it was created before";
  im::set_resource({});
  (void)meanwhile.device();
  EXPECT_EQ(total(pool), 1u) << "it keeps the resource";
}

TEST_P(current_resources, is_one_for_each_kind_context_and_device) {
  const im::queue other(im::context({device_}), device_);
  for (im::kind kind : kinds()) {
    const im::resource pool = counted(kind);
    im::set_resource(pool);
    for (im::kind each : kinds()) {
      if (each == kind) continue;
      EXPECT_EQ(im::current_resource(each, queue_), default_pool(each));
    }
    EXPECT_EQ(im::current_resource(kind, other), im::default_pool(kind, other));
    const im::buffer elsewhere(100, kind, {.queue = other});
    EXPECT_EQ(total(pool), 0u);
    im::reset_resource(kind, other);
    EXPECT_EQ(im::current_resource(kind, queue_), pool) << "that was another context's";
    im::reset_resource(kind, queue_);
    EXPECT_EQ(im::current_resource(kind, queue_), default_pool(kind));
  }
}

TEST_P(current_resources, is_replaced_by_the_next_one) {
  for (im::kind kind : kinds()) {
    const im::resource first = counted(kind);
    const im::resource second = counted(kind);
    im::set_resource(first);
    allocate(kind);
    im::set_resource(second);
    allocate(kind);
    im::set_resource(second);
    allocate(kind);
    EXPECT_EQ(total(first), 1u);
    EXPECT_EQ(total(second), 2u);
    im::reset_resource(kind, queue_);
    im::reset_resource(kind, queue_);
    allocate(kind);
    EXPECT_EQ(total(second), 2u);
  }
}

TEST_P(current_resources, of_a_block_precedes_that_of_the_process) {
  for (im::kind kind : kinds()) {
    const im::resource process = counted(kind);
    const im::resource outer = counted(kind);
    const im::resource inner = counted(kind);
    im::set_resource(process);
    {
      const im::using_resource outer_block(outer);
      allocate(kind);
      {
        const im::using_resource inner_block(inner);
        EXPECT_EQ(im::current_resource(kind, queue_), inner);
        allocate(kind);
        const im::using_resource without{im::resource()};
        EXPECT_EQ(im::current_resource(kind, queue_), default_pool(kind));
        allocate(kind);
      }
      EXPECT_EQ(im::current_resource(kind, queue_), outer);
      const im::buffer made = make(100, kind);
      im::set_resource({});
      EXPECT_EQ(im::current_resource(kind, queue_), outer) << "the block is not affected";
    }
    EXPECT_EQ(im::current_resource(kind, queue_), default_pool(kind));
    EXPECT_EQ(total(process), 0u);
    EXPECT_EQ(total(outer), 2u);
    EXPECT_EQ(total(inner), 1u);
  }
}

TEST_P(current_resources, of_an_inner_block_leaves_other_requests_to_the_outer_one) {
  for (im::kind kind : kinds()) {
    const im::resource outer = counted(kind);
    const im::using_resource outer_block(outer);
    for (im::kind other : kinds()) {
      if (other == kind) continue;
      const im::using_resource inner_block(counted(other));
      EXPECT_EQ(im::current_resource(kind, queue_), outer);
    }
  }
}

TEST_P(current_resources, of_a_block_ends_with_an_exception) {
  for (im::kind kind : kinds()) {
    const im::resource limited = im::resource::limit(im::resource::pool(queue_, kind), 1000);
    EXPECT_THROW(
        {
          const im::using_resource block(limited);
          (void)make(1001, kind);
        },
        im::out_of_memory);
    EXPECT_EQ(im::current_resource(kind, queue_), default_pool(kind));
    EXPECT_NO_THROW(allocate(kind));
  }
}

TEST_P(current_resources, of_a_block_belongs_to_its_thread) {
  for (im::kind kind : kinds()) {
    const im::resource process = counted(kind);
    const im::resource mine = counted(kind);
    im::set_resource(process);
    const im::using_resource block(mine);
    std::thread([&] {
      EXPECT_EQ(im::current_resource(kind, queue_), process);
      const im::resource theirs = counted(kind);
      const im::using_resource their_block(theirs);
      allocate(kind);
      EXPECT_EQ(total(theirs), 1u);
    }).join();
    allocate(kind);
    EXPECT_EQ(total(process), 0u);
    EXPECT_EQ(total(mine), 1u);
    im::set_resource({});
  }
}

TEST_P(current_resources, changes_while_threads_allocate) {
  for (im::kind kind : kinds()) {
    const std::array<im::resource, 2> resources{counted(kind), counted(kind)};
    std::atomic<bool> over{false};
    std::atomic<int> made{0};
    std::vector<std::thread> threads;
    for (int each = 0; each < 2; ++each) {
      threads.emplace_back([&] {
        while (!over) {
          allocate(kind);
          ++made;
        }
      });
    }
    for (std::size_t round = 0; round < 100 || made < 100; ++round) {
      im::set_resource(round % 3 == 2 ? im::resource() : resources[round % 3]);
      if (round % 5 == 0) im::reset_resource(kind, queue_);
    }
    over = true;
    for (std::thread& each : threads) each.join();
    im::set_resource({});
    EXPECT_TRUE(eventually([&] {
      return im::statistics_of(resources[0]).current_count == 0 &&
             im::statistics_of(resources[1]).current_count == 0;
    }));
  }
}

TEST_P(current_resources, is_kept_alive_with_its_context) {
  for (im::kind kind : kinds()) {
    im::queue other(im::context({device_}), device_);
    const isthmus_resource_t* raw = nullptr;
    {
      const im::resource pool = im::resource::pool(other, kind);
      raw = pool.get();
      im::set_resource(pool);
    }
    EXPECT_EQ(im::current_resource(kind, other).get(), raw);
    { const im::buffer made(100, kind, {.queue = other}); }
    other = {};  // the context remains for its resource
    im::set_resource({});
    {
      const im::queue next(im::context({device_}), device_);
      EXPECT_EQ(im::current_resource(kind, next), im::default_pool(kind, next));
    }
    const im::using_resource block(im::resource::pool(queue_, kind));  // the block keeps it
    allocate(kind);
  }
}

TEST_P(current_resources, memory_outlives_its_time_as_the_current_one) {
  for (im::kind kind : kinds()) {
    im::buffer made;
    {
      const im::using_resource block(counted(kind));
      made = make(1000, kind);
    }
    write(made, noise(1000));
    EXPECT_TRUE(same(read(made), noise(1000)));
  }
}

// Allocates its own memory without a resource, which must not come from itself.
struct recursive {
  im::kind kind;
  im::queue queue;
  std::map<void*, im::buffer>* made;
  im::resource explicit_resource = {};

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue&) {
    const im::buffer block(nbytes, kind, {.queue = queue, .alignment = alignment});
    if (explicit_resource) {
      const im::using_resource inside(explicit_resource);
      const im::buffer other(1, kind, {.queue = queue});
    }
    return made->emplace(block.pointer(), block).first->first;
  }
  void deallocate(void* pointer, std::size_t, const im::queue&) noexcept { made->erase(pointer); }
};

TEST_P(current_resources, is_none_inside_the_functions_of_a_resource) {
  for (im::kind kind : kinds()) {
    std::map<void*, im::buffer> made;
    const im::resource inside = counted(kind);
    const im::resource custom =
        im::resource::custom(queue_, kind, recursive{kind, queue_, &made, inside});
    im::set_resource(custom);
    {
      const im::using_resource block(custom);
      const im::buffer buffer = make(100, kind);
      EXPECT_EQ(made.size(), 1u);
      EXPECT_EQ(total(inside), 1u) << "a block that the function enters applies";
    }
    im::set_resource({});
    EXPECT_TRUE(eventually([&] { return made.empty(); }));
  }
}

TEST_P(current_resources, is_none_inside_callbacks_for_lack_of_memory) {
  for (im::kind kind : kinds()) {
    int calls = 0;
    const auto allocate_again = [&](std::size_t) {
      ++calls;
      allocate(kind);  // would call this function again if it came from the resource
      return false;
    };
    const im::resource limited = im::resource::limit(im::resource::pool(queue_, kind), 0);
    const im::using_resource block(im::resource::failure_callback(limited, allocate_again));
    EXPECT_THROW(allocate(kind), im::out_of_memory);
    EXPECT_EQ(calls, 1);
    EXPECT_THROW(allocate(kind), im::out_of_memory) << "it is current again";
    EXPECT_EQ(calls, 2);
  }
}

TEST_P(current_resources, bad_arguments_are_refused) {
  const auto kind = static_cast<isthmus_kind_t>(kinds().front());
  isthmus_resource_t* found = nullptr;
  EXPECT_TRUE(refused(isthmus_current_resource(queue_.get(), kind, 0, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"resource"}));
  EXPECT_TRUE(refused(isthmus_current_resource(queue_.get(), kind, 1u << 9, &found),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"0x200"}));
  EXPECT_TRUE(refused(isthmus_default_pool(queue_.get(), kind, ISTHMUS_NO_DEFAULT_POOL, &found),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"flags"}));
  EXPECT_TRUE(refused(isthmus_current_resource(queue_.get(), 7, ISTHMUS_NO_DEFAULT_POOL, &found),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"kind"}));
  EXPECT_TRUE(refused(isthmus_current_resource_reset(queue_.get(), 7),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"kind"}));
  EXPECT_TRUE(refused(isthmus_using_create(nullptr, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT));
  isthmus_using_retain(nullptr), isthmus_using_release(nullptr);
  EXPECT_EQ(isthmus_using_swap(nullptr), nullptr);
  for (im::kind each : {im::kind::device, im::kind::shared, im::kind::host}) {
    if (device_.offers(each)) continue;
    EXPECT_THROW((void)im::current_resource(each, queue_), im::unsupported);
    EXPECT_THROW(im::reset_resource(each, queue_), im::unsupported);
  }
}

// Unlimited nesting: coroutines that start one another, each in a block of its own.
TEST(current_blocks, nest_without_limit) {
  isthmus_using_t* innermost = nullptr;
  for (int each = 0; each < 200'000; ++each) {
    isthmus_using_t* block = nullptr;
    ASSERT_EQ(isthmus_using_create(nullptr, &block), ISTHMUS_OK);
    isthmus_using_swap(block);
    isthmus_using_release(innermost);
    innermost = block;
  }
  isthmus_using_swap(nullptr);
  isthmus_using_release(innermost);
  EXPECT_EQ(*isthmus_current_resource_watch(), 0u);
}

class located_by : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(located_by);

// A resource of C needs no context: the default context of the device is used.
TEST_P(located_by, a_device_without_a_context) {
  const im::queue home = im::queue::of(device_);
  for (im::kind kind : kinds()) {
    const auto raw_kind = static_cast<isthmus_kind_t>(kind);
    std::array<im::resource, 3> made;
    ASSERT_EQ(isthmus_resource_provider(nullptr, device_.get(), raw_kind, made[0].out()),
              ISTHMUS_OK);
    ASSERT_EQ(isthmus_resource_pool(nullptr, device_.get(), raw_kind, nullptr, made[1].out()),
              ISTHMUS_OK);
    isthmus_resource_operations_t operations{};
    operations.struct_size = sizeof operations;
    operations.allocate = [](void*, size_t, size_t, isthmus_queue_t*, void**, const char**) {
      return isthmus_status_t{ISTHMUS_ERROR_OUT_OF_MEMORY};
    };
    operations.deallocate = [](void*, void*, size_t, isthmus_queue_t*) {};
    ASSERT_EQ(
        isthmus_resource_custom(nullptr, device_.get(), raw_kind, &operations, {}, made[2].out()),
        ISTHMUS_OK);
    for (std::size_t each : {0u, 1u}) {
      const im::buffer buffer(100, kind, {.queue = home, .resource = made[each]});
      EXPECT_EQ(buffer.kind(), kind);
    }
    EXPECT_THROW((void)made[2].allocate(100), im::out_of_memory);
  }
  if (can(im::capability::write_combine)) {
    im::resource combined;
    EXPECT_EQ(isthmus_resource_write_combined(nullptr, device_.get(), combined.out()), ISTHMUS_OK);
  }
}

}  // namespace
