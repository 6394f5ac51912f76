// SPDX-License-Identifier: Apache-2.0
// Events: waiting, timestamps, ordering after host events, and the consequences of a failed one.

#include <algorithm>
#include <chrono>
#include <thread>

#include "os/futex.hpp"
#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

using namespace std::chrono_literals;

os::Deadline in(std::chrono::milliseconds time) { return os::Clock::now() + time; }

class opencl_event : public opencl_test {
 protected:
  void SetUp() override {
    opencl_test::SetUp();
    if (!IsSkipped()) {
      made_ = std::make_unique<block>(test_context(), test_device(), 4096);
      finish(test_queue().fill(made_->at(), {}, 4096, {}));
    }
  }
  // A copy of `bytes_` after one event, or after several.
  [[nodiscard]] Ref<Event> copy_behind(Queue& where_to, const Ref<Event>& before,
                                       std::size_t offset = 0) {
    return copy_behind_all(where_to, std::span{&before, 1}, offset);
  }
  [[nodiscard]] Ref<Event> copy_behind_all(Queue& where_to, WaitList after,
                                           std::size_t offset = 0) {
    auto submitted = where_to.copy(made_->at(offset), bytes_.data(), bytes_.size(), after);
    EXPECT_TRUE(submitted) << submitted.failure().message();
    return *std::move(submitted);
  }
  [[nodiscard]] std::vector<std::byte> contents(std::size_t offset = 0) {
    return read(test_queue(), made_->at(offset), bytes_.size());
  }
  [[nodiscard]] bool stops_dependents() const { return traits().ends_dependents; }

  const std::vector<std::byte> bytes_ = numbered(256, 3);
  const std::vector<std::byte> zeros_ = std::vector<std::byte>(256);

 private:
  std::unique_ptr<block> made_;
};

TEST_P(opencl_event, waits_with_and_without_a_deadline) {
  const auto copied = copy_behind(test_queue(), completed_event());
  EXPECT_TRUE(copied->wait(in(10s)));
  EXPECT_TRUE(copied->wait(std::nullopt));
  EXPECT_EQ(copied->poll(), ISTHMUS_OK);
  EXPECT_NE(copied->native(), nullptr);
}

