// SPDX-License-Identifier: Apache-2.0
// No byte of a unified buffer is copied from a side that never held it, and failures of external
// work do not affect its contents.
#include <memory>

#include "support/unified.hpp"

namespace {

using namespace support;

class unified_failure : public on_unified {
 protected:
  // A buffer of ones in both copies.
  unified same_on_both(std::size_t nbytes, im::unified_options how) const {
    unified it(nbytes, how);
    std::ranges::fill(it.host(), std::byte{1});
    it.sync_to_device();
    queue_.wait();
    return it;
  }
  static bytes filled(std::size_t nbytes, int value) {
    return bytes(nbytes, static_cast<std::byte>(value));
  }
};
ISTHMUS_ON_UNIFIED(unified_failure);

// An upload is ordered after external work on its bytes, but does not fail with it.
TEST_P(unified_failure, uploads_after_work_that_fails) {
  if (one_memory() || !device_.can(im::capability::wait_for_host)) GTEST_SKIP();
  for (int path = 0; path < 4; ++path) {
    const unified it = same_on_both(4096, options());
    const im::host_event busy;
    it.device().record(busy);
    std::ranges::fill(it.host(), std::byte{2});
    if (path == 0) it.sync_to_device();
    if (path == 1) im::synchronize(it);
    if (path == 2) (void)it.sync_to_device_async(it.all());
    const im::buffer there = it.device();
    busy.fail("another library's work failed");
    EXPECT_TRUE(same(read(there), filled(4096, 2))) << path;
    EXPECT_EQ(it.state(), im::unified_state::synchronized);
    EXPECT_TRUE(same(it.host_read(), filled(4096, 2)));
  }
}

TEST_P(unified_failure, downloads_after_work_that_fails) {
  if (one_memory() || !device_.can(im::capability::wait_for_host)) GTEST_SKIP();
  const unified it = same_on_both(4096, options());
  write_on_device(it, 0, filled(4096, 3));
  const im::host_event busy;
  it.device().record(busy);
  const im::event got = it.sync_to_host_async(it.all());
  busy.fail("another library's work failed");
  if (got) {
    EXPECT_NO_THROW(got.wait());
  }
  EXPECT_TRUE(same(it.host_read(), filled(4096, 3)));
}

// The device copy was made for a part and holds nothing else.
TEST_P(unified_failure, the_device_wins_only_what_it_has) {
  for (const std::size_t nbytes : {std::size_t{5000}, k_mib}) {
    const unified it = make(nbytes);
    std::ranges::fill(it.host(), std::byte{5});
    it.device_write({0, 10},
                    [&](const im::buffer& all) { im::fill(all.slice(0, 10), std::byte{9}); });
    it.resolve(im::winner::device);
    auto want = filled(nbytes, 5);
    std::fill_n(want.begin(), 10, std::byte{9});
    EXPECT_TRUE(same(it.host_read(), want));
    it.sync_to_device();
    EXPECT_TRUE(same(read_on_device(it), want));
    EXPECT_EQ(it.state(), im::unified_state::synchronized);
  }
}

// Later host writes are discarded where the device has an older version of the bytes.
TEST_P(unified_failure, the_device_wins_over_later_writes) {
  if (one_memory()) GTEST_SKIP();
  const unified it = same_on_both(5000, options());
  it.host_write({100, 200},
                [](std::span<std::byte> part) { std::ranges::fill(part, std::byte{7}); });
  it.resolve(im::winner::device, {100, 200});
  EXPECT_TRUE(same(it.host_read(), filled(5000, 1)));
  EXPECT_EQ(it.state(), im::unified_state::synchronized);
}

// The pool may evict the device copy at any time when memory is short. The result is the same.
TEST_P(unified_failure, the_device_still_wins_after_its_copy_was_evicted) {
  if (one_memory()) GTEST_SKIP();
  const im::resource pool =
      im::resource::pool(queue_.context(), im::kind::device, {.limit_bytes = 4 * k_mib}, device_);
  for (const bool pressed : {false, true}) {
    auto how = options();
    how.resource = pool;
    const unified it = same_on_both(k_mib, how);
    if (pressed) {
      const im::buffer all(3 * k_mib + k_mib / 2, im::kind::device,
                           {.queue = queue_, .resource = pool});
      EXPECT_EQ(it.state(), im::unified_state::host_only);
    }
    it.device_write({0, 10},
                    [&](const im::buffer& all) { im::fill(all.slice(0, 10), std::byte{9}); });
    it.resolve(im::winner::device);
    auto want = filled(k_mib, 1);
    std::fill_n(want.begin(), 10, std::byte{9});
    EXPECT_TRUE(same(it.host_read(), want)) << pressed;
    EXPECT_TRUE(same(read_on_device(it), want)) << pressed;
  }
}

// The host copy was made for a part and holds nothing else.
TEST_P(unified_failure, the_host_wins_only_what_it_has) {
  if (one_memory()) GTEST_SKIP();
  for (const std::size_t nbytes : {std::size_t{5000}, k_mib}) {
    const unified it = make(nbytes);
    im::fill(it.device(), std::byte{6});
    const auto view = it.host({0, 10});
    it.host_write({20, 30},
                  [](std::span<std::byte> part) { std::ranges::fill(part, std::byte{8}); });
    it.resolve(im::winner::host);
    auto want = filled(nbytes, 6);
    std::fill(want.begin() + 20, want.begin() + 30, std::byte{8});
    it.sync_to_device();
    EXPECT_TRUE(same(read_on_device(it), want));
    EXPECT_TRUE(same(it.host_read(), want));
  }
}

// A granule is reported as written as a whole. Bytes of it that the host never held are not host
// writes.
TEST_P(unified_failure, a_host_that_wins_takes_no_bytes_that_it_never_had) {
  if (one_memory()) GTEST_SKIP();
  auto how = options();
  how.on_conflict = im::winner::host;
  const unified it(100'000, how);
  im::fill(it.device(), std::byte{6});
  {
    const auto view = it.host({0, 10});
    view[3] = std::byte{8};
  }
  it.sync_to_device();
  auto want = filled(100'000, 6);
  want[3] = std::byte{8};
  EXPECT_TRUE(same(read_on_device(it), want));
  EXPECT_TRUE(same(it.host_read(), want));
}

// Allocates the device copy, and meanwhile writes to the host copy, as another thread may.
struct writing_meanwhile {
  im::resource from;
  std::shared_ptr<std::byte*> where;

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    **where = std::byte{7};
    return from.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    from.deallocate(pointer, nbytes, 0, on);
  }
};

// By then the huge page is tracked by small pages, and the write dirties only one of them.
TEST_P(unified_failure, a_host_write_while_a_device_write_begins_is_no_conflict_beside_it) {
  if (GetParam().means != im::tracking_mechanism::pages || one_memory()) GTEST_SKIP();
  const im::context home = queue_.context();
  writing_meanwhile source{im::resource::provider(home, im::kind::device, device_),
                           std::make_shared<std::byte*>(nullptr)};
  auto how = options();
  how.resource = im::resource::custom(home, im::kind::device, source, device_);
  const unified it(20 * k_mib, how);
  const auto view = it.host();
  *source.where = view.data() + k_mib;
  it.device_write({100, 200},
                  [](const im::buffer& all) { im::fill(all.slice(100, 100), std::byte{9}); });
  it.sync_to_host();
  EXPECT_EQ(view[100], std::byte{9});
  EXPECT_EQ(view[k_mib], std::byte{7});
  it.sync_to_device();
  EXPECT_TRUE(same(read_on_device(it), view.span()));
}

// A fetch of other bytes must not end the tracking by small pages that a device write needs.
TEST_P(unified_failure, a_fetch_inside_a_device_write_leaves_it_apart_from_host_writes) {
  if (GetParam().means != im::tracking_mechanism::pages || one_memory()) GTEST_SKIP();
  const unified it = same_on_both(20 * k_mib, options());
  const auto view = it.host();
  it.device_write({100, 200}, [&](const im::buffer& all) {
    it.device_write({2 * k_mib + 100, 2 * k_mib + 200}, [](const im::buffer& other) {
      im::fill(other.slice(2 * k_mib + 100, 100), std::byte{5});
    });
    EXPECT_EQ(it.host_read({2 * k_mib, 4 * k_mib})[100], std::byte{5});
    view[k_mib] = std::byte{7};
    im::fill(all.slice(100, 100), std::byte{9});
  });
  it.sync_to_host();
  EXPECT_EQ(view[100], std::byte{9});
  it.sync_to_device();
  EXPECT_TRUE(same(read_on_device(it), view.span()));
  EXPECT_EQ(view[k_mib], std::byte{7});
}

// Nor must a download that is accounted for as the device write begins.
TEST_P(unified_failure, a_device_write_begins_apart_from_host_writes_beside_older_downloads) {
  if (GetParam().means != im::tracking_mechanism::pages || one_memory()) GTEST_SKIP();
  const unified it = same_on_both(20 * k_mib, options());
  const auto view = it.host();
  write_on_device(it, 100, noise(100, 1));
  if (const im::event came = it.sync_to_host_async({100, 200})) came.wait();
  const im::element_range range{2 * k_mib + 10'000, 4 * k_mib + 50};
  it.device_write(range, [&](const im::buffer& all) {
    im::fill(all.slice(range.begin, range.end - range.begin), std::byte{9});
    view[2 * k_mib + 3] = std::byte{7};
  });
  it.sync_to_host();
  EXPECT_EQ(view[range.begin], std::byte{9});
  it.sync_to_device();
  EXPECT_TRUE(same(read_on_device(it), view.span()));
  EXPECT_EQ(view[2 * k_mib + 3], std::byte{7});
}

}  // namespace
