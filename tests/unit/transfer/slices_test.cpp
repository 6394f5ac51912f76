// A copy of more runs than one operation takes, cut in several, of which any may find no memory:
// nothing is in flight then.
#include "support/no_memory.hpp"
#include "transfer/strided_parts.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::sim_test;

// Three slices of the most runs each, turned round.
strided_copy of_many_runs(unsigned char* to, const unsigned char* from) {
  constexpr std::size_t k_row = std::size_t{1} << 20;
  strided_copy what;
  what.destination = to;
  what.source = from;
  what.width = 1;
  what.append({3, k_row, 1});
  what.append({k_row, 1, 3});
  return what;
}

// With memory for that many allocations; whether it was not enough.
bool fails(long served) {
  rig with{"effect=late,capacity=8MiB"};
  constexpr std::size_t k_bytes = std::size_t{3} << 20;
  const auto source = counted(k_bytes);
  auto* const memory = with.make(k_bytes);
  const auto what = of_many_runs(memory, source.data());
  submitted outcome = ref<event>{};
  bool failed = false;
  try {
    const support::without_memory later{served};
    outcome = put_strided(*with.on, what, {});
    failed = !outcome;
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  if (!failed) {
    EXPECT_TRUE((*outcome)->wait({}));
    EXPECT_EQ(with.read(memory + (std::size_t{1} << 20), 1)[0], source[1]);
  }
  with.free(memory, k_bytes);  // the rig looks whether something was at it
  return failed;
}

TEST(slices, leave_nothing_in_flight_without_memory) {
  long served = 0;
  while (served < 200 && fails(served)) {
    ++served;
  }
  EXPECT_GE(served, 3);
  EXPECT_LT(served, 200);
}

}  // namespace
