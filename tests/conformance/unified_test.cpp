// SPDX-License-Identifier: Apache-2.0
// The unified buffer: every state and what leads to it, conflicts, and the lifetime of views.
#include "support/unified.hpp"

namespace {

using namespace support;
using im::unified_state;

constexpr std::size_t k_unified_sizes[] = {1, 1000, 64 * k_kib, 300 * k_kib + 7, 5 * k_mib + 11};

class unified_buffer : public on_unified {};
ISTHMUS_ON_UNIFIED(unified_buffer);

void put(const im::unified_view<std::byte>& view, std::size_t at, const bytes& data) {
  std::copy(data.begin(), data.end(), view.begin() + static_cast<std::ptrdiff_t>(at));
}

TEST_P(unified_buffer, the_states_of_the_table) {
  for (const std::size_t nbytes : k_unified_sizes) {
    SCOPED_TRACE(nbytes);
    const unified it = make(nbytes);
    const bytes data = noise(nbytes);
    EXPECT_EQ(it.state(), unified_state::uninitialized);
    {
      const auto view = it.host();
      EXPECT_EQ(it.state(), unified_state::host_only);
      put(view, 0, data);
      EXPECT_EQ(it.state(), unified_state::host_dirty);
    }
    EXPECT_TRUE(same(read_on_device(it), data));
    EXPECT_EQ(it.state(), unified_state::synchronized);
    it.host()[nbytes / 2] ^= std::byte{1};
    EXPECT_EQ(it.state(), unified_state::host_dirty);
    it.sync_to_device();
    EXPECT_EQ(it.state(), unified_state::synchronized);
    write_on_device(it, 0, noise(nbytes, 2));
    EXPECT_EQ(it.state(), unified_state::device_dirty);
    EXPECT_TRUE(same(it.host_read(), noise(nbytes, 2)));
    EXPECT_EQ(it.state(), unified_state::synchronized);
  }
}

TEST_P(unified_buffer, the_device_first) {
  const unified it = make(70'000);
  const bytes data = noise(70'000);
  im::copy(it.device(), std::span(data));
  EXPECT_EQ(it.state(), unified_state::device_only);
  it.mark_device();
  EXPECT_EQ(it.state(), unified_state::device_only);
  EXPECT_TRUE(same(it.host_read(), data));
  EXPECT_EQ(it.state(), unified_state::synchronized);
}

TEST_P(unified_buffer, an_unwritten_host_copy_is_uploaded_whole) {
  const unified it = make(100'000);
  EXPECT_TRUE(same(it.host_read(), bytes(100'000)));
  EXPECT_EQ(it.state(), unified_state::host_only);
  EXPECT_TRUE(same(read_on_device(it), bytes(100'000)));
  EXPECT_EQ(it.state(), unified_state::synchronized);
}

TEST_P(unified_buffer, an_old_view_is_written_and_shows_what_is_new) {
  const unified it = make(5 * k_mib);
  const auto kept = it.host();
  it.sync_to_device();
  for (unsigned round = 1; round < 6; ++round) {
    put(kept, 3 * k_mib + round, noise(4000, round));
    EXPECT_EQ(it.state(), unified_state::host_dirty) << round;
    bytes got = read_on_device(it);
    EXPECT_TRUE(same(std::span(got).subspan(3 * k_mib + round, 4000), noise(4000, round)));
    EXPECT_EQ(it.state(), unified_state::synchronized) << round;
    write_on_device(it, round, noise(100, 50 + round));
    it.sync_to_host();
    EXPECT_TRUE(same(kept.span().subspan(round, 100), noise(100, 50 + round)));
  }
}

TEST_P(unified_buffer, only_what_was_written_moves) {
  const unified it = make(32 * k_mib);
  const auto view = it.host();
  it.sync_to_device();
  const auto before = it.info();
  put(view, 9 * k_mib, noise(10));
  it.sync_to_device();
  const auto moved = it.info().bytes_to_device - before.bytes_to_device;
  EXPECT_LE(moved, std::max<std::uint64_t>(before.granule, 10));
  EXPECT_EQ(moved != 0, !one_memory());
  it.sync_to_device();
  EXPECT_EQ(it.info().bytes_to_device - before.bytes_to_device, moved);
}

TEST_P(unified_buffer, exact_writes_are_exact) {
  const unified it = make(3 * k_mib);
  const bytes all = noise(3 * k_mib);
  it.copy_from(all);
  it.sync_to_device();
  it.host_write({1000, 1100}, [&](std::span<std::byte> part) {
    EXPECT_TRUE(same(part, std::span(all).subspan(1000, 100)));
    std::fill(part.begin(), part.end(), std::byte{7});
  });
  EXPECT_EQ(it.dirty_on_host(), (std::vector<im::element_range>{{1000, 1100}}));
  write_on_device(it, 1100, noise(50, 3));
  EXPECT_EQ(it.state(), unified_state::device_dirty);
  const auto got = read_on_device(it);
  const auto host = it.host_read();
  EXPECT_TRUE(same(got, host));
  EXPECT_TRUE(same(host.subspan(1000, 100), bytes(100, std::byte{7})));
  EXPECT_TRUE(same(host.subspan(1100, 50), noise(50, 3)));
}

TEST_P(unified_buffer, what_is_being_written_stays_the_writers) {
  const std::size_t nbytes = 2 * k_mib + 300'000;  // hashed, and larger than a chunk of an upload
  const unified it = make(nbytes);
  const auto view = it.host();
  it.sync_to_device();
  void* start = nullptr;
  im::detail::check(isthmus_unified_begin_write(it.get(), 100, 5000, 1, &start));
  const bytes data = noise(5000);
  std::copy(data.begin(), data.begin() + 2000, static_cast<std::byte*>(start));
  for (const std::size_t at : {6000U, 7000U, 200'000U}) {
    put(view, at, noise(10));
    it.sync_to_device();
  }
  std::copy(data.begin() + 2000, data.end(), static_cast<std::byte*>(start) + 2000);
  EXPECT_EQ(isthmus_unified_end_write(it.get(), 100, 4999, 1), ISTHMUS_ERROR_INVALID_ARGUMENT);
  im::detail::check(isthmus_unified_end_write(it.get(), 100, 5000, 1));
  EXPECT_EQ(isthmus_unified_end_write(it.get(), 100, 5000, 1), ISTHMUS_ERROR_INVALID_ARGUMENT);
  const auto got = read_on_device(it);
  EXPECT_TRUE(same(got, it.host_read()));
  EXPECT_TRUE(same(std::span(got).subspan(100, 5000), data));
}

TEST_P(unified_buffer, memory_being_written_or_read_outlives_its_end) {
  const unified it = make(300'000);
  void* start = nullptr;
  im::detail::check(isthmus_unified_begin_write(it.get(), 0, 300'000, 0, &start));
  it.free();
  std::memset(start, 7, 300'000);
  EXPECT_EQ(isthmus_unified_end_write(it.get(), 0, 300'000, 0), ISTHMUS_ERROR_CLOSED);
  const unified other = make(300'000);
  const auto read = other.host_read();
  other.free();
  EXPECT_TRUE(same(read, bytes(300'000)));
}

TEST_P(unified_buffer, both_sides_of_disjoint_ranges_are_merged) {
  const unified it = make(20 * k_mib);
  const auto view = it.host();
  it.sync_to_device();
  it.device_write({5 * k_mib + 100, 5 * k_mib + 200}, [&](const im::buffer& all) {
    im::copy(im::at(all, 5 * k_mib + 100), std::span<const std::byte>(noise(100, 4)));
  });
  put(view, k_mib, noise(1000, 5));
  EXPECT_EQ(it.state(), unified_state::device_dirty);
  EXPECT_FALSE(it.dirty_on_host().empty());
  EXPECT_FALSE(it.dirty_on_device().empty());
  it.sync_to_host();
  const auto got = read_on_device(it);
  EXPECT_EQ(it.state(), unified_state::synchronized);
  EXPECT_TRUE(same(got, view.span()));
  EXPECT_TRUE(same(std::span(got).subspan(5 * k_mib + 100, 100), noise(100, 4)));
  EXPECT_TRUE(same(std::span(got).subspan(k_mib, 1000), noise(1000, 5)));
}

TEST_P(unified_buffer, overlapping_writes_are_a_conflict_until_resolved) {
  if (one_memory()) GTEST_SKIP() << "one memory has nothing to lose";
  for (const auto winner : {im::winner::host, im::winner::device}) {
    const unified it = make(200'000);
    const auto view = it.host();
    it.sync_to_device();
    write_on_device(it, 1000, noise(500, 6));
    put(view, 1200, noise(500, 7));
    EXPECT_EQ(it.state(), unified_state::device_dirty);
    EXPECT_THROW(it.sync_to_host(), im::error);
    EXPECT_TRUE(contains(isthmus_error_message(), "both wrote")) << isthmus_error_message();
    EXPECT_THROW((void)it.device(), im::error);
    it.resolve(winner);
    const auto got = read_on_device(it);
    EXPECT_TRUE(same(got, it.host_read()));
    const bytes by_host = noise(500, 7), by_device = noise(500, 6);
    const auto want = winner == im::winner::host ? std::span(by_host).first(300)
                                                 : std::span(by_device).subspan(200, 300);
    EXPECT_TRUE(same(std::span(got).subspan(1200, 300), want));
    it.sync_to_device();
    EXPECT_EQ(it.state(), unified_state::synchronized);
  }
}

TEST_P(unified_buffer, a_winner_chosen_before_resolves_the_conflict) {
  if (one_memory()) GTEST_SKIP() << "one memory has nothing to lose";
  for (const auto winner : {im::winner::host, im::winner::device}) {
    auto how = options();
    how.on_conflict = winner;
    const unified it(300'000, how);
    const auto view = it.host();
    it.sync_to_device();
    write_on_device(it, 0, noise(300'000, 8));
    put(view, 100, noise(10, 9));
    it.sync_to_host();
    const auto got = read_on_device(it);
    EXPECT_TRUE(same(got, it.host_read()));
    const bytes want = winner == im::winner::host ? noise(10, 9) : [] {
      const bytes all = noise(300'000, 8);
      return bytes(all.begin() + 100, all.begin() + 110);
    }();
    EXPECT_TRUE(same(std::span(got).subspan(100, 10), want));
  }
}

TEST_P(unified_buffer, moves_that_are_not_waited_for) {
  const unified it = make(4 * k_mib + 5);
  it.copy_from(noise(4 * k_mib + 5));
  if (auto sent = it.sync_to_device_async(it.all())) sent.wait();
  EXPECT_TRUE(same(read_on_device(it), noise(4 * k_mib + 5)));
  write_on_device(it, 77, noise(2 * k_mib, 2));
  if (auto got = it.sync_to_host_async(it.all())) got.wait();
  EXPECT_EQ(it.state(), unified_state::synchronized);
  EXPECT_TRUE(same(it.host_read().subspan(77, 2 * k_mib), noise(2 * k_mib, 2)));
}

TEST_P(unified_buffer, work_in_the_way_is_not_waited_for) {
  if (!device_.can(im::capability::wait_for_host)) GTEST_SKIP() << "the queue cannot be held up";
  const unified it = make(100'000);
  it.copy_from(noise(100'000));
  it.sync_to_device();
  const im::host_event gate;
  const im::event held = queue_.fence({gate});
  it.host_write({10, 50'000}, [](std::span<std::byte> part) {
    std::fill(part.begin(), part.end(), std::byte{3});
  });
  it.sync_to_device();  // must not block
  it.host_write({10, 50'000}, [](std::span<std::byte> part) {
    std::fill(part.begin(), part.end(), std::byte{4});
  });
  gate.complete();
  const bytes got = read(it.device());
  EXPECT_TRUE(same(std::span(got).subspan(10, 49'990), bytes(49'990, std::byte{4})));
}

TEST_P(unified_buffer, what_comes_from_the_device_leaves_what_is_being_written) {
  if (one_memory()) GTEST_SKIP() << "one memory has nothing to bring";
  const bytes news = noise(300'000, 2);
  const auto rest = std::span(news).subspan(5000);
  for (const bool keeps : {false, true}) {
    const unified it = make(300'000);
    it.copy_from(noise(300'000));
    write_on_device(it, 0, news);
    void* start = nullptr;
    im::detail::check(isthmus_unified_begin_write(it.get(), 100, 4900, keeps ? 1 : 0, &start));
    std::memset(start, 7, 4900);
    write_on_device(it, 5000, bytes(rest.begin(), rest.end()));
    EXPECT_TRUE(same(it.host_read().subspan(5000), rest));
    im::detail::check(isthmus_unified_end_write(it.get(), 100, 4900, keeps ? 1 : 0));
    bytes want = news;
    std::fill(want.begin() + 100, want.begin() + 5000, std::byte{7});
    EXPECT_TRUE(same(read_on_device(it), want)) << keeps;
    EXPECT_TRUE(same(it.host_read(), want)) << keeps;
  }
}

TEST_P(unified_buffer, what_the_host_won_stays_when_an_older_copy_lands) {
  if (one_memory()) GTEST_SKIP() << "one memory has nothing to bring";
  if (GetParam().means == im::tracking_mechanism::pages)
    GTEST_SKIP() << "it lands in the view itself";
  auto how = options();
  how.on_conflict = im::winner::host;
  const unified it(300'000, how);
  const auto view = it.host();
  it.sync_to_device();
  write_on_device(it, 0, noise(300'000, 2));
  const auto coming = it.sync_to_host_async(it.all());
  const bytes won(300'000, std::byte{7});
  put(view, 0, won);
  it.sync_to_device();
  if (coming) coming.wait();
  EXPECT_TRUE(same(it.host_read(), won));
  EXPECT_TRUE(same(read_on_device(it), won));
}

// If writes are found by reading, one chunk is copied while the next is scanned.
TEST_P(unified_buffer, parts_are_uploaded_while_the_rest_is_scanned) {
  if (GetParam().means != im::tracking_mechanism::hashes)
    GTEST_SKIP() << "it looks without reading";
  for (const std::size_t nbytes : {3 * k_mib + 70, k_slower > 1 ? 2 * k_mib : 130 * k_mib}) {
    auto how = options();
    how.pinned = true;
    const unified it(nbytes, how);
    const auto view = it.host();
    put(view, 0, noise(nbytes));
    it.sync_to_device();
    EXPECT_TRUE(same(read_on_device(it), view.span()));
    for (unsigned round = 0; round < 3; ++round) {
      put(view, round * 100, noise(10, round));
      put(view, nbytes - 4000, noise(3000, round));
      it.host_write({nbytes / 2, nbytes / 2 + 500}, [&](std::span<std::byte> part) {
        std::fill(part.begin(), part.end(), std::byte(round));
      });
      const auto before = it.info().bytes_to_device;
      it.sync_to_device();
      EXPECT_LE(it.info().bytes_to_device - before, 2 * 64 * k_kib + 500);
      EXPECT_TRUE(same(read_on_device(it), view.span())) << nbytes << " " << round;
    }
  }
}

TEST_P(unified_buffer, many_at_once) {
  std::vector<unified> all;
  std::vector<isthmus_unified_t*> raw;
  for (std::size_t i = 0; i < 60; ++i) {
    all.push_back(make(i % 2 == 0 ? 1000 : 70'000));
    raw.push_back(all.back().get());
    all.back().copy_from(noise(all.back().size(), static_cast<unsigned>(i)));
  }
  im::detail::check(isthmus_unified_synchronize(raw.data(), raw.size(), nullptr));
  for (std::size_t i = 0; i < 60; i += 7) put(all[i].host(), 500, noise(10, 99));
  im::detail::check(isthmus_unified_synchronize(raw.data(), raw.size(), nullptr));
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(all[i].state(), unified_state::synchronized) << i;
    EXPECT_TRUE(same(read(all[i].device()), all[i].host_read())) << i;
  }
}

// A failed call on several buffers leaves this one to be scanned again. Later writes through a view
// must be found all the same.
TEST_P(unified_buffer, a_view_after_many_failed_is_watched) {
  const unified it = make(300'000), gone = make(1000);
  it.copy_from(noise(300'000));
  it.sync_to_device();
  gone.free();
  isthmus_unified_t* const both[] = {it.get(), gone.get()};
  EXPECT_EQ(isthmus_unified_synchronize(both, 2, nullptr), ISTHMUS_ERROR_CLOSED);
  const auto view = it.host();
  put(view, 70'000, noise(10, 2));
  EXPECT_EQ(it.state(), unified_state::host_dirty);
  EXPECT_TRUE(same(read_on_device(it), view.span()));
}

TEST_P(unified_buffer, a_view_outlives_the_buffer) {
  unified it = make(100'000);
  auto view = it.host();
  it.sync_to_device();
  it.free();
  put(view, 5, noise(1000));
  EXPECT_TRUE(same(view.span().subspan(5, 1000), noise(1000)));
  EXPECT_THROW((void)it.state(), im::error);
  EXPECT_THROW((void)it.host(), im::error);
  EXPECT_THROW((void)it.device(), im::error);
  it = {};
  put(view, 5, noise(1000, 2));
}

TEST_P(unified_buffer, bad_input_is_refused_and_nothing_changes) {
  EXPECT_THROW(make(0), im::error);
  EXPECT_THROW(make(SIZE_MAX / 2 + 2), im::error);
  const unified it = make(1000);
  EXPECT_THROW(it.mark_host(), im::error);
  EXPECT_THROW(it.mark_device(), im::error);
  EXPECT_EQ(it.state(), unified_state::uninitialized);
  EXPECT_THROW((void)it.host({0, 1001}), im::error);
  EXPECT_THROW((void)it.host({5, 4}), im::error);
  EXPECT_THROW(it.copy_from(noise(999)), im::error);
  EXPECT_THROW(it.resolve(im::winner::none), im::error);
  EXPECT_EQ(isthmus_unified_mark_host(it.get(), 8, SIZE_MAX), ISTHMUS_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(isthmus_unified_host(nullptr, 0, 0, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(it.state(), unified_state::uninitialized);
}

}  // namespace
