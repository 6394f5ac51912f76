// SPDX-License-Identifier: Apache-2.0
// What is testable of the CUDA backend without a device: the reason for its absence, error codes.

#include <gtest/gtest.h>

#include <string_view>

#include "backend/cuda/errors.hpp"
#include "backend/cuda/library.hpp"
#include "backend/drivers.hpp"

namespace isthmus::cuda {
namespace {

bool tells(const Error& failure, std::string_view part) {
  return std::string_view{failure.message()}.find(part) != std::string_view::npos;
}

TEST(cuda_open, reports_the_reason_for_a_missing_library) {
  const auto opened = open_library("/nowhere/libcuda.so.1");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.failure().code(), ISTHMUS_ERROR_NOT_FOUND);
  EXPECT_TRUE(tells(opened.failure(), "/nowhere/libcuda.so.1"));
}

TEST(cuda_open, refuses_a_library_that_is_no_driver) {
  const auto opened = open_library("libm.so.6");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.failure().code(), ISTHMUS_ERROR_NOT_FOUND);
  EXPECT_TRUE(tells(opened.failure(), "it has no cuInit")) << opened.failure().message();
}

TEST(cuda_open, is_a_back_end_or_absent_with_a_reason) {
  const auto all = all_platforms();
  const bool there = std::any_of(all.begin(), all.end(), [](const auto& each) {
    return each->properties().backend == "cuda";
  });
  const auto missing = absent_drivers();
  const auto absent = std::find_if(missing.begin(), missing.end(),
                                   [](const auto& each) { return each.backend == "cuda"; });
  EXPECT_EQ(there, absent == missing.end());
  if (!there) {
    EXPECT_FALSE(absent->reason.empty());
    const auto found = find_device("cuda:gpu:0");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.failure().code(), ISTHMUS_ERROR_NOT_FOUND);
    EXPECT_TRUE(tells(found.failure(), "no cuda: " + std::string{absent->reason}))
        << found.failure().message();
  }
}

TEST(cuda_errors, have_their_names) {
  EXPECT_STREQ(code_name(0), "CUDA_SUCCESS");
  EXPECT_STREQ(code_name(2), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_STREQ(code_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_STREQ(code_name(123456), "an unknown code");
}

TEST(cuda_errors, of_a_lost_context_stay_and_say_so) {
  for (const CUresult failure :
       {201U, 214U, 700U, 702U, 709U, 710U, 714U, 715U, 716U, 717U, 718U, 719U}) {
    const auto told = call_failed("cuMemcpyAsync", failure);
    EXPECT_EQ(told.code(), ISTHMUS_ERROR_DEVICE_LOST) << failure;
    EXPECT_TRUE(tells(told, "cuMemcpyAsync") && tells(told, code_name(failure)) &&
                tells(told, "start a new process"))
        << told.message();
  }
}

TEST(cuda_errors, of_a_capture_say_what_to_do) {
  for (CUresult failure = 900; failure <= 908; ++failure) {
    const auto told = call_failed("cuMemAlloc", failure);
    EXPECT_EQ(told.code(), ISTHMUS_ERROR_UNSUPPORTED) << failure;
    EXPECT_TRUE(tells(told, "before the capture begins")) << told.message();
  }
}

TEST(cuda_errors, of_other_sorts_have_their_own_status) {
  EXPECT_EQ(call_failed("cuMemAlloc", 2).code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(call_failed("cuMemAlloc", 801).code(), ISTHMUS_ERROR_UNSUPPORTED);
  EXPECT_EQ(call_failed("cuMemAlloc", 4).code(), ISTHMUS_ERROR_DEVICE_LOST);
  EXPECT_EQ(call_failed("cuMemAlloc", 1).code(), ISTHMUS_ERROR_DRIVER);
}

}  // namespace
}  // namespace isthmus::cuda
