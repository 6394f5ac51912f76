// SPDX-License-Identifier: Apache-2.0
// Denies each of the system calls that the unified buffer depends on, in a new process: from its
// start, as in a container or on an older kernel, and later, as when the kernel has no memory. No
// write is lost, and the library reports what it does instead.
#include <cerrno>

#include "denied_calls.hpp"
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;
using unified = im::unified_buffer<std::byte>;

constexpr std::size_t k_sizes[] = {1000, 70'000, 5 * k_mib + 11};

struct tracking_now {
  isthmus_dirty_tracking_t by = 0;
  std::uint64_t granule = 0;
  std::string reason;
};

tracking_now ask() {
  const auto found = im::detail::read<isthmus_dirty_tracking_info_t>(isthmus_dirty_tracking_info);
  return {found.mechanism, found.granule, found.reason};
}

unified make_on(const im::device& device, std::size_t nbytes) {
  const im::queue on(device);
  im::unified_options how;
  how.queue = on;
  how.separate = true;
  return unified(nbytes, how);
}

void put_into(const im::unified_view<std::byte>& view, std::size_t at, const bytes& data) {
  std::copy(data.begin(), data.end(), view.begin() + static_cast<std::ptrdiff_t>(at));
}

void expect_sides(const unified& it, const bytes& want) {
  EXPECT_TRUE(same(read(it.device()), want)) << "on the device";
  EXPECT_TRUE(same(it.host_read(), want)) << "on the host";
  EXPECT_EQ(it.state(), im::unified_state::synchronized);
}

// Host writes through an old view, device writes, and exact host writes. Writes of the two sides
// are farther apart than a granule, or the other side's copy is up to date.
void use(const unified& it) {
  bytes want = noise(it.size());
  const auto view = it.host();
  EXPECT_TRUE(same(view.span(), bytes(it.size()))) << "not zeroed";
  put_into(view, 0, want);
  EXPECT_EQ(it.state(), im::unified_state::host_dirty);
  expect_sides(it, want);
  for (unsigned round = 1; round < 5; ++round) {
    const std::size_t at = it.size() / 7 * round, end = at + it.size() / 20;
    const auto fresh = [&] {
      const bytes data = noise(end - at, 10 * round + static_cast<unsigned>(want[at]));
      std::copy(data.begin(), data.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
      return data;
    };
    put_into(view, at, fresh());
    expect_sides(it, want);
    it.host_write({at, end}, [&](std::span<std::byte> part) {
      const auto data = fresh();
      std::copy(data.begin(), data.end(), part.begin());
    });
    expect_sides(it, want);
    im::copy(im::at(it.device(), at), std::span<const std::byte>(fresh()));
    it.mark_device({at, end});
    it.sync_to_host();
    expect_sides(it, want);
    EXPECT_TRUE(same(view.span(), want)) << "by the old view";
  }
}

void use_all(const im::device& on) {
  for (const auto nbytes : k_sizes) {
    SCOPED_TRACE(nbytes);
    use(make_on(on, nbytes));
  }
}
void use_all() {
  use_all(im::device("host"));
  use_all(im::sim_device("effect=late"));
}

// Runs `body` and exits with a status that reports its failures. For processes made for a single
// test.
template <class Body>
[[noreturn]] void leave_with(Body body) {
  try {
    body();
  } catch (const std::exception& problem) {
    ADD_FAILURE() << problem.what();
  }
  std::fflush(nullptr);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

class kernel_calls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0) GTEST_SKIP() << "this kernel filters no calls";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // starts the program anew instead of forking
  }
  template <class Body>
  static void expect_in_its_own_process(Body body) {
    EXPECT_EXIT(leave_with(body), ::testing::ExitedWithCode(0), "");
  }
  // The call is denied before the library has done anything.
  static void expect_hashes(const denied_call& what, const char* named,
                            void (*use_some)() = use_all) {
    expect_in_its_own_process([&] {
      ASSERT_TRUE(deny(what));
      const auto now = ask();
      EXPECT_EQ(now.by, ISTHMUS_DIRTY_TRACKING_HASHES);
      EXPECT_EQ(now.granule, 64 * k_kib);
      EXPECT_TRUE(contains(now.reason, named)) << now.reason;
      EXPECT_EQ(isthmus_dirty_tracking_force(ISTHMUS_DIRTY_TRACKING_PAGES),
                ISTHMUS_ERROR_UNSUPPORTED);
      EXPECT_TRUE(contains(isthmus_error_message(), named)) << isthmus_error_message();
      use_some();
    });
  }
  // The call is denied when pages are in use and a buffer of each size is synchronized.
  template <class Then>
  static void expect_when_denied_later(const denied_call& what, Then then) {
    expect_in_its_own_process([&] {
      if (ask().by != ISTHMUS_DIRTY_TRACKING_PAGES) return;
      std::vector<unified> all;
      std::vector<im::unified_view<std::byte>> views;
      for (const auto nbytes : k_sizes) {
        all.push_back(make_on(im::device("host"), nbytes));
        views.push_back(all.back().host());
        put_into(views.back(), 0, noise(nbytes));
        expect_sides(all.back(), noise(nbytes));
      }
      ASSERT_TRUE(deny(what));
      for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(all[i].size());
        then(all[i], views[i]);
      }
    });
  }
};

