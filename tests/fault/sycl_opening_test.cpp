// SPDX-License-Identifier: Apache-2.0
// A call fails while SYCL's platforms are listed (SYCL_RELAY_FAIL_AFTER). The device is either
// present and works, or it is reported as absent with the reason. One process for each call.
#include "support/bytes.hpp"
#include "sycl_relay.hpp"

namespace {

using namespace support;

// More than listing takes, so that with this value the device must be present.
constexpr int k_calls_to_open = 24;

bool is_told_to_be_absent() {
  for (const im::absent_driver& each : im::absent()) {
    if (each.backend == "sycl") return !each.reason.empty();
  }
  return false;
}

void use(const im::device& found) {
  const bytes data = noise(1000);
  const im::buffer made(data.size(), im::kind::device, {.queue = im::queue(found)});
  im::copy(made, std::span(data));
  bytes got(data.size());
  im::copy(std::span(got), made);
  EXPECT_TRUE(same(got, data));
}

TEST(sycl_opening, leaves_a_device_that_works_or_a_reason) {
  const char* const calls_before = std::getenv("SYCL_RELAY_FAIL_AFTER");
  if (calls_before == nullptr) GTEST_SKIP() << "no call is to fail";
  const im::device found = find_first("sycl");
  if (!found) {
    EXPECT_TRUE(is_told_to_be_absent());
    EXPECT_FALSE(is_required("sycl") && std::atoi(calls_before) >= k_calls_to_open);
    return;
  }
  try {
    use(found);
  } catch (const im::error&) {  // the call that fails came later, and fails only once
    use(found);
  }
}

}  // namespace