TEST_P(opencl_event, a_deadline_passes_and_the_operation_continues) {
  auto gate = make_ref<HostEvent>();
  const auto copied = copy_behind(test_queue(), gate);
  EXPECT_EQ(copied->wait(in(20ms)).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  EXPECT_EQ(copied->wait(os::Clock::now()).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  EXPECT_EQ(copied->times().failure().code(), ISTHMUS_PENDING);
  gate->finish({});
  EXPECT_TRUE(copied->wait(in(10s)));
  EXPECT_EQ(contents(), bytes_);
}

TEST_P(opencl_event, keeps_times) {
  const auto copied = copy_behind(test_queue(), completed_event());
  ASSERT_TRUE(copied->wait(std::nullopt));
  auto told = copied->times();
  ASSERT_TRUE(told) << told.failure().message();
  EXPECT_LE(told->submitted_ns, told->started_ns);
  EXPECT_LE(told->started_ns, told->ended_ns);
  EXPECT_GT(told->ended_ns, 0U);
}

TEST_P(opencl_event, times_of_several_commands_span_them_all) {
  constexpr std::size_t k_large = (std::size_t{8} << 20) + 5;
  const block large{test_context(), test_device(), k_large};
  std::vector<std::byte> back(k_large + 64);
  auto copied = test_queue().copy(back.data() + 1, large.at(), k_large, {});
  finish(copied);
  auto told = (*copied)->times();
  ASSERT_TRUE(told);
  EXPECT_GT(told->ended_ns - told->started_ns, 10'000U);
}

class counted final : public Continuation {
 public:
  explicit counted(std::atomic<int>& runs) : runs_{runs} {}
  void run(Event&) noexcept override {
    runs_.fetch_add(1);
    delete this;
  }

 private:
  std::atomic<int>& runs_;
};

TEST_P(opencl_event, continuations_run_once_without_references_to_the_event) {
  std::atomic<int> runs{0};
  constexpr int k_copies = 200;
  for (int at = 0; at < k_copies; ++at) {
    const auto copied = copy_behind(test_queue(), completed_event());
    copied->on_complete(*new counted{runs});
    copied->on_complete(*new counted{runs});
  }
  for (int tries = 0; tries < 5000 && runs.load() < 2 * k_copies; ++tries) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(runs.load(), 2 * k_copies);
}

TEST_P(opencl_event, operations_after_a_host_event_keep_the_queue_busy) {
  auto gate = make_ref<HostEvent>();
  const auto held = copy_behind(test_queue(), gate);
  const auto behind = copy_behind(test_queue(), completed_event(), 1024);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(held->pending());
  EXPECT_TRUE(behind->pending());
  EXPECT_FALSE(test_queue().idle());
  std::thread{[&] { gate->finish({}); }}.join();
  EXPECT_TRUE(behind->wait(std::nullopt));
  EXPECT_EQ(held->poll(), ISTHMUS_OK);
  EXPECT_TRUE(test_queue().idle());
  EXPECT_EQ(contents(), bytes_);
}

TEST_P(opencl_event, a_failed_host_event_fails_its_dependents_and_nothing_else) {
  auto gate = make_ref<HostEvent>();
  const auto other = another_queue();
  const auto held = copy_behind(test_queue(), gate);
  const auto behind = copy_behind(test_queue(), completed_event(), 1024);
  const auto across = copy_behind(*other, held, 2048);
  const auto after_across = copy_behind(*other, completed_event(), 3072);
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "the worker died"));

  for (const auto& failed : {held, across}) {
    const auto ended = failed->wait(in(10s));
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_NE(std::string_view{ended.failure().message()}.find("the worker died"),
              std::string_view::npos);
  }
  EXPECT_TRUE(behind->wait(in(10s)));
  EXPECT_TRUE(after_across->wait(in(10s)));
  EXPECT_EQ(contents(1024), bytes_);
  EXPECT_EQ(contents(3072), bytes_);
  if (stops_dependents()) {
    EXPECT_EQ(contents(), zeros_);
    EXPECT_EQ(contents(2048), zeros_);
  }
  EXPECT_TRUE(test_queue().wait(in(10s)));
}

// Freeing memory once the last operation of a queue has ended relies on this.
TEST_P(opencl_event, what_a_failure_ends_has_not_ended_before_what_stands_in_front) {
  constexpr std::size_t k_large = std::size_t{1} << 28;
  const block large{test_context(), test_device(), k_large};
  const auto other = another_queue();
  finish(test_queue().fill(large.at(), {}, k_large, {}));
  for (int turn = 0; turn < 3; ++turn) {
    auto gate = make_ref<HostEvent>();
    auto filled = test_queue().fill(large.at(), FillPattern{{std::byte{1}}}, k_large, {});
    ASSERT_TRUE(filled);
    const auto first = copy_behind(test_queue(), gate);
    const auto second = copy_behind(test_queue(), first);
    const auto plain = copy_behind(test_queue(), completed_event(), 512);
    const auto elsewhere = copy_behind(*other, second, 1024);
    gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "as asked"));
    EXPECT_EQ(first->wait(in(60s)).failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_EQ((*filled)->poll(), ISTHMUS_OK);
    EXPECT_EQ(second->wait(in(60s)).failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_EQ(elsewhere->wait(in(60s)).failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_TRUE(plain->wait(in(60s)));
    if (stops_dependents()) {
      EXPECT_EQ(contents(1024), zeros_);
    }
  }
}

// An operation without a dependency must not overtake the operations before it, although a failed
// one lies between them.
TEST_P(opencl_event, what_follows_a_failure_waits_for_what_stands_in_front_of_it) {
  constexpr std::size_t k_large = std::size_t{1} << 28;
  const block large{test_context(), test_device(), k_large};
  finish(test_queue().fill(large.at(), {}, k_large, {}));
  auto gate = make_ref<HostEvent>();
  auto filled = test_queue().fill(large.at(), FillPattern{{std::byte{1}}}, k_large, {});
  ASSERT_TRUE(filled);
  const auto ended = copy_behind(test_queue(), gate);
  std::vector<std::byte> last(64);
  auto read_back = test_queue().copy(last.data(), large.at(k_large - 64), 64, {});
  ASSERT_TRUE(read_back);
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "as asked"));
  EXPECT_TRUE((*read_back)->wait(in(60s)));
  EXPECT_EQ(last, std::vector<std::byte>(64, std::byte{1}));
  EXPECT_EQ((*filled)->poll(), ISTHMUS_OK);
  EXPECT_FALSE(ended->wait(in(60s)));
}

