// SPDX-License-Identifier: Apache-2.0
// The options of an operation: dependencies are referenced, and owners are released exactly once,
// also if the call fails or there is no memory for them.

#include "c/operation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "support/no_memory.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::c::operation_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;

// An operation with two owners, which count their releases, and two dependencies.
class operation : public testing::Test {
 protected:
  operation() {
    const isthmus_owner_t owner{&released_, [](void* count) { ++*static_cast<int*>(count); }};
    owners_.fill(owner);
    after_ = {handle(events_[0].get()), handle(events_[1].get())};
  }
  [[nodiscard]] isthmus_operation_t raw() const {
    return {sizeof(isthmus_operation_t), after_.data(), after_.size(), owners_.data(),
            owners_.size()};
  }

  int released_ = 0;
  std::array<isthmus_owner_t, 2> owners_{};
  std::array<Ref<Event>, 2> events_{make_ref<HostEvent>(), make_ref<HostEvent>()};
  std::array<isthmus_event_t*, 2> after_{};
};

TEST_F(operation, without_options) {
  for (const bool blocking : {false, true}) {
    const auto options = expect_value(options_of(nullptr, blocking));
    EXPECT_EQ(options.blocking, blocking);
    EXPECT_TRUE(options.after.empty());
    EXPECT_TRUE(options.owners.empty());
  }
}

TEST_F(operation, has_its_dependencies_and_owners) {
  const auto given = raw();
  {
    const auto options = expect_value(options_of(&given, false));
    ASSERT_EQ(options.after.size(), 2U);
    EXPECT_EQ(options.after[0].get(), events_[0].get());
    EXPECT_EQ(options.after[1].get(), events_[1].get());
    EXPECT_FALSE(events_[0]->unique());
    EXPECT_EQ(released_, 0);
  }
  EXPECT_TRUE(events_[0]->unique());
  EXPECT_EQ(released_, 2);
}

TEST_F(operation, refuses_a_structure_that_it_cannot_read) {
  auto given = raw();
  given.struct_size = sizeof given - 1;
  expect_failure(options_of(&given, false), ISTHMUS_ERROR_INVALID_ARGUMENT, "struct_size");
  given = raw();
  given.owners = nullptr;
  expect_failure(options_of(&given, false), ISTHMUS_ERROR_INVALID_ARGUMENT, "operation->owners");
  EXPECT_EQ(released_, 0) << "the owners are not known";
}

TEST_F(operation, releases_its_owners_if_a_dependency_is_null) {
  auto given = raw();
  after_[1] = nullptr;
  expect_failure(options_of(&given, false), ISTHMUS_ERROR_INVALID_ARGUMENT, "event 1 of the 2");
  EXPECT_EQ(released_, 2);
  given.after = nullptr;
  expect_failure(options_of(&given, false), ISTHMUS_ERROR_INVALID_ARGUMENT, "after");
  EXPECT_EQ(released_, 4);
  EXPECT_TRUE(events_[0]->unique());
}

TEST_F(operation, releases_its_owners_without_memory) {
  const auto given = raw();
  support::fail_each_allocation([&](long served, support::shortage kind) {
    released_ = 0;
    bool has_failed = false;
    {
      std::optional<Result<TransferOptions>> options;
      const support::without_memory now{served, kind};
      try {
        options.emplace(options_of(&given, false));
        EXPECT_TRUE(*options);
      } catch (const std::bad_alloc&) {
        has_failed = true;
      }
      EXPECT_EQ(released_, has_failed ? 2 : 0) << support::describe(served, kind);
    }
    EXPECT_EQ(released_, 2) << support::describe(served, kind);
    EXPECT_TRUE(events_[0]->unique());
    return has_failed;
  });
}

}  // namespace
}  // namespace isthmus::c::operation_test
