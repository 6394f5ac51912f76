// SPDX-License-Identifier: Apache-2.0
// The host runs out of memory during a call. The failure is reported, nothing is lost, there are no
// partial effects, and a free needs no memory. Tested on the backends whose driver is part of the
// library, because other drivers may behave differently.
#include <array>
#include <functional>
#include <thread>

#include "support/backends.hpp"
#include "support/no_memory.hpp"

namespace {

using namespace support;

class no_memory : public on_backend {};
INSTANTIATE_TEST_SUITE_P(backends, no_memory, testing::Values("host", "sim", "sim_late"),
                         backend_label);

struct block {
  void* at;
  std::size_t nbytes;
  isthmus_queue_t* on;
};

// A sequence of calls of the C interface that ends at the first failure.
class calls {
 public:
  explicit calls(im::queue on) : queue_{std::move(on)} { blocks_.reserve(64); }
  calls(const calls&) = delete;
  calls& operator=(const calls&) = delete;
  ~calls() {
    for (const block& each : blocks_) {
      EXPECT_EQ(give(each), ISTHMUS_OK);
    }
    isthmus_buffer_release(buffer_);
    isthmus_queue_release(other_);
    isthmus_resource_release(pool_);
  }

  // Returns whether all calls succeeded. `last` has the status of the last one.
  bool make() noexcept {
    isthmus_pool_options_t options{};
    options.struct_size = sizeof options;
    options.growth_bytes = 2 * k_mib;
    options.wait_ns = -1;
    return ok(isthmus_resource_pool(home_.get(), where_.get(), ISTHMUS_KIND_SHARED, &options,
                                    &pool_)) &&
           ok(isthmus_queue_create(home_.get(), where_.get(), &other_));
  }
  bool allocate() noexcept {
    for (std::size_t nbytes : {std::size_t{64}, std::size_t{3000}, std::size_t{70'000},
                               std::size_t{300'000}, k_mib, 3 * k_mib, 5 * k_mib}) {
      for (auto* on : {queue_.get(), other_}) {
        block made{nullptr, nbytes, on};
        if (!ok(isthmus_resource_allocate(pool_, nbytes, 0, on, &made.at))) return false;
        blocks_.push_back(made);
      }
    }
    return true;
  }
  bool free_every_other() noexcept {
    for (std::size_t each = 0; each < blocks_.size(); ++each) {
      if (!ok(give(blocks_[each]))) return false;
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(each));
    }
    return true;
  }
  bool free_all() noexcept {
    for (; !blocks_.empty(); blocks_.pop_back()) {
      if (!ok(give(blocks_.back()))) return false;
    }
    return true;
  }
  bool use_a_buffer() noexcept {
    const char seven = 7;
    return ok(isthmus_buffer_create(k_mib, ISTHMUS_KIND_SHARED, 0, queue_.get(), pool_,
                                    &buffer_)) &&
           ok(fill(&seven)) && ok(isthmus_buffer_wait(buffer_, -1));
  }
  bool trim() noexcept { return ok(isthmus_resource_trim(pool_, 0, nullptr)); }

  [[nodiscard]] isthmus_status_t last() const noexcept { return last_; }
  [[nodiscard]] std::uint64_t held() const noexcept {
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    return isthmus_resource_info(pool_, &info) == ISTHMUS_OK ? info.held_bytes : UINT64_MAX;
  }

 private:
  bool ok(isthmus_status_t told) noexcept { return (last_ = told) == ISTHMUS_OK; }
  isthmus_status_t give(const block& gone) noexcept {
    return isthmus_resource_deallocate(pool_, gone.at, gone.nbytes, 0, gone.on);
  }
  isthmus_status_t fill(const char* with) noexcept {
    const isthmus_endpoint_t whole{buffer_, nullptr, 0};
    return isthmus_fill(queue_.get(), &whole, with, 1, k_mib, nullptr, nullptr);
  }

  const im::queue queue_;
  const im::context home_ = queue_.context();
  const im::device where_ = queue_.device();
  isthmus_resource_t* pool_ = nullptr;
  isthmus_queue_t* other_ = nullptr;
  isthmus_buffer_t* buffer_ = nullptr;
  std::vector<block> blocks_;
  isthmus_status_t last_ = ISTHMUS_OK;
};

TEST_P(no_memory, a_free_needs_none) {
  calls play{queue_};
  ASSERT_TRUE(play.make() && play.allocate() && play.allocate());
  bool freed = false;
  {
    const without_memory now;
    freed = play.free_every_other() && play.free_all();
  }
  EXPECT_TRUE(freed) << isthmus_error_message();
  EXPECT_TRUE(play.trim());
  EXPECT_EQ(play.held(), 0U);
}

// Frees a block that two operations use, with memory for `served` allocations. Returns whether an
// allocation failed.
bool free_in_use(const im::device& where, const im::queue& on, std::size_t nbytes, long served,
                 shortage kind) {
  const im::resource pool =
      im::resource::pool(on.context(), im::kind::shared, {.initial_bytes = 8 * k_mib}, where);
  const im::queue other{on.context(), where};
  const im::host_event known;
  const im::host_event pending;
  void* const block = pool.allocate(nbytes, 0, on);
  pool.record(block, known);
  const auto behind = other.fence({pending});
  isthmus_status_t told = ISTHMUS_OK;
  isthmus_status_t again = ISTHMUS_OK;
  bool failed = false;
  {
    const without_memory later{served, kind};
    told = isthmus_resource_deallocate(pool.get(), block, nbytes, 0, other.get());
    again = isthmus_resource_deallocate(pool.get(), block, nbytes, 0, other.get());
    failed = without_memory::failed();
  }
  EXPECT_EQ(told, ISTHMUS_OK) << isthmus_error_message();
  EXPECT_EQ(again, ISTHMUS_ERROR_INVALID_ARGUMENT);
  known.complete();
  pool.trim();
  EXPECT_GT(pool.usage().held, 0U) << "the queue that it was freed behind still runs";
  pending.complete();
  behind.wait();
  for (int i = 0; i < 5000 && pool.usage().held != 0; ++i) {
    std::this_thread::sleep_for(1ms);
    pool.trim();
  }
  EXPECT_EQ(pool.usage().held, 0U);
  return failed;
}

TEST_P(no_memory, a_free_of_what_is_in_use_needs_none) {
  for (const std::size_t nbytes : {std::size_t{1000}, 3 * k_mib}) {
    // The simulator needs memory for its agenda to report that an event has completed.
    const bool any = std::string(GetParam()) == "host";
    fail_each_allocation([&](long served, shortage kind) {
      return free_in_use(device_, queue_, nbytes, served, kind) && any;
    });
  }
}

TEST_P(no_memory, any_allocation_may_fail) {
  fail_each_allocation([&](long served, shortage kind) {
    calls play{queue_};
    bool done = false;
    bool failed = false;
    {
      const without_memory later{served, kind};
      done = play.make() && play.allocate() && play.use_a_buffer() && play.free_every_other() &&
             play.allocate() && play.trim() && play.free_all();
      failed = without_memory::failed();
    }
    if (!done) {
      EXPECT_EQ(play.last(), ISTHMUS_ERROR_OUT_OF_MEMORY)
          << describe(served, kind) << ": " << isthmus_error_message();
    }
    if (!failed) {
      EXPECT_TRUE(done);
      EXPECT_GT(served, 20);
    }
    return failed && !HasFailure();
  });
}

// Adaptors and resources that cut blocks, over a given upstream.
using maker = isthmus_status_t (*)(isthmus_resource_t* upstream, isthmus_resource_t** made);
const std::vector<std::pair<const char*, maker>> k_makers{
    {"tracking",
     [](isthmus_resource_t* upstream, isthmus_resource_t** made) {
       return isthmus_resource_allocation_tracker(upstream, 0, nullptr, {}, made);
     }},
    {"monotonic",
     [](isthmus_resource_t* upstream, isthmus_resource_t** made) {
       return isthmus_resource_monotonic(upstream, 1000, made);
     }},
    {"fixed size",
     [](isthmus_resource_t* upstream, isthmus_resource_t** made) {
       return isthmus_resource_fixed_size(upstream, 4000, 4, made);
     }},
    {"arena", [](isthmus_resource_t* upstream,
                 isthmus_resource_t** made) { return isthmus_resource_arena(upstream, 0, made); }},
    {"prefetch", &isthmus_resource_prefetch},
    {"tracking with stacks",
     [](isthmus_resource_t* upstream, isthmus_resource_t** made) {
       return isthmus_resource_allocation_tracker(upstream, 8, nullptr, {}, made);
     }},
};

// Allocations of the C library fail too, which may allocate something for a new thread.
TEST_P(no_memory, a_free_may_be_a_threads_first_call) {
  const im::resource pool = im::resource::pool(queue_.context(), im::kind::shared, {}, device_);
  void* const block = pool.allocate(1000, 0, queue_);
  std::thread([&] {
    const without_memory from_here;
    pool.deallocate(block, 1000, 0, queue_);
  }).join();
  pool.verify();
}

TEST_P(no_memory, a_threads_first_error_is_reported) {
  const im::resource pool = im::resource::pool(queue_.context(), im::kind::shared,
                                               {.limit_bytes = 8 * k_mib, .wait = 0s}, device_);
  const im::resource counted = im::resource::statistics(pool);
  std::thread([&] {
    void* at = nullptr;
    isthmus_status_t told = ISTHMUS_OK;
    isthmus_status_t asked = ISTHMUS_OK;
    isthmus_snapshot_t seen{};
    seen.struct_size = sizeof seen;
    {
      const without_memory from_here;
      told = isthmus_resource_allocate(counted.get(), 64 * k_mib, 0, queue_.get(), &at);
      asked = isthmus_error_snapshot(&seen);
    }
    EXPECT_EQ(told, ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(asked, ISTHMUS_OK);
    EXPECT_NE(std::string{isthmus_error_message()}.find("8388608"), std::string::npos)
        << isthmus_error_message();
    EXPECT_EQ(seen.requested_bytes, 64 * k_mib);
  }).join();
}

struct without_any {
  void* allocate(std::size_t, std::size_t, const im::queue&) { throw std::bad_alloc{}; }
  void deallocate(void*, std::size_t, const im::queue&) noexcept {}
};

TEST_P(no_memory, exceptions_of_an_allocator_are_reported) {
  const im::resource custom =
      im::resource::custom(queue_.context(), im::kind::host, without_any{}, device_);
  std::thread([&] {
    void* at = nullptr;
    isthmus_status_t told = ISTHMUS_OK;
    {
      const without_memory from_here;
      told = isthmus_resource_allocate(custom.get(), 10, 0, queue_.get(), &at);
    }
    EXPECT_EQ(told, ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_NE(std::string{isthmus_error_message()}.find("bad_alloc"), std::string::npos)
        << isthmus_error_message();
  }).join();
}

// Allocates several blocks of a resource, as far as there is memory.
class blocks_of {
 public:
  explicit blocks_of(im::queue on) : queue_{std::move(on)} { blocks_.reserve(64); }
  blocks_of(const blocks_of&) = delete;
  blocks_of& operator=(const blocks_of&) = delete;
  ~blocks_of() {
    for (const block& each : blocks_) {
      EXPECT_EQ(isthmus_resource_deallocate(of_, each.at, each.nbytes, 0, queue_.get()), ISTHMUS_OK)
          << isthmus_error_message();
    }
    isthmus_resource_release(of_);
  }
  // Returns the first status that is not ISTHMUS_OK.
  isthmus_status_t take(maker make, isthmus_resource_t* upstream) noexcept {
    auto told = make(upstream, &of_);
    for (std::size_t nbytes = 10; nbytes < 4000 && told == ISTHMUS_OK; nbytes += 333) {
      void* at = nullptr;
      told = isthmus_resource_allocate(of_, nbytes, 0, queue_.get(), &at);
      if (told == ISTHMUS_OK) blocks_.push_back({at, nbytes, queue_.get()});
    }
    return told;
  }

 private:
  const im::queue queue_;
  isthmus_resource_t* of_ = nullptr;
  std::vector<block> blocks_;
};

TEST_P(no_memory, no_block_of_upstreams_is_lost) {
  const im::resource pool = im::resource::pool(queue_.context(), im::kind::shared, {}, device_);
  for (const auto& [name, make] : k_makers) {
    // The simulator needs memory to submit an operation.
    if (make == &isthmus_resource_prefetch && std::string(GetParam()) != "host") continue;
    fail_each_allocation([&](long served, shortage kind) {
      const im::resource counted = im::resource::statistics(pool);
      isthmus_status_t told = ISTHMUS_OK;
      bool failed = false;
      {
        blocks_of some{queue_};
        const without_memory later{served, kind};
        told = some.take(make, counted.get());
        failed = without_memory::failed();
      }
      EXPECT_EQ(told, told == ISTHMUS_OK ? ISTHMUS_OK : ISTHMUS_ERROR_OUT_OF_MEMORY)
          << name << ", " << describe(served, kind) << ": " << isthmus_error_message();
      EXPECT_TRUE(failed || told == ISTHMUS_OK);
      EXPECT_EQ(im::statistics_of(counted).current_count, 0U)
          << name << ", " << describe(served, kind);
      return failed && !HasFailure();
    });
  }
}

// A call either has its whole effect or none, and reports which. It can be repeated.
TEST_P(no_memory, a_current_resource_is_set_or_unchanged) {
  const im::resource pool = im::resource::pool(queue_, im::kind::shared);
  const im::resource before = im::current_resource(im::kind::shared, queue_);
  fail_each_allocation([&](long served, shortage kind) {
    isthmus_using_t* block = nullptr;
    isthmus_status_t told = ISTHMUS_OK;
    bool failed = false;
    {
      const without_memory later{served, kind};
      told = isthmus_using_create(pool.get(), &block);
      if (told == ISTHMUS_OK) told = isthmus_current_resource_set(pool.get());
      failed = without_memory::failed();
    }
    const bool done = told == ISTHMUS_OK;
    EXPECT_EQ(told, done ? ISTHMUS_OK : ISTHMUS_ERROR_OUT_OF_MEMORY) << describe(served, kind);
    EXPECT_EQ(im::current_resource(im::kind::shared, queue_), done ? pool : before);
    isthmus_using_release(block);
    im::set_resource({});
    EXPECT_EQ(im::current_resource(im::kind::shared, queue_), before);
    EXPECT_EQ(*isthmus_current_resource_watch(), 0u);
    return failed && !HasFailure();
  });
}

}  // namespace
