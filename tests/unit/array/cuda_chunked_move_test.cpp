// SPDX-License-Identifier: Apache-2.0
// Conversions to a CUDA device, from it and within it. They go through pinned memory and use
// several threads.

#include <numeric>

#include "array/endpoint_move.hpp"
#include "memory/records/allocation_creation.hpp"
#include "support/sizes.hpp"
#include "transfer/staging_ring.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/failing_driver.hpp"

namespace isthmus::cuda_test {
namespace {

constexpr std::size_t k_columns = 1000;
using numbers = std::vector<std::int16_t>;

// Converts rows of int16 to float64, in reverse order.
class cuda_conversion : public cuda_test {
 protected:
  [[nodiscard]] Endpoint make(std::size_t nbytes) {
    auto made = *create_allocation(test_queue(), {ISTHMUS_KIND_DEVICE, nbytes, 0}, nullptr);
    auto* const start = static_cast<std::byte*>(made->facts().base);
    return {start, std::move(made), &test_queue()};
  }
  template <class T>
  [[nodiscard]] static Endpoint plain(std::vector<T>& memory) {
    return {reinterpret_cast<std::byte*>(memory.data()), nullptr, nullptr};
  }
  [[nodiscard]] static numbers counted(std::size_t rows, int from) {
    numbers made(rows * k_columns);
    std::iota(made.begin(), made.end(), static_cast<std::int16_t>(from));
    return made;
  }
  [[nodiscard]] static std::vector<double> wanted(const numbers& of) {
    std::vector<double> made;
    for (auto row = of.size() / k_columns; row-- > 0;) {
      made.insert(made.end(), of.begin() + static_cast<std::ptrdiff_t>(row * k_columns),
                  of.begin() + static_cast<std::ptrdiff_t>((row + 1) * k_columns));
    }
    return made;
  }
  [[nodiscard]] Submitted convert(const Endpoint& to, const Endpoint& from, std::size_t rows,
                                  bool blocking) {
    constexpr auto k_row = static_cast<std::ptrdiff_t>(k_columns);
    const auto last = static_cast<std::ptrdiff_t>(rows - 1) * k_row * 2;
    ElementMove what{to.pointer, from.pointer + last, ISTHMUS_FLOAT64, ISTHMUS_INT16, {}};
    what.dimensions.append({rows, k_row * 8, -k_row * 2});
    what.dimensions.append({k_columns, 8, 2});
    const auto count = rows * k_columns;
    return move_in_chunks(test_queue(), {to, from, count * 8, count * 2, what}, {{}, {}, blocking});
  }
  [[nodiscard]] static bool ended(Submitted of) {
    return of && (!*of || (*of)->wait(std::nullopt));
  }
};

TEST_F(cuda_conversion, to_a_device_back_and_within_it) {
  // One chunk, several, and more than there are threads and staging slots.
  for (const std::size_t rows : std::vector<std::size_t>{1, 300, 2600, 8000 / support::k_slower}) {
    const auto given = counted(rows, -5000);
    const auto want = wanted(given);
    for (const bool blocking : {true, false}) {
      auto from = given;
      std::vector<double> got(want.size());
      const auto there = make(got.size() * sizeof(double));
      const auto narrow = make(from.size() * sizeof(std::int16_t));
      const auto narrow_bytes = from.size() * sizeof(std::int16_t);
      const auto bytes = got.size() * sizeof(double);
      EXPECT_TRUE(ended(convert(there, plain(from), rows, blocking)));
      ASSERT_TRUE(copy(&test_queue(), plain(got), there, bytes, {{}, {}, true}));
      EXPECT_TRUE(got == want) << rows << " rows to the device";

      std::fill(got.begin(), got.end(), 0.0);
      ASSERT_TRUE(copy(&test_queue(), narrow, plain(from), narrow_bytes, {{}, {}, true}));
      EXPECT_TRUE(ended(convert(plain(got), narrow, rows, blocking)));
      EXPECT_TRUE(got == want) << rows << " rows from the device";

      std::fill(got.begin(), got.end(), 0.0);
      ASSERT_TRUE(copy(&test_queue(), there, plain(got), bytes, {{}, {}, true}));
      EXPECT_TRUE(ended(convert(there, narrow, rows, blocking)));
      ASSERT_TRUE(copy(&test_queue(), plain(got), there, bytes, {{}, {}, true}));
      EXPECT_TRUE(got == want) << rows << " rows within the device";
    }
  }
}

// Operations submitted to the queue after a conversion wait for it.
TEST_F(cuda_conversion, is_ordered_in_its_queue) {
  constexpr std::size_t k_rows = 2600;
  auto first = counted(k_rows, 0);
  std::vector<double> got(first.size());
  const auto narrow = make(first.size() * sizeof(std::int16_t));
  const auto there = make(got.size() * sizeof(double));
  std::vector<Submitted> all;
  all.push_back(copy(&test_queue(), narrow, plain(first), first.size() * 2, {{}, {}, false}));
  all.push_back(convert(there, narrow, k_rows, false));
  all.push_back(copy(&test_queue(), plain(got), there, got.size() * 8, {{}, {}, false}));
  for (auto& each : all) {
    EXPECT_TRUE(ended(std::move(each)));
  }
  EXPECT_TRUE(got == wanted(first));
}

TEST_F(cuda_conversion, reports_every_failure_and_loses_no_staging_slot) {
  const failing_driver driver{test_device()};
  if (!driver) {
    GTEST_SKIP() << "a driver that does not fail when told to";
  }
  constexpr std::size_t k_rows = 1300;
  const auto narrow = make(k_rows * k_columns * sizeof(std::int16_t));
  const auto there = make(k_rows * k_columns * sizeof(double));
  std::vector<double> got(k_rows * k_columns);
  for (int way = 0; way < 6; ++way) {
    bool reached = true;
    int told = 0;
    for (long n = 0; reached; ++n) {
      ASSERT_LT(n, 2000);
      auto from = counted(k_rows, static_cast<int>(n));
      const auto want = wanted(from);
      ASSERT_TRUE(copy(&test_queue(), narrow, plain(from), from.size() * 2, {{}, {}, true}));
      bool moved = false;
      reached = driver.fails_at(n, [&] {
        const auto to = way / 2 == 0 ? plain(got) : there;
        moved = ended(convert(to, way / 2 == 1 ? plain(from) : narrow, k_rows, way % 2 == 0));
      });
      told += moved ? 0 : 1;
      if (way / 2 != 0) {
        ASSERT_TRUE(copy(&test_queue(), plain(got), there, got.size() * 8, {{}, {}, true}));
      }
      ASSERT_TRUE(!moved || got == want) << way << ' ' << n;
      ASSERT_TRUE(test_queue().wait(std::nullopt));
    }
    EXPECT_GT(told, 3) << way;
  }
  auto& ring = StagingRing::of(test_device());
  std::vector<StagingRing::SlotPair*> all;
  while (all.size() < StagingRing::k_max_slot_pairs) {
    all.push_back(&ring.acquire());
  }
  for (auto* each : all) {
    ring.release(*each);
  }
}

}  // namespace
}  // namespace isthmus::cuda_test
