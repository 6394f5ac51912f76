// SPDX-License-Identifier: Apache-2.0
// Two operations combined into one: what the caller keeps alive must outlive the first, whatever
// the outcome of the second.
#include <atomic>
#include <memory>

#include "array/endpoint_move.hpp"
#include "support/eventually.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::sim_test;

enum class released { not_yet, early, in_time };

// An object that the first operation needs: records whether that had ended when it was released.
struct keeper {
  Ref<Event> first;
  std::shared_ptr<std::atomic<released>> outcome;

  keeper(Ref<Event> of, std::shared_ptr<std::atomic<released>> to)
      : first{std::move(of)}, outcome{std::move(to)} {}
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;
  ~keeper() { *outcome = first->settled() ? released::in_time : released::early; }
};

// The call does not wait for the first operation, which may come after an event of the caller. The
// event that it returns fails, once the first operation has ended.
template <class Second>
void expect_failure_after_the_first(const Second& second, Status code) {
  rig with{"effect=late"};
  auto* const memory = with.make(1000);
  const auto data = counted(1000);
  const auto outcome = std::make_shared<std::atomic<released>>(released::not_yet);
  TransferOptions options;
  options.blocking = false;
  const auto gate = make_ref<HostEvent>();
  auto submitted = with.copy(memory, data.data(), data.size(), {gate});
  options.owners.push_back(owner_of(std::make_shared<keeper>(submitted, outcome)));
  auto both = submit_in_sequence(
      std::move(options), [&](TransferOptions) -> isthmus::Submitted { return submitted; }, second);
  ASSERT_TRUE(both);
  EXPECT_FALSE((*both)->settled());
  EXPECT_EQ(*outcome, released::not_yet);
  gate->finish({});
  const auto ended = (*both)->wait({});
  EXPECT_TRUE(submitted->settled());
  EXPECT_EQ((*both)->outcome().code(), code) << bool{ended};
  EXPECT_TRUE(support::eventually([&] { return *outcome != released::not_yet; }));
  EXPECT_EQ(*outcome, released::in_time);
  with.free(memory, 1000);
}

TEST(one_after_other, where_the_second_is_refused) {
  expect_failure_after_the_first(
      [](TransferOptions) -> Submitted { return fail(ISTHMUS_ERROR_CLOSED, "on purpose"); },
      ISTHMUS_ERROR_CLOSED);
}

TEST(one_after_other, where_the_second_throws) {
  expect_failure_after_the_first([](TransferOptions) -> Submitted { throw std::bad_alloc{}; },
                                 ISTHMUS_ERROR_OUT_OF_MEMORY);
}

}  // namespace
