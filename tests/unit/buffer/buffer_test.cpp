// SPDX-License-Identifier: Apache-2.0
// What a buffer reports of itself without a driver call, and where its memory comes from.

#include "buffer/buffer.hpp"

#include <gtest/gtest.h>

#include <array>

#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::buffer_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;
using support::k_kib;

constexpr std::size_t k_bytes = 4 * k_kib;
constexpr std::array k_kinds{ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST};

Ref<Buffer> make(const rig& sim, UsmKind kind = ISTHMUS_KIND_DEVICE, std::size_t nbytes = k_bytes) {
  return expect_value(Buffer::create(*sim.queue, {nbytes, kind, 0}));
}

// A fill of the buffer that begins when `gate` completes.
Ref<Event> fill_after(const rig& sim, Buffer& buffer, const Ref<Event>& gate) {
  TransferOptions options;
  options.blocking = false;
  options.after = {gate};
  return expect_value(fill(sim.queue.get(), expect_value(buffer.at(0, buffer.nbytes(), true)),
                           FillPattern{}, buffer.nbytes(), std::move(options)));
}

TEST(buffer, is_idle_unless_work_is_pending) {
  const rig sim;
  for (const UsmKind kind : k_kinds) {
    const auto it = make(sim, kind);
    EXPECT_TRUE(it->idle());
    const auto gate = make_ref<HostEvent>();
    const auto filled = fill_after(sim, *it, gate);
    EXPECT_FALSE(it->idle());
    gate->finish({});
    EXPECT_TRUE(filled->wait(std::nullopt));
    EXPECT_TRUE(it->wait(std::nullopt));
    EXPECT_TRUE(it->idle());
    it->free();
    EXPECT_FALSE(it->idle());
  }
  EXPECT_TRUE(make(sim, ISTHMUS_KIND_DEVICE, 0)->idle());
}

// Memory that returns to a pool needs no wait, unless the library must poll the work on it.
TEST(buffer, may_wait_when_it_frees_what_the_host_can_access) {
  const rig sim;
  for (const UsmKind kind : k_kinds) {
    const auto it = make(sim, kind);
    EXPECT_FALSE(it->free_may_wait());
    const auto gate = make_ref<HostEvent>();
    const auto filled = fill_after(sim, *it, gate);
    EXPECT_EQ(it->free_may_wait(), kind != ISTHMUS_KIND_DEVICE);
    gate->finish({});
    EXPECT_TRUE(filled->wait(std::nullopt));
    EXPECT_TRUE(it->wait(std::nullopt));
    EXPECT_FALSE(it->free_may_wait());
  }
}

TEST(buffer, may_wait_when_it_frees_memory_of_a_driver) {
  const rig sim;
  const auto provider =
      make_ref<Provider>(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE);
  const BufferRequest request{k_bytes, ISTHMUS_KIND_DEVICE, 0};
  EXPECT_TRUE(expect_value(Buffer::create(*sim.queue, request, provider.get()))->free_may_wait());
}

TEST(buffer, may_wait_when_it_frees_the_last_memory_of_a_pool) {
  const rig sim;
  auto pool =
      expect_value(Pool::create(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE, {}));
  const auto it =
      expect_value(Buffer::create(*sim.queue, {k_bytes, ISTHMUS_KIND_DEVICE, 0}, pool.get()));
  EXPECT_FALSE(it->free_may_wait());
  pool = {};
  EXPECT_TRUE(it->free_may_wait());
}

TEST(buffer, may_wait_for_its_last_export_once_it_is_freed) {
  const rig sim;
  const auto it = make(sim, ISTHMUS_KIND_SHARED);
  const auto slice = expect_value(it->slice(10, 20));
  ASSERT_NE(expect_value(it->begin_export()), nullptr);
  it->free();
  EXPECT_TRUE(it->free_may_wait());
  it->end_export();
  EXPECT_FALSE(it->free_may_wait());
  EXPECT_TRUE(slice->free_may_wait()) << "it may hold the last reference to the buffer";
}

// A pool requests more from the driver than the driver has.
TEST(buffer, is_allocated_by_the_driver_if_no_pool_can) {
  rig sim{"capacity=32KiB"};
  const auto it = make(sim);
  EXPECT_NE(it->pointer(), nullptr);
  EXPECT_TRUE(it->free_may_wait()) << "it is in no pool";
  expect_failure(Buffer::create(*sim.queue, {64 * k_kib, ISTHMUS_KIND_DEVICE, 0}),
                 ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST(buffer, refuses_a_resource_of_another_kind_or_context) {
  const rig sim;
  const rig other;
  const BufferRequest request{k_bytes, ISTHMUS_KIND_DEVICE, 0};
  const auto shared = make_ref<Provider>(*sim.test_context, *sim.test_device, ISTHMUS_KIND_SHARED);
  const auto foreign =
      make_ref<Provider>(*other.test_context, *other.test_device, ISTHMUS_KIND_DEVICE);
  expect_failure(Buffer::create(*sim.queue, request, shared.get()), ISTHMUS_ERROR_WRONG_CONTEXT,
                 "shared");
  expect_failure(Buffer::create(*sim.queue, request, foreign.get()), ISTHMUS_ERROR_WRONG_CONTEXT);
}

}  // namespace
}  // namespace isthmus::buffer_test