TEST_P(opencl_event, a_gate_counts_once_by_however_many_ways_it_is_reached) {
  auto gate = make_ref<HostEvent>();
  std::array<Ref<Event>, 2> two{copy_behind(test_queue(), gate), copy_behind(test_queue(), gate)};
  for (int level = 0; level < 40; ++level) {
    for (auto& each : two) {
      auto next = test_queue().fence(two);
      ASSERT_TRUE(next) << next.failure().message();
      each = *std::move(next);
    }
  }
  gate->finish({});
  EXPECT_TRUE(wait_for_all(two));
}

// The host events are dependencies of the operation itself and of what it waits for on another
// queue. `order` is the order in which they fail.
TEST_P(opencl_event, any_number_of_failed_gates_end_an_operation_once) {
  const auto other = another_queue();
  const std::array<std::array<std::size_t, 3>, 3> orders{{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}};
  for (const auto& order : orders) {
    std::array<Ref<HostEvent>, 3> gates;
    std::generate(gates.begin(), gates.end(), [] { return make_ref<HostEvent>(); });
    const std::array<Ref<Event>, 3> after{copy_behind(*other, gates[0], 1024), gates[1], gates[2]};
    const auto held = copy_behind_all(test_queue(), after);
    const auto behind = copy_behind(test_queue(), completed_event(), 2048);
    for (const auto turn : order) {
      gates.at(turn)->finish(fail(ISTHMUS_ERROR_CALLBACK, "as asked"));
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(held->wait(in(10s)).failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_TRUE(behind->wait(in(10s)));
    if (stops_dependents()) {
      EXPECT_EQ(contents(), zeros_);
    }
    EXPECT_EQ(contents(2048), bytes_);
  }
}

TEST_P(opencl_event, one_failed_gate_of_several_ends_an_operation_when_all_have_completed) {
  for (const bool fails_first : {false, true}) {
    const auto good = make_ref<HostEvent>();
    const auto bad = make_ref<HostEvent>();
    const std::array<Ref<Event>, 2> after{good, bad};
    const auto held = copy_behind_all(test_queue(), after);
    for (const bool failing : {fails_first, !fails_first}) {
      EXPECT_EQ(held->wait(in(5ms)).failure().code(), ISTHMUS_ERROR_TIMEOUT);
      (failing ? bad : good)
          ->finish(failing ? fail(ISTHMUS_ERROR_CALLBACK, "the worker died") : Error{});
    }
    const auto ended = held->wait(in(10s));
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_NE(std::string_view{ended.failure().message()}.find("the worker died"),
              std::string_view::npos);
  }
}

TEST_P(opencl_event, failures_come_by_every_way_of_waiting) {
  for (int way = 0; way < 4; ++way) {
    auto gate = make_ref<HostEvent>();
    const auto held = copy_behind(test_queue(), gate);
    std::atomic<int> runs{0};
    if (way == 1) {
      held->on_complete(*new counted{runs});
    }
    std::thread failing{[&] {
      std::this_thread::sleep_for(5ms);
      gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "no"));
    }};
    if (way == 2) {
      EXPECT_FALSE(held->wait(std::nullopt));
    } else if (way == 3) {
      EXPECT_FALSE(held->wait(in(10s)));
    }
    while (held->pending()) {
      std::this_thread::yield();
    }
    EXPECT_EQ(held->poll(), ISTHMUS_ERROR_DEPENDENCY) << "way " << way;
    failing.join();
    while (way == 1 && runs.load() == 0) {
      std::this_thread::yield();
    }
  }
}

