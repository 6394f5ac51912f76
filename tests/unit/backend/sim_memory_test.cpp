// SPDX-License-Identifier: Apache-2.0
// Memory of a simulated device: its two mappings, its capacity, and which pointers are refused.

#include <csignal>

#include "core/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus {
namespace {

using sim_test::counted;
using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

TEST(sim_memory, the_host_cannot_touch_device_memory) {
  rig sim;
  auto* const memory = sim.make(100);
  EXPECT_DEATH(*const_cast<volatile unsigned char*>(memory) = 1, "");
  EXPECT_DEATH(std::printf("%d\n", *const_cast<volatile unsigned char*>(memory + 99)), "");
  const auto bytes = counted(100);
  ASSERT_TRUE(sim.copy(memory, bytes.data(), 100)->wait({}));
  EXPECT_EQ(sim.read(memory, 100), bytes);
  // A function on a queue accesses it through another address.
  const auto* open = static_cast<unsigned char*>(sim.test_context->function_address(memory + 10));
  EXPECT_NE(open, memory + 10);
  EXPECT_EQ(*open, bytes[10]);
  sim.free(memory, 100);
}

TEST(sim_memory, the_host_touches_the_other_kinds) {
  rig sim;
  for (const auto kind : {ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    for (const std::size_t nbytes : {std::size_t{100}, std::size_t{3} << 20}) {
      auto* const memory = sim.make(nbytes, kind);
      std::memset(memory, 3, nbytes);
      EXPECT_EQ(sim.test_context->function_address(memory), memory);
      EXPECT_EQ(sim.read(memory, nbytes), std::vector<unsigned char>(nbytes, 3));
      sim.free(memory, nbytes, kind);
    }
  }
}

TEST(sim_memory, fresh_memory_is_not_zero) {
  rig sim;
  auto* const memory = sim.make(64);
  EXPECT_EQ(sim.read(memory, 64), std::vector<unsigned char>(64, 0xA5));
  sim.free(memory, 64);
}

TEST(sim_memory, capacity_holds_for_device_kind) {
  rig sim{"capacity=1MiB"};
  const auto mebibyte = std::size_t{1} << 20;
  auto* const most = sim.make(mebibyte - 100);
  auto told = expect_value(sim.test_device->memory());
  EXPECT_EQ(told.free_bytes, 100U);
  EXPECT_EQ(told.total_bytes, mebibyte);
  auto refused = sim.test_context->allocate(*sim.test_device, {ISTHMUS_KIND_DEVICE, 101, 0});
  expect_failure(refused, ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "100 bytes of 1 MiB (1048576 bytes) are free");
  auto* const rest = sim.make(100);
  auto* const shared = sim.make(mebibyte, ISTHMUS_KIND_SHARED);
  const auto state = expect_value(state_of_simulated_device(*sim.test_device));
  EXPECT_EQ(state.device_bytes, mebibyte);
  EXPECT_EQ(state.host_bytes, mebibyte);
  sim.free(rest, 100);
  sim.free(most, mebibyte - 100);
  sim.free(shared, mebibyte, ISTHMUS_KIND_SHARED);
  told = expect_value(sim.test_device->memory());
  EXPECT_EQ(told.free_bytes, mebibyte);
}

TEST(sim_memory, alignment) {
  rig sim;
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    for (std::size_t alignment = 1; alignment <= sim.test_device->properties().max_alignment;
         alignment *= 2) {
      void* made =
          expect_value(sim.test_context->allocate(*sim.test_device, {kind, 10, alignment}));
      EXPECT_EQ(address(made) % alignment, 0U);
      sim.free(made, 10, kind);
    }
  }
  expect_failure(
      sim.test_context->allocate(*sim.test_device, {ISTHMUS_KIND_DEVICE, 10, std::size_t{4} << 20}),
      ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST(sim_memory, only_the_kinds_that_were_chosen) {
  rig sim{"kinds=device,usm=0"};
  EXPECT_FALSE(sim.test_device->can(ISTHMUS_CAN_USM));
  EXPECT_NE(sim.test_device->properties().limitations, "");
  expect_failure(sim.test_context->allocate(*sim.test_device, {ISTHMUS_KIND_SHARED, 10, 0}),
                 ISTHMUS_ERROR_UNSUPPORTED);
  sim.free(sim.make(10), 10);
}

TEST(sim_memory, pointers_are_known_from_inside_too) {
  rig sim;
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    auto* const memory = sim.make(100, kind);
    const auto facts = sim.test_context->query(memory + 99);
    EXPECT_EQ(facts.kind, kind);
    EXPECT_EQ(facts.base, memory);
    EXPECT_EQ(facts.nbytes, 100U);
    EXPECT_EQ(facts.device, sim.test_device.get());
    EXPECT_EQ(sim.test_context->query(memory + 100).kind, ISTHMUS_KIND_UNKNOWN);
    sim.free(memory, 100, kind);
    EXPECT_EQ(sim.test_context->query(memory).kind, ISTHMUS_KIND_UNKNOWN);
  }
  int local = 0;
  EXPECT_EQ(sim.test_context->query(&local).kind, ISTHMUS_KIND_UNKNOWN);
}

TEST(sim_memory, ranges_past_an_allocation_are_refused) {
  rig sim;
  auto* const memory = sim.make(100);
  std::vector<unsigned char> bytes(300);
  expect_failure(sim.queue->copy(memory + 50, bytes.data(), 51, {}), ISTHMUS_ERROR_DRIVER,
                 "invalid pointer");
  expect_failure(sim.queue->copy(bytes.data(), memory + 100, 1, {}), ISTHMUS_ERROR_DRIVER,
                 "do not lie within the 100 bytes");
  expect_failure(sim.queue->fill(memory, {}, 101, {}), ISTHMUS_ERROR_DRIVER, "invalid pointer");
  expect_failure(sim.queue->fill(memory - 1, {}, 2, {}), ISTHMUS_ERROR_DRIVER, "invalid pointer");
  expect_failure(sim.queue->prefetch(memory, 101, false, {}), ISTHMUS_ERROR_DRIVER);
  expect_failure(sim.queue->advise(memory, 101, 0, {}), ISTHMUS_ERROR_DRIVER);
  // The padding after the last row does not count.
  const Copy2dShape fits{memory, 60, bytes.data(), 40, 40, 2};
  ASSERT_TRUE(expect_value(sim.queue->copy_2d(fits, {}))->wait({}));
  const Copy2dShape over{memory, 61, bytes.data(), 40, 40, 2};
  expect_failure(sim.queue->copy_2d(over, {}), ISTHMUS_ERROR_DRIVER, "invalid pointer");
  sim.free(memory, 100);
}

TEST(sim_memory, freed_device_memory_is_refused) {
  rig sim;
  unsigned char byte = 0;
  auto* const memory = sim.make(100);
  sim.free(memory, 100);
  expect_failure(sim.queue->copy(&byte, memory, 1, {}), ISTHMUS_ERROR_DRIVER, "was freed");
  // The addresses of freed memory are not remembered indefinitely.
  for (int round = 0; round < 300; ++round) {
    sim.free(sim.make(10), 10);
  }
}

TEST(sim_memory, memory_of_another_context_is_refused) {
  rig sim;
  rig other;
  unsigned char byte = 1;
  Device* const member = sim.test_device.get();
  const auto own = expect_value(sim.test_device->platform().create_context({&member, 1}));
  EXPECT_NE(own->key(), sim.test_context->key());
  auto* const memory = sim.make(16);
  auto* const theirs = other.make(16);
  void* const owns = expect_value(own->allocate(*sim.test_device, {ISTHMUS_KIND_DEVICE, 16, 0}));
  expect_failure(sim.queue->copy(theirs, &byte, 1, {}), ISTHMUS_ERROR_WRONG_CONTEXT,
                 "another context");
  expect_failure(sim.queue->copy(owns, &byte, 1, {}), ISTHMUS_ERROR_WRONG_CONTEXT);
  expect_failure(sim.queue->copy(&byte, owns, 1, {}), ISTHMUS_ERROR_WRONG_CONTEXT);
  EXPECT_EQ(own->query(memory).kind, ISTHMUS_KIND_UNKNOWN);
  // Host-accessible memory is treated as host memory by other contexts.
  auto* const shared = other.make(16, ISTHMUS_KIND_SHARED);
  shared[0] = 9;
  ASSERT_TRUE(sim.copy(memory, shared, 16)->wait({}));
  EXPECT_EQ(sim.read(memory, 1)[0], 9);
  own->deallocate(owns, ISTHMUS_KIND_DEVICE, 16);
  sim.free(memory, 16);
  other.free(theirs, 16);
  other.free(shared, 16, ISTHMUS_KIND_SHARED);
}

TEST(sim_memory, a_free_under_an_operation_is_a_violation) {
  for (const auto* effect : {"effect=early", "effect=late"}) {
    rig sim{effect};
    sim.allowed_violations = 1;
    const auto bytes = counted(64);
    auto* const memory = sim.make(64);
    const auto copied = sim.copy(memory, bytes.data(), 64);
    sim.free(memory, 64);
    expect_failure(copied->wait({}), ISTHMUS_ERROR_DRIVER, "use after free");
    EXPECT_EQ(sim.calls("violation"), 1U);
  }
}

TEST(sim_memory, a_free_of_what_is_not_there_is_a_violation) {
  rig sim;
  auto* const memory = sim.make(64);
  sim.free(memory, 63);  // wrong size
  sim.free(memory, 64);  // double free
  EXPECT_EQ(sim.calls("violation"), 2U);
  EXPECT_EQ(sim.calls("free"), 2U);
  sim.allowed_violations = 2;
}

TEST(sim_memory, memory_that_was_not_freed_is_released_with_its_context) {
  rig sim{"capacity=1MiB"};
  Device* const member = sim.test_device.get();
  {
    const auto own = expect_value(sim.test_device->platform().create_context({&member, 1}));
    static_cast<void>(
        expect_value(own->allocate(*sim.test_device, {ISTHMUS_KIND_DEVICE, 1000, 0})));
    static_cast<void>(expect_value(own->allocate(*sim.test_device, {ISTHMUS_KIND_HOST, 1000, 0})));
  }
  const auto state = expect_value(state_of_simulated_device(*sim.test_device));
  EXPECT_EQ(state.device_bytes + state.host_bytes, 0U);
}

}  // namespace
}  // namespace isthmus
