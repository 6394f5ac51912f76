// SPDX-License-Identifier: Apache-2.0
#include "backend/event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <thread>
#include <vector>

namespace isthmus {
namespace {

struct counting final : Continuation {
  explicit counting(int& runs) : runs_{runs} {}
  void run(Event& completed) noexcept override {
    runs_ += completed.settled() ? 1 : 100;
    delete this;
  }
  int& runs_;
};

TEST(event, completes_once) {
  const auto made = make_ref<HostEvent>();
  EXPECT_EQ(made->poll(), ISTHMUS_PENDING);
  EXPECT_TRUE(made->finish(fail(ISTHMUS_ERROR_CALLBACK, "first")));
  EXPECT_FALSE(made->finish({}));
  EXPECT_EQ(made->poll(), ISTHMUS_ERROR_CALLBACK);
  EXPECT_STREQ(made->wait(std::nullopt).failure().message(), "first");
}

TEST(event, wait_gives_up_at_its_deadline_and_can_be_repeated) {
  const auto made = make_ref<HostEvent>();
  EXPECT_EQ(made->wait(os::deadline_after(1000)).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  made->finish({});
  EXPECT_TRUE(made->wait(os::deadline_after(0)));
}

TEST(event, continuations_run_before_and_after_completion) {
  int runs = 0;
  const auto made = make_ref<HostEvent>();
  made->on_complete(*new counting{runs});
  made->on_complete(*new counting{runs});
  EXPECT_EQ(runs, 0);
  made->finish({});
  EXPECT_EQ(runs, 2);
  made->on_complete(*new counting{runs});
  EXPECT_EQ(runs, 3);
}

// Records whether the last continuations of an event run as code of a continuation.
struct looking final : Continuation {
  explicit looking(std::vector<bool>& seen) : Continuation{Turn::last}, seen_{seen} {}
  void run(Event&) noexcept override {
    seen_.push_back(in_continuation());
    delete this;
  }
  std::vector<bool>& seen_;
};

struct finishing final : Continuation {
  explicit finishing(Ref<HostEvent> other) : other_{std::move(other)} {}
  void run(Event&) noexcept override {
    other_->finish({});
    delete this;
  }
  Ref<HostEvent> other_;
};

TEST(host_event, runs_its_last_continuations_as_code_of_the_program) {
  std::vector<bool> seen;
  seen.reserve(4);
  const auto operation = make_ref<LibraryEvent>();
  operation->on_complete(*new looking{seen});
  operation->finish({});
  EXPECT_EQ(seen, std::vector{true});
  const auto first = make_ref<HostEvent>();
  const auto second = make_ref<HostEvent>();
  first->on_complete(*new looking{seen});
  first->on_complete(*new finishing{second});
  second->on_complete(*new looking{seen});
  first->finish({});
  EXPECT_EQ(seen, (std::vector{true, true, false})) << "the second event within the first";
  EXPECT_FALSE(in_continuation());
}

TEST(host_event, is_abandoned_with_its_last_handle) {
  auto made = make_ref<HostEvent>();
  made->retain_handle();
  made->release_handle();
  EXPECT_EQ(made->poll(), ISTHMUS_PENDING);
  made->retain();  // the library's own reference does not complete it
  made->release_handle();
  EXPECT_EQ(made->poll(), ISTHMUS_ERROR_ABANDONED);
}

TEST(library_event, completes_only_when_the_library_finishes_it) {
  auto made = make_ref<LibraryEvent>();
  made->retain_handle();
  made->release_handle();
  EXPECT_EQ(made->poll(), ISTHMUS_PENDING);
  EXPECT_TRUE(made->finish(fail(ISTHMUS_ERROR_CALLBACK, "as asked")));
  EXPECT_FALSE(made->finish({}));
  EXPECT_EQ(made->wait(std::nullopt).failure().code(), ISTHMUS_ERROR_CALLBACK);
}

TEST(waits, wait_for_all_reports_a_failure_and_wait_until_ended_does_not) {
  auto failed = make_ref<LibraryEvent>();
  failed->finish(fail(ISTHMUS_ERROR_CALLBACK, "as asked"));
  const std::array<Ref<Event>, 3> all{completed_event(), failed, completed_event()};
  const auto ended = wait_for_all(all);
  EXPECT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
  EXPECT_NE(std::string_view{ended.failure().message()}.find("as asked"), std::string_view::npos);
  EXPECT_TRUE(wait_for_all({}));
  wait_until_ended(all);
}

TEST(completed, is_complete) { EXPECT_EQ(completed_event()->poll(), ISTHMUS_OK); }

}  // namespace
}  // namespace isthmus
