// SPDX-License-Identifier: Apache-2.0
// A strided copy with more runs than one operation takes is divided into several operations. When
// the second finds no memory, nothing remains in flight.
#include "transfer/strided_chunks.hpp"
#include "unit/backend/refusing_queue.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::sim_test;

// Has memory only for the first copy. The second throws or returns an error.
class short_of_memory final : public RefusingQueue {
 public:
  short_of_memory(rig& with, bool throws)
      : RefusingQueue{*with.test_context, *with.test_device}, on_{*with.queue}, throws_{throws} {}

  Ref<Event> first;

 protected:
  Result<Ref<Event>> do_copy_strided(const StridedCopy& what, WaitList after) override {
    if (first && throws_) throw std::bad_alloc{};
    if (first) return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "on purpose");
    auto made = on_.copy_strided(what, after);
    if (made) first = *made;
    return made;
  }

 private:
  Queue& on_;
  const bool throws_;
};

TEST(slices, leave_nothing_pending_without_memory) {
  constexpr std::size_t k_half = std::size_t{1} << 20;
  for (const bool throws : {true, false}) {
    rig with{"effect=late"};
    const auto source = counted(2 * k_half);
    auto* const memory = with.make(2 * k_half);
    StridedCopy what;  // two slices, transposed
    what.destination = memory;
    what.source = source.data();
    what.width = 1;
    what.append({2, k_half, 1});
    what.append({1024, 1024, 2});
    what.append({1024, 1, 2 * 1024});
    const auto on = make_ref<short_of_memory>(with, throws);
    try {
      EXPECT_FALSE(submit_strided(*on, what, {}));
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(throws);
    }
    ASSERT_TRUE(on->first);
    EXPECT_TRUE(on->first->settled());
    with.free(memory, 2 * k_half);
  }
}

}  // namespace