TEST_F(kernel_calls, no_userfaultfd_as_in_a_container) {
  expect_hashes(deny_call(SYS_userfaultfd, EPERM), "userfaultfd");
}
TEST_F(kernel_calls, no_userfaultfd_in_the_kernel) {
  expect_hashes(deny_call(SYS_userfaultfd, ENOSYS), "userfaultfd");
}
TEST_F(kernel_calls, no_asynchronous_protection) {
  expect_hashes(deny_ioctl(UFFDIO_API, EINVAL), "UFFDIO_API");
}
TEST_F(kernel_calls, no_pagemap_scan) {
  expect_hashes(deny_ioctl(k_pagemap_scan, ENOTTY), "kernel does not report written pages");
}
TEST_F(kernel_calls, no_right_to_scan) {
  expect_hashes(deny_ioctl(k_pagemap_scan, EPERM), "kernel does not report written pages");
}
TEST_F(kernel_calls, no_range_is_watched) {
  expect_hashes(deny_ioctl(UFFDIO_REGISTER, ENOMEM), "kernel does not report written pages");
}
TEST_F(kernel_calls, no_shared_memory) {
  // Without simulated devices, whose memory is allocated by this call.
  expect_hashes(deny_call(SYS_memfd_create, ENOSYS), "memfd", [] { use_all(im::device("host")); });
}

TEST_F(kernel_calls, no_huge_page_is_available) {
  for (const int code : {EAGAIN, ENOMEM, EINVAL}) {
    expect_in_its_own_process([&] {
      ASSERT_TRUE(deny(deny_advice(k_collapse, code)));
      const auto now = ask();
      if (now.by == ISTHMUS_DIRTY_TRACKING_PAGES) {
        EXPECT_LE(now.granule, 64 * k_kib);
      }
      use_all();
    });
  }
}

TEST_F(kernel_calls, small_pages_cannot_be_split_off) {
  expect_in_its_own_process([&] {
    ASSERT_TRUE(deny(deny_ioctl(UFFDIO_WRITEPROTECT, ENOMEM)));
    use_all();
    const unified it = make_on(im::device("host"), 20 * k_mib);
    const auto view = it.host();
    it.sync_to_device();
    it.device_write({3 * k_mib, 3 * k_mib + 10}, [](const im::buffer&) {});
    view[100] = std::byte{1};
    it.sync_to_host();
    EXPECT_EQ(read(it.device())[100], std::byte{1});
  });
}

// If a scan fails, everything counts as written. The whole buffer is uploaded and the copies are
// equal.
TEST_F(kernel_calls, scans_fail_later) {
  for (const int code : {ENOMEM, EAGAIN, EFAULT}) {
    expect_when_denied_later(deny_ioctl(k_pagemap_scan, code),
                             [](const unified& it, const auto& view) {
                               bytes want = noise(it.size());
                               want[it.size() / 2] = view[it.size() / 2] = std::byte{77};
                               EXPECT_EQ(it.state(), im::unified_state::host_dirty);
                               EXPECT_TRUE(same(read(it.device()), want));
                               want[3] = view[3] = std::byte{78};
                               EXPECT_TRUE(same(read(it.device()), want));
                             });
  }
}

// New memory is refused with out of memory, which a program can handle. Existing buffers still
// work.
void expect_refused(const unified& there, const im::unified_view<std::byte>& view) {
  bytes want = noise(there.size());
  want[5] = view[5] = std::byte{77};
  EXPECT_TRUE(same(read(there.device()), want));
  const unified more = make_on(im::device("host"), 6 * k_mib);
  EXPECT_TRUE(throws(im::status::out_of_memory, [&] { (void)more.host(); }));
  EXPECT_EQ(more.state(), im::unified_state::uninitialized);
  im::copy(more.device(), std::span<const std::byte>(noise(6 * k_mib, 4)));
  EXPECT_TRUE(throws(im::status::out_of_memory, [&] { (void)more.host_read(); }));
  EXPECT_EQ(more.state(), im::unified_state::device_only);
  EXPECT_TRUE(same(read(more.device()), noise(6 * k_mib, 4)));
}

TEST_F(kernel_calls, no_more_ranges_are_watched_later) {
  expect_when_denied_later(deny_ioctl(UFFDIO_REGISTER, ENOMEM), expect_refused);
}
TEST_F(kernel_calls, no_more_mappings_later) {
  expect_when_denied_later(deny_mapping(MAP_SHARED | MAP_FIXED, ENOMEM), expect_refused);
}
TEST_F(kernel_calls, no_more_pages_later) {
  expect_when_denied_later(deny_advice(k_populate_write, ENOMEM), expect_refused);
}

// Memory that is reused must be zeroed all the same.
TEST_F(kernel_calls, pages_cannot_be_released) {
  expect_when_denied_later(deny_call(SYS_fallocate, EPERM), [](unified& it, auto& view) {
    const auto nbytes = it.size();
    view = {};
    it.free();
    for (int i = 0; i < 3; ++i) use(make_on(im::device("host"), nbytes));
  });
}

}  // namespace
