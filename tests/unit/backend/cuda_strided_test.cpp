// SPDX-License-Identifier: Apache-2.0
// Strided copies by a kernel: in which units and order it copies, when it is used, and failures of
// the driver.

#include "backend/cuda/strided.hpp"

#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using bytes = std::vector<std::byte>;

constexpr std::size_t k_rows = 64;
constexpr std::size_t k_columns = 96;

class cuda_strided : public cuda_test {
 protected:
  // Rows of the source become columns of the destination.
  [[nodiscard]] static StridedCopy transposed(void* to, const void* from, std::size_t item) {
    StridedCopy what{to, from, item};
    what.append({k_rows, item, k_columns * item});
    what.append({k_columns, k_rows * item, item});
    return what;
  }
  [[nodiscard]] static bytes modelled(const bytes& from, std::size_t item) {
    bytes want(from.size());
    copy_strided(transposed(want.data(), from.data(), item));
    return want;
  }
  [[nodiscard]] static std::size_t size(std::size_t item) { return k_rows * k_columns * item; }
};

TEST_F(cuda_strided, of_every_item_between_all_that_it_reaches) {
  const auto kinds = {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_HOST, ISTHMUS_KIND_SHARED};
  for (const std::size_t item : {1U, 2U, 3U, 4U, 8U, 12U, 16U, 40U}) {
    const auto data = numbered(size(item));
    for (const auto to : kinds) {
      for (const auto from : kinds) {
        const block there{test_context(), test_device(), size(item), to};
        const block here{test_context(), test_device(), size(item), from};
        finish(test_queue().copy(here.at(), data.data(), data.size(), {}));
        const auto what = transposed(there.at(), here.at(), item);
        ASSERT_TRUE(cuda::launch_of(test_device(), what));
        finish(test_queue().copy_strided(what, {}));
        EXPECT_TRUE(read(test_queue(), there.at(), size(item)) == modelled(data, item))
            << item << " bytes, from kind " << from << " to " << to;
      }
    }
  }
}

TEST_F(cuda_strided, has_units_as_large_as_all_is_aligned_to) {
  const block there{test_context(), test_device(), size(64)};
  const block here{test_context(), test_device(), size(64)};
  const auto unit = [&](std::size_t item, std::size_t past) {
    auto what = transposed(there.at() + past, here.at(), item);
    return cuda::launch_of(test_device(), what)->unit_bytes;
  };
  EXPECT_EQ(unit(4, 0), 4U);
  EXPECT_EQ(unit(48, 0), 16U);
  EXPECT_EQ(unit(48, 8), 8U);
  EXPECT_EQ(unit(12, 0), 4U);
  EXPECT_EQ(unit(4, 2), 2U);
  EXPECT_EQ(unit(4, 1), 1U);
}

TEST_F(cuda_strided, is_in_squares_inside_the_device_and_in_the_hosts_order_over_the_bus) {
  const block there{test_context(), test_device(), size(4)};
  const block here{test_context(), test_device(), size(4)};
  const block pinned{test_context(), test_device(), size(4), ISTHMUS_KIND_HOST};
  const auto inside = *cuda::launch_of(test_device(), transposed(there.at(), here.at(), 4));
  ASSERT_EQ(inside.rank, 4U);
  EXPECT_EQ(inside.dimensions[0].count, 8U);
  EXPECT_EQ(inside.dimensions[0].destination_stride, 4U);
  EXPECT_EQ(inside.dimensions[1].count, 8U);
  EXPECT_EQ(inside.dimensions[1].source_stride, 4U);
  const auto to_it = *cuda::launch_of(test_device(), transposed(there.at(), pinned.at(), 4));
  EXPECT_EQ(to_it.rank, 2U);
  EXPECT_EQ(to_it.dimensions[0].source_stride, 4U);
  const auto back = *cuda::launch_of(test_device(), transposed(pinned.at(), here.at(), 4));
  EXPECT_EQ(back.rank, 2U);
  EXPECT_EQ(back.dimensions[0].destination_stride, 4U);
}

TEST_F(cuda_strided, is_not_for_plain_memory_nor_for_long_runs) {
  const block there{test_context(), test_device(), size(16)};
  const block here{test_context(), test_device(), size(16)};
  const auto data = numbered(size(16));
  const auto plain = transposed(there.at(), data.data(), 16);
  EXPECT_FALSE(cuda::launch_of(test_device(), plain));
  finish(test_queue().copy_strided(plain, {}));
  EXPECT_TRUE(read(test_queue(), there.at(), size(16)) == modelled(data, 16));
  StridedCopy longer{there.at(), here.at(), 5000};
  longer.append({3, 8000, 6000});
  EXPECT_FALSE(cuda::launch_of(test_device(), longer));
}

TEST_F(cuda_strided, narrow_rows_are_its_too) {
  const block there{test_context(), test_device(), 30'000};
  const block here{test_context(), test_device(), 30'000};
  const auto data = numbered(30'000);
  finish(test_queue().copy(here.at(), data.data(), data.size(), {}));
  finish(test_queue().copy(there.at(), data.data(), data.size(), {}));
  finish(test_queue().copy_2d({there.at() + 1, 40, here.at(), 30, 7, 700}, {}));
  auto want = data;
  copy_rows({want.data() + 1, 40, data.data(), 30, 7, 700});
  EXPECT_TRUE(read(test_queue(), there.at(), 30'000) == want);
}

TEST_F(cuda_strided, that_is_deferred_copies_the_requested_elements) {
  const block there{test_context(), test_device(), size(4)};
  const block here{test_context(), test_device(), size(4)};
  const auto data = numbered(size(4));
  finish(test_queue().copy(here.at(), data.data(), data.size(), {}));
  const auto gate = make_ref<LibraryEvent>();
  const Ref<Event> before{gate};
  auto what = transposed(there.at(), here.at(), 4);
  auto put = test_queue().copy_strided(what, std::span{&before, 1});
  ASSERT_TRUE(put);
  what = {};
  EXPECT_TRUE((*put)->pending());
  gate->finish({});
  finish(put);
  EXPECT_TRUE(read(test_queue(), there.at(), size(4)) == modelled(data, 4));
}

TEST_F(cuda_strided, reports_every_failure) {
  auto library = *os::open_library(test_device().platform().properties().library.c_str());
  const auto fail_after =
      reinterpret_cast<long (*)(long)>(os::find_symbol(library, "stand_in_fail_after"));
  if (fail_after == nullptr) {
    GTEST_SKIP() << "a driver that does not fail when told to";
  }
  const block there{test_context(), test_device(), size(4)};
  const block here{test_context(), test_device(), size(4)};
  bool reached = true;
  int failed = 0;
  for (long n = 0; reached; ++n) {
    ASSERT_LT(n, 100);
    const auto data = numbered(size(4), static_cast<unsigned>(n));
    finish(test_queue().copy(here.at(), data.data(), data.size(), {}));
    fail_after(n);
    auto put = test_queue().copy_strided(transposed(there.at(), here.at(), 4), {});
    reached = fail_after(-1) < 0;
    const bool copied = put && (*put)->wait(std::nullopt);
    failed += copied ? 0 : 1;
    EXPECT_TRUE(!copied || read(test_queue(), there.at(), size(4)) == modelled(data, 4)) << n;
  }
  EXPECT_GT(failed, 1);
}

}  // namespace
}  // namespace isthmus::cuda_test
