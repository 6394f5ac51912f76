// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test control of the library in front of dpctl's C interface (stand_in/sycl_relay.cpp).

#include "relay.hpp"
#include "support/backends.hpp"

namespace support {

// How a call fails.
enum class relayed_by_sycl { gives_null = 0, throws = 1, ends_badly = 2 };

class sycl_relay : public relay {
 public:
  sycl_relay() : relay("ISTHMUS_SYCL_LIBRARY") {
    find("sycl_relay_fail_after", fail_after_);
    find("sycl_relay_name", name_);
    find("sycl_relay_held", held_);
    find("sycl_relay_strangers", unknown_releases_);
  }
  [[nodiscard]] bool is_loaded() const { return unknown_releases_ != nullptr; }

  // Makes the call after `calls` others fail. Returns how many calls were left of the previous
  // setting; negative: that call was reached.
  long fail_after(long calls, relayed_by_sycl failure) const {
    return fail_after_(calls, static_cast<int>(failure));
  }
  long fail_none() const { return fail_after(-1, relayed_by_sycl::gives_null); }
  // What each call returned and was not released, by the name of the call.
  [[nodiscard]] std::map<std::string, long> held() const { return by_name(name_, held_); }
  // How often an object was to be released that had not been returned before.
  [[nodiscard]] long unknown_releases() const { return unknown_releases_(); }

 private:
  long (*fail_after_)(long, int) = nullptr;
  const char* (*name_)(std::size_t) = nullptr;
  long (*held_)(std::size_t) = nullptr;
  long (*unknown_releases_)() = nullptr;
};

// Tests on a SYCL device with the relay in front of dpctl. Skipped without it.
class on_sycl_relay : public leak_checked {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    const char* named = std::getenv("ISTHMUS_SYCL_LIBRARY");
    if (named == nullptr || !contains(named, "libsycl_relay"))
      GTEST_SKIP() << "ISTHMUS_SYCL_LIBRARY does not name libsycl_relay.so";
    device_ = find_first("sycl");
    if (!device_ && !is_required("sycl"))
      GTEST_SKIP() << "no device of SYCL's, by what ISTHMUS_TEST_SYCL_LIBRARY names";
    ASSERT_TRUE(device_);
    relay_ = sycl_relay();
    ASSERT_TRUE(relay_.is_loaded());
  }
  void TearDown() override {
    if (relay_.is_loaded()) {
      relay_.fail_none();
      EXPECT_EQ(relay_.unknown_releases(), 0) << "something was given back twice";
    }
    device_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  sycl_relay relay_;
};

}  // namespace support
