// SPDX-License-Identifier: Apache-2.0
#include "core/quantities.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace isthmus {
namespace {

TEST(quantities, have_units) {
  EXPECT_EQ(parse_quantity("1.5KiB", Unit::bytes), 1536U);
  EXPECT_EQ(parse_quantity("123", Unit::bytes), 123U);
  EXPECT_EQ(parse_quantity("0", Unit::time), 0U);
  EXPECT_EQ(parse_quantity("0.001us", Unit::time), 1U);
  EXPECT_EQ(parse_quantity("2s", Unit::time), 2'000'000'000U);
  EXPECT_EQ(parse_quantity("18446744073709551615", Unit::none),
            std::numeric_limits<std::uint64_t>::max());
  for (const auto* text :
       {"", "KiB", ".5KiB", "1.KiB", "-1", "+1", "1e3", "0x10", "1Kib/s", "18446744073709551616",
        "18446744073709551615KiB", "16777216TiB", "1.0000001KiB", "1.5.5KiB", "1,5KiB"}) {
    EXPECT_FALSE(parse_quantity(text, Unit::bytes)) << text;
  }
  EXPECT_FALSE(parse_quantity("5", Unit::time));
  EXPECT_FALSE(parse_quantity("1.5", Unit::none));
  EXPECT_FALSE(parse_quantity("16GB", Unit::bandwidth));
}

TEST(quantities, of_bytes_have_decimal_and_binary_units) {
  EXPECT_EQ(parse_quantity("1kB", Unit::bytes), 1000U);
  EXPECT_EQ(parse_quantity("1.5 GB", Unit::bytes), 1'500'000'000U);
  EXPECT_EQ(parse_quantity("2  TB", Unit::bytes), 2'000'000'000'000U);
  EXPECT_EQ(parse_quantity("64 MiB", Unit::bytes), 64U << 20);
  EXPECT_EQ(parse_quantity("64mib", Unit::bytes), 64U << 20);
  EXPECT_EQ(parse_quantity("7 b", Unit::bytes), 7U);
  for (const auto* text : {"64M", "64 m", "1K", "1g", "1 ", " 1", "1 kB ", "1\tkB", "1Ki", "1 i B",
                           "1 PB", "18446744073709552 kB"}) {
    EXPECT_FALSE(parse_quantity(text, Unit::bytes)) << text;
  }
  EXPECT_FALSE(parse_quantity("5 us", Unit::time));
  EXPECT_FALSE(parse_quantity("5US", Unit::time));
}

TEST(both_spellings, are_those_of_a_bare_prefix) {
  EXPECT_EQ(both_spellings("64M"), "64MB (64,000,000 bytes) or 64MiB (67,108,864 bytes)");
  EXPECT_EQ(both_spellings("1.5 g"), "1.5GB (1,500,000,000 bytes) or 1.5GiB (1,610,612,736 bytes)");
  EXPECT_EQ(both_spellings("1k"), "1kB (1,000 bytes) or 1KiB (1,024 bytes)");
  EXPECT_EQ(both_spellings("0T"), "0TB (0 bytes) or 0TiB (0 bytes)");
}

TEST(both_spellings, are_of_nothing_else) {
  for (const auto* text : {"", "M", " M", "64", "64MB", "64P", "64M ", "-1M", "x1M", "1.0001k",
                           "18446744073709551615M"}) {
    EXPECT_FALSE(both_spellings(text)) << text;
  }
}

TEST(shares, are_of_a_whole) {
  EXPECT_EQ(parse_share("80 %", 1000), 800U);
  EXPECT_EQ(parse_share("80%", 1000), 800U);
  EXPECT_EQ(parse_share("12.5%", 1000), 125U);
  EXPECT_EQ(parse_share("0%", 1000), 0U);
  EXPECT_EQ(parse_share("0.1%", 1000), 1U);
  EXPECT_EQ(parse_share("33.333333%", 3), 0U);
  EXPECT_EQ(parse_share("50%", 3), 1U);
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(parse_share("100%", most), most);
  EXPECT_EQ(parse_share("50%", most), most / 2);
}

TEST(shares, are_nothing_else) {
  for (const auto* text : {"", "%", "80", "80 % ", " 80%", "80%%", "80%x", "-1%", "101%", "100.1%",
                           "1.%", ".5%", "1.0000001%", "1e1%", "18446744073709551616%", "80KiB"}) {
    EXPECT_FALSE(parse_share(text, 1000)) << text;
  }
}

}  // namespace
}  // namespace isthmus
