// SPDX-License-Identifier: Apache-2.0
#include "backend/drivers.hpp"

#include <gtest/gtest.h>

#include "backend/queue.hpp"

namespace isthmus {
namespace {

TEST(filter, finds_the_host_in_every_spelling) {
  const auto wanted = *find_device("host");
  for (const char* text : {"host:cpu:0", "host:0", "host:cpu", "HOST", "Host:CPU"}) {
    auto found = find_device(text);
    ASSERT_TRUE(found) << text << ": " << found.failure().message();
    EXPECT_EQ(*found, wanted) << text;
  }
  EXPECT_EQ(wanted->properties().filter, "host:cpu:0");
}

TEST(filter, refuses_what_is_no_filter) {
  for (const char* text :
       {"cuda:", "cpu:host", "0:cpu", "host:host", ":", "gpu:gpu", "host:cpu:0:0", "host:-1",
        "host:1x", "99999999999999999999999", " host"}) {
    EXPECT_EQ(find_device(text).failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT) << text;
  }
}

TEST(filter, lists_the_devices_where_nothing_matches) {
  const auto failure = find_device("host:7").take_error();
  EXPECT_EQ(failure.code(), ISTHMUS_ERROR_NOT_FOUND);
  EXPECT_NE(std::string{failure.message()}.find("host:cpu:0"), std::string::npos);
  EXPECT_EQ(find_device("host:gpu").failure().code(), ISTHMUS_ERROR_NOT_FOUND);
}

TEST(device, has_one_default_queue) {
  auto* host = *find_device("host");
  const auto first = *Platform::default_queue(*host);
  EXPECT_EQ(first.get(), (*Platform::default_queue(*host)).get());
  EXPECT_TRUE(first->is_default());
  EXPECT_EQ(&first->context(), (*host->platform().default_context()).get());
}

TEST(context, is_not_made_across_platforms_or_of_nothing) {
  auto* host = *find_device("host");
  EXPECT_EQ(host->platform().create_context({}).failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(host->platform().create_context(std::span{&host, 1}));
}

}  // namespace
}  // namespace isthmus
