#include "transfer/spinning_crew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "core/never_destroyed.hpp"
#include "support/patiently.hpp"

namespace isthmus {
namespace {

using bytes = std::vector<std::byte>;

bytes noise(std::size_t nbytes, unsigned seed) {
  std::mt19937_64 random{seed};
  bytes made(nbytes);
  std::generate(made.begin(), made.end(), [&] { return static_cast<std::byte>(random()); });
  return made;
}

// However few processors there are.
spinning_crew& of_three() {
  static never_destroyed<spinning_crew> crew{
      [](const os::processor_set&) -> std::size_t { return 3; }};
  return *crew;
}

// Till somebody helps, which takes a few copies.
void stir(spinning_crew& crew) {
  const bytes from(spinning_crew::k_least_bytes);
  bytes to(from.size());
  EXPECT_TRUE(support::patiently([&] {
    crew.copy(to.data(), from.data(), from.size());
    crew.copy(to.data(), from.data(), from.size());
    return crew.helpers() != 0;
  }));
}

TEST(spinning_crew, has_a_third_of_the_processors_or_none) {
  EXPECT_EQ(spinning_crew::helpers_beside(1), 0U);
  EXPECT_EQ(spinning_crew::helpers_beside(5), 0U);
  EXPECT_EQ(spinning_crew::helpers_beside(6), 2U);
  EXPECT_EQ(spinning_crew::helpers_beside(16), 5U);
  EXPECT_EQ(spinning_crew::helpers_beside(192), 7U);
}

TEST(spinning_crew, copies_every_byte_and_no_other) {
  auto& crew = of_three();
  stir(crew);
  for (const std::size_t nbytes : {1U, 65535U, 65536U, 65537U, 300001U, 1048576U, 3000000U}) {
    for (unsigned round = 0; round < 20; ++round) {
      const auto from = noise(nbytes + 1, round);
      bytes to(nbytes + 2);
      crew.copy(to.data() + 1, from.data() + 1, nbytes);
      EXPECT_TRUE(std::equal(from.begin() + 1, from.end(), to.begin() + 1)) << nbytes;
      EXPECT_EQ(to.front(), std::byte{});
      EXPECT_EQ(to.back(), std::byte{});
    }
  }
}

TEST(spinning_crew, nobody_looks_out_for_long) {
  auto& crew = of_three();
  stir(crew);
  EXPECT_TRUE(support::patiently([&] { return crew.helpers() == 0; }));
}

TEST(spinning_crew, has_nobody_where_there_are_few_processors) {
  static never_destroyed<spinning_crew> none{[](const os::processor_set& allowed) {
    return spinning_crew::helpers_beside(allowed.count() % 6);
  }};
  const auto from = noise(spinning_crew::k_least_bytes, 1);
  for (int round = 0; round < 100; ++round) {
    bytes to(from.size());
    (*none).copy(to.data(), from.data(), from.size());
    EXPECT_EQ(to, from);
    EXPECT_EQ((*none).helpers(), 0U);
  }
}

TEST(spinning_crew, threads_share_it) {
  auto& crew = of_three();
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&crew, seed] {
      const auto from = noise(200000 + seed, seed);
      for (int round = 0; round < 300; ++round) {
        bytes to(from.size());
        crew.copy(to.data(), from.data(), from.size());
        ASSERT_TRUE(to == from);
      }
    });
  }
  for (auto& each : threads) {
    each.join();
  }
}

}  // namespace
}  // namespace isthmus
