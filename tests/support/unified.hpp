// SPDX-License-Identifier: Apache-2.0
// Unified buffers on every backend and with every way of finding host writes, each with two
// separate copies and with as many copies as the device needs.
#pragma once

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace support {

using unified = im::unified_buffer<std::byte>;

struct unified_case {
  std::string backend;
  im::tracking_mechanism means;
  bool separate;
};

inline std::string name_of(im::tracking_mechanism means) {
  switch (means) {
    case im::tracking_mechanism::pages: return "pages";
    case im::tracking_mechanism::bytes: return "bytes";
    case im::tracking_mechanism::hashes: return "hashes";
    default: return "default";
  }
}

inline std::vector<unified_case> unified_cases() {
  std::vector<unified_case> all;
  for (const auto& backend : backend_names()) {
    if (k_slower > 1 && (backend == "sim" || backend == "pocl")) continue;
    for (const auto means : {im::tracking_mechanism::pages, im::tracking_mechanism::bytes,
                             im::tracking_mechanism::hashes}) {
      if (backend == "sycl" && means != im::tracking_mechanism::pages) continue;
      all.push_back({backend, means, true});
      if (backend != "cuda" && backend != "sim_late") all.push_back({backend, means, false});
    }
  }
  return all;
}

inline std::string name_of(const unified_case& one) {
  return one.backend + "_" + name_of(one.means) + (one.separate ? "" : "_as_it_likes");
}

inline bool reports_pages() {
  const auto found = im::detail::read<isthmus_dirty_tracking_info_t>(isthmus_dirty_tracking_info);
  return found.mechanism == ISTHMUS_DIRTY_TRACKING_PAGES;
}

class on_unified : public leak_checked, public ::testing::WithParamInterface<unified_case> {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    if (GetParam().means == im::tracking_mechanism::pages && !reports_pages()) {
      GTEST_SKIP() << "the kernel does not report written pages here";
    }
    device_ = open_backend(GetParam().backend);
    if (!device_) {
      if (is_required(GetParam().backend)) FAIL() << "no device of " << GetParam().backend;
      GTEST_SKIP() << "no " << GetParam().backend << " on this machine";
    }
    if (!device_.offers(im::kind::device)) GTEST_SKIP() << "no device memory";
    queue_ = im::queue(device_);
  }
  void TearDown() override {
    if (queue_ && !HasFatalFailure()) {
      EXPECT_TRUE(queue_.fence().wait_for(30s)) << "the queue hangs";
    }
    queue_ = {};
    device_ = {};
    leak_checked::TearDown();
  }

  im::unified_options options() const {
    im::unified_options result;
    result.queue = queue_;
    result.separate = GetParam().separate;
    result.tracking = GetParam().means;
    return result;
  }
  unified make(std::size_t nbytes) const { return unified(nbytes, options()); }
  // What a kernel would do: writes bytes to the device copy on the queue and declares the write.
  void write_on_device(const unified& to, std::size_t begin, const bytes& data) const {
    im::copy(im::at(to.device({begin, begin + data.size()}), begin), std::span(data));
    to.mark_device({begin, begin + data.size()});
  }
  bytes read_on_device(const unified& of) const { return read(of.device()); }
  bool one_memory() const { return make(1).info().one_memory; }

  im::device device_;
  im::queue queue_;
};

#define ISTHMUS_ON_UNIFIED(suite)                                                 \
  INSTANTIATE_TEST_SUITE_P(backends, suite, ::testing::ValuesIn(unified_cases()), \
                           [](const auto& each) { return name_of(each.param); })

}  // namespace support
