// SPDX-License-Identifier: Apache-2.0
// Which OpenCL platforms are found, and the reason reported where there are none.

#include <set>

#include "backend/opencl/library.hpp"
#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class environment {
 public:
  environment(const char* name, const char* value) : name_{name} {
    if (const char* before = std::getenv(name)) {
      before_ = before;
      was_set_ = true;
    }
    setenv(name, value, 1);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    if (was_set_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::string before_;
  bool was_set_ = false;
};

TEST(opencl_open, finds_intels_runtime_where_it_is_required) {
  if (!opencl_is_required()) {
    GTEST_SKIP() << "ISTHMUS_REQUIRE_OPENCL is not 1";
  }
  const auto all = opencl_devices();
  const auto intel = std::find_if(all.begin(), all.end(), [](const Device* found) {
    return found->platform().properties().name == "Intel(R) OpenCL";
  });
  ASSERT_NE(intel, all.end());
  const auto& told = (*intel)->properties();
  EXPECT_EQ(told.type, ISTHMUS_DEVICE_CPU);
  EXPECT_TRUE((*intel)->can(ISTHMUS_CAN_USM | ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_SHARED_KIND |
                            ISTHMUS_CAN_HOST_KIND | ISTHMUS_CAN_WAIT_FOR_HOST |
                            ISTHMUS_CAN_PREFETCH | ISTHMUS_CAN_PROFILE));
  EXPECT_FALSE((*intel)->can(ISTHMUS_CAN_ADVISE));
  EXPECT_GE(told.base_alignment, 64U);
  EXPECT_GT(told.memory_bytes, told.max_allocation_bytes / 2);
  EXPECT_NE((*intel)->platform().properties().library.find("libintelocl.so"), std::string::npos);
}

TEST(opencl_open, numbers_devices_by_type_over_all_platforms) {
  std::set<std::string> filters;
  for (const auto* found : opencl_devices()) {
    EXPECT_TRUE(found->properties().filter.starts_with("opencl:"));
    EXPECT_TRUE(filters.insert(found->properties().filter).second) << found->properties().filter;
  }
  if (!filters.empty()) {
    EXPECT_TRUE(filters.contains("opencl:cpu:0") || filters.contains("opencl:gpu:0") ||
                filters.contains("opencl:accelerator:0"));
  }
}

TEST(opencl_open, lists_a_platform_once_however_often_its_library_is_named) {
  const char* named = std::getenv("ISTHMUS_OPENCL_LIBRARY");
  if (named == nullptr) {
    GTEST_SKIP() << "ISTHMUS_OPENCL_LIBRARY is not set";
  }
  const auto before = opencl_platforms().size();
  const environment twice{"ISTHMUS_OPENCL_LIBRARY", (std::string{named} + "::" + named).c_str()};
  static auto* const kept = new auto{opencl::open()};  // platforms are never freed
  ASSERT_TRUE(*kept) << kept->failure().message();
  EXPECT_EQ((*kept)->size(), before);
}

TEST(opencl_open, passes_the_named_library_to_khronos_loaders) {
  const char* named = std::getenv("ISTHMUS_OPENCL_LIBRARY");
  if (named == nullptr || opencl_platforms().empty()) {
    GTEST_SKIP() << "ISTHMUS_OPENCL_LIBRARY is not set";
  }
  EXPECT_NE(std::getenv("OCL_ICD_FILENAMES"), nullptr);
}

TEST(opencl_open, reports_the_reason_for_a_missing_library) {
  const auto opened = opencl::open_library("/nowhere/libOpenCL.so");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.failure().code(), ISTHMUS_ERROR_NOT_FOUND);
  EXPECT_NE(std::string_view{opened.failure().message()}.find("/nowhere/libOpenCL.so"),
            std::string_view::npos);
}

TEST(opencl_open, refuses_a_library_that_is_not_opencl) {
  const auto opened = opencl::open_library("libm.so.6");
  ASSERT_FALSE(opened);
  EXPECT_NE(std::string_view{opened.failure().message()}.find("it lacks clGetPlatformIDs"),
            std::string_view::npos)
      << opened.failure().message();
}

TEST_P(opencl_test, reports_free_memory_where_it_is_host_memory) {
  auto told = test_device().memory();
  if (!test_device().can(ISTHMUS_CAN_QUERY_FREE_MEMORY)) {
    EXPECT_EQ(told.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
    return;
  }
  ASSERT_TRUE(told);
  EXPECT_GT(told->free_bytes, 0U);
  EXPECT_LE(told->free_bytes, told->total_bytes);
}

TEST_P(opencl_test, reports_missing_capabilities) {
  const auto& told = test_device().properties();
  if (!test_device().can(ISTHMUS_CAN_USM)) {
    EXPECT_NE(told.limitations.find("cl_intel_unified_shared_memory"), std::string::npos);
    EXPECT_FALSE(test_device().can(ISTHMUS_CAN_HOST_KIND));
  }
  EXPECT_FALSE(told.name.empty());
  EXPECT_FALSE(told.driver_version.empty());
}

INSTANTIATE_TEST_SUITE_P(opencl_open, opencl_test, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
