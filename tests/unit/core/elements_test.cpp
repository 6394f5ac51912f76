// SPDX-License-Identifier: Apache-2.0
// Rows of elements, and rows and blocks copied by several threads, compared with moving one element
// at a time.
#include "core/elements.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/bytes.hpp"
#include "core/strided.hpp"

namespace {

using namespace isthmus;
using bytes = std::vector<std::byte>;

bytes numbered(std::size_t nbytes) {
  bytes made(nbytes);
  for (std::size_t i = 0; i < nbytes; ++i) {
    made[i] = static_cast<std::byte>(i * 2654435761U >> 11);
  }
  return made;
}

TEST(elements, at_any_strides) {
  const bytes source = numbered(20'000);
  for (const std::ptrdiff_t size : {1, 2, 3, 4, 8, 12, 16, 24, 32}) {
    for (const std::ptrdiff_t to_stride : {size, size + 1, 2 * size, -size, -2 * size}) {
      for (const std::ptrdiff_t from_stride :
           {size, size + 3, 2 * size, 3 * size, std::ptrdiff_t{0}, -size, -2 * size - 1}) {
        for (const std::ptrdiff_t count : {1, 2, 3, 4, 5, 17, 100}) {
          bytes got(20'001), want(20'001);
          const auto start = [](std::byte* in) { return in + 10'001; };
          for (std::ptrdiff_t i = 0; i < count; ++i) {
            std::memcpy(start(want.data()) + i * to_stride,
                        source.data() + 10'000 + i * from_stride, static_cast<std::size_t>(size));
          }
          copy_elements({start(got.data()), to_stride, source.data() + 10'000, from_stride,
                         static_cast<std::size_t>(count)},
                        static_cast<std::size_t>(size));
          ASSERT_EQ(got, want) << size << " bytes, " << to_stride << " from " << from_stride;
        }
      }
    }
  }
}

// Narrow rows, wide rows, rows larger than the caches, and rows so large that several threads share
// each one.
TEST(rows, large_enough_for_several_threads) {
  const bytes source = numbered(40 << 20);
  for (const std::size_t width :
       {std::size_t{4}, std::size_t{40}, std::size_t{5000}, std::size_t{17} << 20}) {
    const auto pitch = width + 4;
    const auto height = source.size() / pitch;
    bytes got(height * width), want(height * width);
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(want.data() + row * width, source.data() + row * pitch, width);
    }
    copy_rows({got.data(), width, source.data(), pitch, width, height});
    EXPECT_TRUE(got == want) << width;
  }
}

TEST(blocks, large_enough_for_several_threads) {
  const bytes source = numbered(36 << 20);
  for (const std::size_t width : {std::size_t{4}, std::size_t{300'000}}) {
    const std::size_t inner = width == 4 ? 700 : 2;
    const auto outer = source.size() / (2 * width * inner * 3) * 2;
    StridedCopy what;
    what.width = width;
    what.source = source.data();
    what.append({outer, inner * 2 * width, inner * 2 * width});
    what.append({2, width, inner * width});
    what.append({inner, 2 * width, width});
    bytes got(what.extent(Side::destination)), want(got.size());
    what.destination = got.data();
    for (const auto& run : list_runs(what)) {
      std::memcpy(want.data() + run.destination_offset, source.data() + run.source_offset, width);
    }
    copy_strided(what);
    EXPECT_TRUE(got == want) << width;
  }
}

}  // namespace
