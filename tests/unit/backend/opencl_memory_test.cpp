// SPDX-License-Identifier: Apache-2.0
// Allocations of every kind and alignment, and what the driver reports of pointers.

#include <cstring>

#include "core/sizes.hpp"
#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class opencl_memory : public opencl_test {
 protected:
  [[nodiscard]] std::vector<UsmKind> kinds() const {
    std::vector<UsmKind> offered;
    for (const UsmKind kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
      if (test_device().can(kind_capability(kind))) {
        offered.push_back(kind);
      }
    }
    return offered;
  }
};

TEST_P(opencl_memory, every_kind_and_size) {
  for (const auto kind : kinds()) {
    for (const std::size_t nbytes : {1UL, 3UL, 64UL, 4096UL, 1UL << 20, (1UL << 24) + 1}) {
      const block made{test_context(), test_device(), nbytes, kind};
      EXPECT_EQ(address(made.at()) % test_device().properties().base_alignment, 0U);
    }
  }
}

TEST_P(opencl_memory, honours_every_power_of_two) {
  for (const auto kind : kinds()) {
    for (std::uint64_t alignment = 1; alignment <= test_device().properties().max_alignment;
         alignment *= 2) {
      const block made{test_context(), test_device(), 100, kind, alignment};
      ASSERT_EQ(address(made.at()) % alignment, 0U) << kind_name(kind) << " at " << alignment;
      const auto bytes = numbered(100);
      finish(test_queue().copy(made.at(), bytes.data(), 100, {}));
      EXPECT_EQ(read(test_queue(), made.at(), 100), bytes);
    }
  }
}

TEST_P(opencl_memory, refuses_what_no_device_has) {
  const auto& told = test_device().properties();
  const auto made = test_context().allocate(
      test_device(), {ISTHMUS_KIND_DEVICE, told.max_allocation_bytes + 1, 0});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(std::string_view{made.failure().message()}.find(told.filter), std::string_view::npos);
}

TEST_P(opencl_memory, refuses_host_kind_without_usm) {
  if (test_device().can(ISTHMUS_CAN_HOST_KIND)) {
    GTEST_SKIP() << "has the host kind";
  }
  const auto made = test_context().allocate(test_device(), {ISTHMUS_KIND_HOST, 64, 0});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
}

TEST_P(opencl_memory, resolves_inner_pointers) {
  if (!test_device().can(ISTHMUS_CAN_USM)) {
    GTEST_SKIP() << "SVM does not tell";
  }
  for (const auto kind : kinds()) {
    const block made{test_context(), test_device(), 1000, kind};
    const auto facts = test_context().query(made.at(999));
    EXPECT_EQ(facts.kind, kind);
    EXPECT_EQ(facts.base, made.at());
    EXPECT_GE(facts.nbytes, 1000U);
    EXPECT_TRUE(kind == ISTHMUS_KIND_HOST || facts.device == &test_device());
  }
}

TEST_P(opencl_memory, knows_nothing_of_host_memory) {
  int plain = 0;
  EXPECT_EQ(test_context().query(&plain).kind, ISTHMUS_KIND_UNKNOWN);
  EXPECT_EQ(test_context().query(nullptr).kind, ISTHMUS_KIND_UNKNOWN);
}

TEST_P(opencl_memory, shared_and_host_kinds_are_the_hosts_too) {
  for (const auto kind : kinds()) {
    if (kind == ISTHMUS_KIND_DEVICE) {
      continue;
    }
    const block made{test_context(), test_device(), 4096, kind};
    std::memset(made.at(), 7, 4096);
    EXPECT_EQ(read(test_queue(), made.at(), 4096), std::vector<std::byte>(4096, std::byte{7}));
  }
}

INSTANTIATE_TEST_SUITE_P(opencl, opencl_memory, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
