// SPDX-License-Identifier: Apache-2.0
// The checks of memory of another library before a buffer adopts it.

#include "buffer/foreign.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "unit/backend/sim_fixture.hpp"

namespace isthmus::foreign_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

constexpr std::size_t k_bytes = 1000;
constexpr std::array k_kinds{ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST};

TEST(foreign_memory, has_the_kind_that_its_driver_reports) {
  rig sim;
  for (const UsmKind kind : k_kinds) {
    auto* const memory = sim.make(k_bytes, kind);
    EXPECT_EQ(expect_value(check_foreign(*sim.queue, {memory, k_bytes})), kind);
    EXPECT_EQ(expect_value(check_foreign(*sim.queue, {memory + 1, k_bytes - 1, kind})), kind);
    const UsmKind other = kind == ISTHMUS_KIND_HOST ? ISTHMUS_KIND_DEVICE : ISTHMUS_KIND_HOST;
    expect_failure(check_foreign(*sim.queue, {memory, k_bytes, other}),
                   ISTHMUS_ERROR_INVALID_ARGUMENT, "pass the kind of the memory");
    sim.free(memory, k_bytes, kind);
  }
}

TEST(foreign_memory, ends_within_its_allocation) {
  rig sim;
  auto* const memory = sim.make(k_bytes);
  expect_failure(check_foreign(*sim.queue, {memory, k_bytes + 1}), ISTHMUS_ERROR_OUT_OF_RANGE,
                 std::to_string(k_bytes) + " bytes at");
  expect_failure(check_foreign(*sim.queue, {memory + 1, k_bytes}), ISTHMUS_ERROR_OUT_OF_RANGE);
  expect_failure(check_foreign(*sim.queue, {memory, SIZE_MAX}), ISTHMUS_ERROR_OUT_OF_RANGE,
                 "address space");
  sim.free(memory, k_bytes);
}

TEST(foreign_memory, is_not_empty) {
  rig sim;
  auto* const memory = sim.make(k_bytes);
  expect_failure(check_foreign(*sim.queue, {memory, 0}), ISTHMUS_ERROR_INVALID_ARGUMENT, "0 bytes");
  expect_failure(check_foreign(*sim.queue, {nullptr, k_bytes}), ISTHMUS_ERROR_INVALID_ARGUMENT);
  sim.free(memory, k_bytes);
}

TEST(foreign_memory, is_usm_of_the_context_of_the_queue) {
  rig sim;
  std::array<char, k_bytes> plain{};
  expect_failure(check_foreign(*sim.queue, {plain.data(), k_bytes}), ISTHMUS_ERROR_WRONG_CONTEXT,
                 "is not USM");
  auto* const freed = sim.make(k_bytes);
  sim.free(freed, k_bytes);
  expect_failure(check_foreign(*sim.queue, {freed, k_bytes}), ISTHMUS_ERROR_WRONG_CONTEXT);
}

}  // namespace
}  // namespace isthmus::foreign_test
