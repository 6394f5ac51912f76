// SPDX-License-Identifier: Apache-2.0
// Moves of elements through host memory in many small chunks. The memory of a chunk is reused
// repeatedly, but never while the driver still uses it.
#include <numeric>

#include "array/endpoint_move.hpp"
#include "memory/records/allocation_creation.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace {

using namespace isthmus;
using namespace isthmus::sim_test;

constexpr std::size_t k_count = 3000;
constexpr std::size_t k_chunk_bytes = 4000;  // at least six chunks
constexpr std::size_t k_pieces = k_count * sizeof(double) / k_chunk_bytes;
static_assert(k_pieces >= 5);

struct memory_side {
  memory_side(rig& with, std::size_t nbytes, bool on_device) : plain(nbytes) {
    if (on_device) {
      at.memory =
          expect_value(create_allocation(*with.queue, {ISTHMUS_KIND_DEVICE, nbytes, 0}, nullptr));
      at.preferred = with.queue.get();
    }
    at.pointer = on_device ? static_cast<std::byte*>(at.memory->facts().base)
                           : reinterpret_cast<std::byte*>(plain.data());
  }

  std::vector<unsigned char> plain;
  Endpoint at;
};

// Moves int16 numbers to float64, in reverse order. A move that an injected fault made fail must
// not report success.
struct life {
  life(rig& with, bool from_device, bool to_device)
      : source{with, sizeof(std::int16_t) * k_count, from_device},
        destination{with, sizeof(double) * k_count, to_device} {
    std::vector<std::int16_t> given(k_count);
    std::iota(given.begin(), given.end(), std::int16_t{-1000});
    EXPECT_TRUE(with.copy(source.at.pointer, given.data(), source.plain.size())->wait({}));
  }

  [[nodiscard]] bool move(Queue& on, bool blocking) const {
    EndpointMove what{destination.at, source.at, destination.plain.size(), source.plain.size(), {}};
    what.element_move.destination = destination.at.pointer;
    what.element_move.source = source.at.pointer + (k_count - 1) * sizeof(std::int16_t);
    what.element_move.destination_type = ISTHMUS_FLOAT64;
    what.element_move.source_type = ISTHMUS_INT16;
    what.element_move.dimensions.append(
        {k_count, sizeof(double), -std::ptrdiff_t{sizeof(std::int16_t)}});
    TransferOptions how;
    how.blocking = blocking;
    auto submitted = move_in_chunks(on, what, std::move(how), k_chunk_bytes);
    return submitted && (!*submitted || (*submitted)->wait({}));
  }
  void expect_moved(rig& with) const {
    const auto read = with.read(destination.at.pointer, destination.plain.size());
    std::vector<double> got(k_count);
    std::memcpy(got.data(), read.data(), read.size());
    std::vector<double> want(k_count);
    std::iota(want.rbegin(), want.rend(), -1000.0);
    EXPECT_EQ(got, want);
  }

  memory_side source;
  memory_side destination;
};

struct sides {
  bool from_device;
  bool to_device;
};

class chunked_moves : public ::testing::TestWithParam<std::tuple<sides, const char*>> {
 protected:
  const bool from_device = std::get<0>(GetParam()).from_device;
  const bool to_device = std::get<0>(GetParam()).to_device;
  const std::string options = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(
    sides, chunked_moves,
    ::testing::Combine(::testing::Values(sides{true, false}, sides{false, true}, sides{true, true}),
                       ::testing::Values("", "effect=late")));

TEST_P(chunked_moves, as_if_at_once) {
  rig with{options};
  for (const bool blocking : {true, false}) {
    const life one{with, from_device, to_device};
    EXPECT_TRUE(one.move(*with.queue, blocking));
    one.expect_moved(with);
  }
}

// Each copy fails in turn, while two stages are in flight: no outcome is reported too early.
TEST_P(chunked_moves, until_one_fails) {
  rig with{options};
  const life one{with, from_device, to_device};
  for (int n = 1; n <= 100; ++n) {
    const auto before = with.calls("copy");
    with.configure("fail=copy:" + std::to_string(n));
    const bool moved = one.move(*with.queue, n % 2 == 0);
    with.configure("fail=none");
    const bool failed = with.calls("copy") - before >= static_cast<std::uint64_t>(n);
    EXPECT_EQ(moved, !failed);
    if (!failed) {
      EXPECT_GE(n, static_cast<int>(k_pieces));
      one.expect_moved(with);
      return;
    }
  }
  ADD_FAILURE() << "copies without end";
}

TEST(chunked_moves_within_a_device, have_one_queue) {
  rig with;
  const life one{with, true, true};
  const auto before = with.calls("queue");
  EXPECT_TRUE(one.move(*with.queue, true));
  EXPECT_EQ(with.calls("queue") - before, 1U);
}

}  // namespace
