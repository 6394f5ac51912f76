#include "backend/event.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace isthmus {
namespace {

struct counting final : continuation {
  explicit counting(int& runs) : runs_{runs} {}
  void run(event& completed) noexcept override {
    runs_ += completed.settled() ? 1 : 100;
    delete this;
  }
  int& runs_;
};

TEST(event, completes_once) {
  const auto made = make_ref<host_event>();
  EXPECT_EQ(made->poll(), ISTHMUS_PENDING);
  EXPECT_TRUE(made->finish(fail(ISTHMUS_ERROR_CALLBACK, "first")));
  EXPECT_FALSE(made->finish({}));
  EXPECT_EQ(made->poll(), ISTHMUS_ERROR_CALLBACK);
  EXPECT_STREQ(made->wait(std::nullopt).failure().message(), "first");
}

TEST(event, wait_gives_up_at_its_deadline_and_can_be_repeated) {
  const auto made = make_ref<host_event>();
  EXPECT_EQ(made->wait(os::deadline_after(1000)).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  made->finish({});
  EXPECT_TRUE(made->wait(os::deadline_after(0)));
}

TEST(event, continuations_run_before_and_after_completion) {
  int runs = 0;
  const auto made = make_ref<host_event>();
  made->on_complete(*new counting{runs});
  made->on_complete(*new counting{runs});
  EXPECT_EQ(runs, 0);
  made->finish({});
  EXPECT_EQ(runs, 2);
  made->on_complete(*new counting{runs});
  EXPECT_EQ(runs, 3);
}

TEST(host_event, is_abandoned_with_its_last_handle) {
  auto made = make_ref<host_event>();
  made->retain_handle();
  made->release_handle();
  EXPECT_EQ(made->poll(), ISTHMUS_PENDING);
  made->retain();  // the library's own reference does not complete it
  made->release_handle();
  EXPECT_EQ(made->poll(), ISTHMUS_ERROR_ABANDONED);
}

TEST(completed, is_complete) { EXPECT_EQ(completed_event()->poll(), ISTHMUS_OK); }

}  // namespace
}  // namespace isthmus
