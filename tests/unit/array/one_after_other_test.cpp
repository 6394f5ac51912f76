// Two operations as one: what the caller keeps alive outlives the first, whatever becomes of the
// second.
#include "array/placed_move.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::sim_test;

// Whether the first had ended when what it needs was let go of.
struct keeper {
  ref<event> first;
  bool* let_go_in_time;

  keeper(ref<event> of, bool* told) : first{std::move(of)}, let_go_in_time{told} {}
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;
  ~keeper() { *let_go_in_time = first->settled(); }
};

template <class Second>
bool lets_go_in_time(const Second& second) {
  rig with{"effect=late"};
  auto* const memory = with.make(1000);
  const auto data = counted(1000);
  bool in_time = false;
  transfer_options options;
  options.blocking = false;
  auto submitted = with.copy(memory, data.data(), data.size());
  options.owners.push_back(owner_of(std::make_shared<keeper>(submitted, &in_time)));
  try {
    auto both = one_after_other(
        std::move(options), [&](transfer_options) -> isthmus::submitted { return submitted; },
        second);
    EXPECT_FALSE(both);
  } catch (const std::bad_alloc&) {
  }
  EXPECT_TRUE(submitted->settled());
  with.free(memory, 1000);
  return in_time;
}

TEST(one_after_other, where_the_second_is_refused) {
  EXPECT_TRUE(lets_go_in_time(
      [](transfer_options) -> submitted { return fail(ISTHMUS_ERROR_CLOSED, "on purpose"); }));
}

TEST(one_after_other, where_the_second_throws) {
  EXPECT_TRUE(lets_go_in_time([](transfer_options) -> submitted { throw std::bad_alloc{}; }));
}

}  // namespace
