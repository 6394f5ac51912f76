// SPDX-License-Identifier: Apache-2.0
// Every alignment, what the driver refuses, and what it reports of pointers.

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

INSTANTIATE_TEST_SUITE_P(opencl, opencl_memory, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
