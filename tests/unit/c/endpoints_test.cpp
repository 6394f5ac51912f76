// SPDX-License-Identifier: Apache-2.0
// What memory an endpoint of the C interface denotes, and its bounds.

#include "c/endpoints.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "unit/backend/sim_fixture.hpp"

namespace isthmus::c::endpoints_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;
using sim_test::rig;

constexpr std::size_t k_bytes = 100;

class endpoints : public testing::Test {
 protected:
  [[nodiscard]] std::byte* start() const { return static_cast<std::byte*>(buffer_->pointer()); }
  // The same byte of the buffer, by the buffer, by its address, and by an address before it.
  [[nodiscard]] std::array<isthmus_endpoint_t, 3> at(std::size_t offset) const {
    return {isthmus_endpoint_t{handle(buffer_.get()), nullptr, offset},
            isthmus_endpoint_t{nullptr, start() + offset, 0},
            isthmus_endpoint_t{nullptr, start() + 10, offset - 10}};
  }

  rig sim_;
  Ref<Buffer> buffer_ =
      expect_value(Buffer::create(*sim_.queue, {k_bytes, ISTHMUS_KIND_SHARED, 0}));
};

TEST_F(endpoints, within_a_buffer) {
  for (const auto& raw : at(40)) {
    const auto from = expect_value(endpoint_of(raw, 60, true));
    EXPECT_EQ(from.pointer, start() + 40);
    ASSERT_TRUE(from.memory);
    EXPECT_EQ(from.preferred, sim_.queue.get());
    const auto around = expect_value(endpoint_around(raw, 40, k_bytes, true));
    EXPECT_EQ(around.pointer, start());
    EXPECT_EQ(around.memory.get(), from.memory.get());
  }
}

TEST_F(endpoints, past_either_end_of_a_buffer) {
  for (const auto& raw : at(40)) {
    expect_failure(endpoint_of(raw, 61, true), ISTHMUS_ERROR_OUT_OF_RANGE, "61 bytes");
    expect_failure(endpoint_around(raw, 40, k_bytes + 1, true), ISTHMUS_ERROR_OUT_OF_RANGE);
    expect_failure(endpoint_around(raw, 41, 50, true), ISTHMUS_ERROR_OUT_OF_RANGE, "41");
    expect_failure(endpoint_of(raw, SIZE_MAX, true), ISTHMUS_ERROR_OUT_OF_RANGE);
  }
}

TEST_F(endpoints, without_an_address) {
  const isthmus_endpoint_t nothing{nullptr, nullptr, 7};
  EXPECT_EQ(expect_value(endpoint_of(nothing, 0, true)).pointer, nullptr);
  expect_failure(endpoint_of(nothing, 1, true), ISTHMUS_ERROR_INVALID_ARGUMENT, "neither");
}

TEST_F(endpoints, of_plain_host_memory) {
  std::array<std::byte, 50> plain{};
  const auto from = expect_value(endpoint_around({nullptr, plain.data(), 20}, 5, 30, true));
  EXPECT_EQ(from.pointer, plain.data() + 15);
  EXPECT_FALSE(from.memory);
  EXPECT_EQ(from.preferred, nullptr);
}

TEST_F(endpoints, past_the_end_of_the_address_space) {
  std::byte plain{};
  const auto below = address(&plain) + 1;  // bytes from address 0 on
  expect_failure(endpoint_of({nullptr, &plain, SIZE_MAX}, 1, true), ISTHMUS_ERROR_OUT_OF_RANGE,
                 "address space");
  expect_failure(endpoint_of({nullptr, &plain, 1}, SIZE_MAX - 1, true), ISTHMUS_ERROR_OUT_OF_RANGE,
                 "address space");
  expect_failure(endpoint_around({nullptr, &plain, 0}, below, 1, true), ISTHMUS_ERROR_OUT_OF_RANGE,
                 "address space");
}

TEST_F(endpoints, in_a_pool_but_in_no_block) {
  auto* const freed = start();
  buffer_->free();
  EXPECT_TRUE(sim_.queue->wait(std::nullopt));
  expect_failure(endpoint_of({nullptr, freed, 0}, 1, true), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST_F(endpoints, for_work_of_a_device_on_recorded_memory) {
  const auto from = expect_value(endpoint_of(at(40)[0], 10, true));
  for (const auto work : {DeviceWork::fill, DeviceWork::hint}) {
    EXPECT_EQ(expect_value(target_of(from, 10, nullptr, work)).memory.get(), from.memory.get());
  }
}

// The host fills it, if no queue was passed.
TEST_F(endpoints, for_work_of_a_device_on_plain_host_memory) {
  std::byte plain{};
  const Endpoint from{&plain, nullptr, nullptr};
  EXPECT_EQ(expect_value(target_of(from, 1, nullptr, DeviceWork::fill)).pointer, &plain);
  EXPECT_EQ(expect_value(target_of(from, 0, nullptr, DeviceWork::hint)).pointer, &plain);
  expect_failure(target_of(from, 1, nullptr, DeviceWork::hint), ISTHMUS_ERROR_INVALID_ARGUMENT,
                 "pass a queue");
  for (const auto work : {DeviceWork::fill, DeviceWork::hint}) {
    expect_failure(target_of(from, 1, sim_.queue.get(), work), ISTHMUS_ERROR_INVALID_ARGUMENT,
                   "plain host memory");
  }
}

// Memory of another library is recorded for the call, because the host cannot access it.
TEST_F(endpoints, for_work_of_a_device_on_memory_of_its_driver) {
  auto* const foreign = sim_.make(k_bytes);
  const Endpoint from{reinterpret_cast<std::byte*>(foreign) + 40, nullptr, nullptr};
  {
    const auto target = expect_value(target_of(from, 60, sim_.queue.get(), DeviceWork::fill));
    ASSERT_TRUE(target.memory);
    EXPECT_EQ(target.preferred, sim_.queue.get());
    EXPECT_EQ(target.range(60), (ByteRange{40, 100})) << "of the driver's whole allocation";
  }
  expect_failure(target_of(from, 61, sim_.queue.get(), DeviceWork::fill),
                 ISTHMUS_ERROR_OUT_OF_RANGE);
  sim_.free(foreign, k_bytes);
}

}  // namespace
}  // namespace isthmus::c::endpoints_test