TEST_P(opencl_event, an_abandoned_host_event_hangs_no_queue) {
  auto* gate = make_ref<HostEvent>().detach();
  const auto held = copy_behind(test_queue(), Ref<Event>{gate});
  gate->release_handle();
  const auto ended = held->wait(in(10s));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
  EXPECT_TRUE(copy_behind(test_queue(), completed_event())->wait(in(10s)));
}

TEST_P(opencl_event, many_failures_leave_the_queue_sound) {
  for (int round = 0; round < 300; ++round) {
    auto gate = make_ref<HostEvent>();
    const auto held = copy_behind(test_queue(), gate);
    const auto behind = copy_behind(test_queue(), completed_event(), 1024);
    if (round % 3 != 0) {
      gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "round {}", round));
    } else {
      gate->finish({});
    }
    ASSERT_EQ(static_cast<bool>(held->wait(in(10s))), round % 3 == 0) << round;
    ASSERT_TRUE(behind->wait(in(10s))) << round;
  }
}

TEST_P(opencl_event, a_dependency_that_failed_before_is_refused_at_once) {
  auto gate = make_ref<HostEvent>();
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "long ago"));
  const std::array<Ref<Event>, 1> after{gate};
  const auto submitted = test_queue().fence(after);
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
}

class told_function final : public HostFunction {
 public:
  told_function(std::byte* at, Error outcome) : at_{at}, outcome_{std::move(outcome)} {}
  Error run(Context& where) noexcept override {
    if (at_ != nullptr) {
      auto* seen = static_cast<std::byte*>(where.function_address(at_));
      *seen = static_cast<std::byte>(std::to_integer<int>(*seen) + 1);
    }
    return std::move(outcome_);
  }

 private:
  std::byte* at_;
  Error outcome_;
};

TEST_P(opencl_event, functions_run_in_the_queues_order_on_device_memory) {
  if (!test_device().can(ISTHMUS_CAN_RUN_FUNCTIONS)) {
    GTEST_SKIP() << "functions do not reach device memory";
  }
  const block counter{test_context(), test_device(), 64};
  finish(test_queue().fill(counter.at(), {}, 64, {}));
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(test_queue().run(std::make_unique<told_function>(counter.at(), Error{}), {}));
    ASSERT_TRUE(test_queue().copy(counter.at(1), counter.at(), 1, {}));
  }
  const auto bytes = read(test_queue(), counter.at(), 2);
  EXPECT_EQ(bytes[0], std::byte{20});
  EXPECT_EQ(bytes[1], std::byte{20});
}

TEST_P(opencl_event, a_failed_function_fails_its_event_and_the_queue_continues) {
  auto ran = test_queue().run(
      std::make_unique<told_function>(nullptr, fail(ISTHMUS_ERROR_CALLBACK, "as asked")), {});
  ASSERT_TRUE(ran);
  EXPECT_EQ((*ran)->wait(in(10s)).failure().code(), ISTHMUS_ERROR_CALLBACK);
  EXPECT_TRUE(copy_behind(test_queue(), completed_event())->wait(in(10s)));
}

INSTANTIATE_TEST_SUITE_P(opencl, opencl_event, ::testing::Range<std::size_t>(0, 4));

// An operation waits in `after` for events of another platform.
TEST(opencl_platforms, wait_for_one_another) {
  const auto all = opencl_devices();
  if (all.size() < 2) {
    GTEST_SKIP() << "one OpenCL device only";
  }
  auto first = *Platform::default_queue(*all[0]);
  auto second = *Platform::default_queue(*all[1]);
  const block made{second->context(), *all[1], 256};
  const auto bytes = numbered(256);
  auto gate = make_ref<HostEvent>();
  const std::array<Ref<Event>, 1> behind_gate{gate};
  const std::array<Ref<Event>, 1> behind_first{*first->fence(behind_gate)};
  auto copied = second->copy(made.at(), bytes.data(), 256, behind_first);
  ASSERT_TRUE(copied);
  std::this_thread::sleep_for(10ms);
  EXPECT_TRUE((*copied)->pending());
  gate->finish({});
  EXPECT_TRUE((*copied)->wait(in(10s)));
  EXPECT_EQ(read(*second, made.at(), 256), bytes);
}

}  // namespace
}  // namespace isthmus::opencl_test
