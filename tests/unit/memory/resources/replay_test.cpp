// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/replay.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "backend/drivers.hpp"

namespace isthmus {
namespace {

// Returns numbers as addresses, and records its requests in order.
class written_down : public MemoryResource {
 public:
  written_down(Context& home, Device& where)
      : MemoryResource{home, where, ISTHMUS_KIND_HOST, {true, set_of(ISTHMUS_KIND_HOST)}} {}

  Result<void*> allocate(std::size_t nbytes, std::size_t alignment, Queue& on) override {
    if (asked.size() >= fails_at) {
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no more");
    }
    EXPECT_EQ(alignment, 0U);
    auto* address = reinterpret_cast<void*>((asked.size() + 1) * 64);
    live[address] = nbytes;
    asked.push_back({ISTHMUS_TRACE_ALLOCATE, nbytes, &on});
    return address;
  }
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* behind) noexcept override {
    EXPECT_EQ(live.at(pointer), nbytes);
    live.erase(pointer);
    asked.push_back({ISTHMUS_TRACE_FREE, nbytes, behind});
    return {};
  }

  struct request {
    int action;
    std::size_t nbytes;
    Queue* on;
    friend bool operator==(const request&, const request&) = default;
  };
  std::vector<request> asked;
  std::map<void*, std::size_t> live;
  std::size_t fails_at = ~std::size_t{0};
};

class replays_of_events : public ::testing::Test {
 protected:
  void SetUp() override {
    auto found = find_device("host");
    ASSERT_TRUE(found);
    where_ = *found;
    auto home = where_->platform().default_context();
    ASSERT_TRUE(home);
    from_ = make_ref<written_down>(**home, *where_);
    for (auto& each : queues_) {
      auto made = Queue::create(**home, *where_);
      ASSERT_TRUE(made);
      each = *std::move(made);
      raw_.push_back(each.get());
    }
  }
  Result<ReplayResult> play(const std::vector<TraceEvent>& events,
                            std::vector<TraceSample>* samples = nullptr) {
    return replay(*from_, raw_, events,
                  samples == nullptr ? std::span<TraceSample>{} : std::span{*samples});
  }

  Device* where_ = nullptr;
  Ref<written_down> from_;
  Ref<Queue> queues_[3];
  std::vector<Queue*> raw_;
};

// Random events, with reused ids and frees on other queues, and the requests that a resource should
// receive for them.
struct random_trace {
  std::vector<TraceEvent> events;
  std::vector<written_down::request> requests;

  random_trace(std::uint64_t seed, std::span<Queue* const> queues) {
    std::mt19937_64 random{seed};
    std::map<std::uint32_t, std::uint64_t> live;
    for (int number = 0; number < 500; ++number) {
      const auto id = static_cast<std::uint32_t>(random() % 40);
      const auto on = static_cast<std::uint16_t>(random() % queues.size());
      const auto nbytes = 1 + random() % 10'000;
      if (const auto found = live.find(id); found != live.end()) {
        events.push_back({random(), id, on, ISTHMUS_TRACE_FREE});
        requests.push_back({ISTHMUS_TRACE_FREE, found->second, queues[on]});
        live.erase(found);
      } else {
        events.push_back({nbytes, id, on, ISTHMUS_TRACE_ALLOCATE});
        requests.push_back({ISTHMUS_TRACE_ALLOCATE, nbytes, queues[on]});
        live[id] = nbytes;
      }
    }
  }
};

TEST_F(replays_of_events, make_each_request_in_order_and_free_the_remaining_blocks) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const random_trace trace{seed, raw_};
    std::vector<TraceSample> samples(trace.events.size());
    for (auto* seen : {&samples, static_cast<std::vector<TraceSample>*>(nullptr)}) {
      from_->asked.clear();
      ASSERT_TRUE(play(trace.events, seen));
      ASSERT_GE(from_->asked.size(), trace.requests.size());
      EXPECT_TRUE(std::equal(trace.requests.begin(), trace.requests.end(), from_->asked.begin()));
      EXPECT_TRUE(from_->live.empty());
    }
  }
}

TEST_F(replays_of_events, that_fail_free_what_is_there) {
  const random_trace trace{1, raw_};
  for (std::size_t at : {0U, 1U, 7U, 300U}) {
    from_->asked.clear();
    from_->fails_at = at;
    auto played = play(trace.events);
    ASSERT_FALSE(played);
    EXPECT_EQ(played.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(from_->live.empty());
  }
}

TEST_F(replays_of_events, that_are_invalid_allocate_nothing) {
  random_trace trace{2, raw_};
  trace.events.push_back({1, 0, 3, ISTHMUS_TRACE_ALLOCATE});
  auto played = play(trace.events);
  ASSERT_FALSE(played);
  EXPECT_EQ(played.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(from_->asked.empty());
}

TEST_F(replays_of_events, of_which_there_are_none) {
  auto played = play({});
  ASSERT_TRUE(played);
  EXPECT_EQ(played->maps + played->unmaps + played->peak_held_bytes, 0U);
}

}  // namespace
}  // namespace isthmus
