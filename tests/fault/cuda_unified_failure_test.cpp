// SPDX-License-Identifier: Apache-2.0
// Copies of a unified buffer that fail in the driver, when they are submitted or when a blocked
// queue reaches them. After each failure a retry copies the right bytes, no conflict is reported
// for bytes that only one side wrote, and the failure was reported exactly once.
#include "cuda_relay.hpp"
#include "unified_failure.hpp"

namespace {

using namespace support;

constexpr long k_most_failing = 40;

class cuda_unified_failure : public on_cuda_relay {
 protected:
  void SetUp() override {
    on_cuda_relay::SetUp();
    if (device_) queue_ = im::queue(device_);
  }
  void TearDown() override {
    relay_.is_loaded() ? relay_.fail_none() : void();
    queue_ = {};
    on_cuda_relay::TearDown();
  }
  unified make(im::tracking_mechanism means, im::winner wins = im::winner::none) const {
    return make_separate(queue_, means, wins);
  }
  // Whether the call that was set to fail was reached.
  bool reached() const { return relay_.fail_after(-1, relayed::takes, k_unknown) < 0; }

  im::queue queue_;
};

TEST_F(cuda_unified_failure, of_an_upload_is_reported_and_fails_what_depends_on_it) {
  for (const auto means : usable_means()) {
    for (const auto way : k_upload_paths) {
      int uploads_failed = 0;
      for (long n = 0; n < k_most_failing; ++n) {
        SCOPED_TRACE(name_of(means) + ", path " + std::to_string(static_cast<int>(way)) +
                     ", call " + std::to_string(n));
        const unified it = make(means);
        const auto view = it.host();
        std::ranges::fill(view, std::byte{1});
        const im::buffer there = it.device();
        queue_.wait();
        const im::host_event gate;
        (void)queue_.fence({gate});
        std::ranges::fill(view, std::byte{2});
        const im::event sent = send_by(way, it);
        bytes got(k_failing_bytes), late(k_failing_bytes);
        const im::event read = im::copy_async(std::span(got), there);
        relay_.fail_after(n, relayed::takes, k_unknown);
        gate.complete();
        const auto outcome = status_of([&] { read.wait(); });
        queue_.wait();
        const bool was_reached = reached();
        const bool failed = it.state() == im::unified_state::host_dirty;
        if (failed) {
          ++uploads_failed;
          // A read fails whether it was submitted before or after the copy failed.
          EXPECT_EQ(outcome, im::status::dependency);
          EXPECT_EQ(status_of([&] { im::copy(std::span(late), there); }), im::status::dependency);
          if (sent) {
            EXPECT_EQ(status_of([&] { sent.wait(); }), im::status::driver);
          } else {
            EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
          }
        } else {
          EXPECT_TRUE(outcome == im::status::ok || outcome == im::status::driver);
        }
        EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok) << "reported once";
        EXPECT_TRUE(same(support::read(there), of_value(2)));
        EXPECT_TRUE(same(it.host_read(), of_value(2)));
        EXPECT_EQ(it.state(), im::unified_state::synchronized);
        if (HasFailure()) return;
        if (!was_reached) break;
      }
      EXPECT_GT(uploads_failed, 0) << name_of(means);
    }
  }
}

// A kernel wrote after the failed upload. Its bytes count as written by the device, without a
// conflict.
TEST_F(cuda_unified_failure, of_an_upload_makes_no_conflict_with_later_writes_of_the_device) {
  for (const auto means : usable_means()) {
    int uploads_failed = 0;
    for (long n = 0; n < 8; ++n) {
      SCOPED_TRACE(name_of(means) + ", call " + std::to_string(n));
      const unified it = make(means);
      const auto view = it.host();
      std::ranges::fill(view, std::byte{1});
      (void)it.device();
      queue_.wait();
      const im::host_event gate;
      (void)queue_.fence({gate});
      std::ranges::fill(view, std::byte{2});
      const im::buffer there = it.device();
      im::event kernel = im::fill_async(there.slice(100, 50), std::byte{9});
      it.mark_device({100, 150});
      relay_.fail_after(n, relayed::takes, k_unknown);
      gate.complete();
      queue_.wait();
      (void)reached();
      if (status_of([&] { kernel.wait(); }) != im::status::ok) {
        im::fill(there.slice(100, 50), std::byte{9});
      }
      const auto reported = status_of([&] { it.sync_to_host(); });
      uploads_failed += reported == im::status::driver ? 1 : 0;
      EXPECT_TRUE(reported == im::status::ok || reported == im::status::driver);
      it.sync_to_host();
      it.sync_to_device();
      auto want = of_value(2);
      std::fill_n(want.begin() + 100, 50, std::byte{9});
      EXPECT_TRUE(same(view.span(), want));
      EXPECT_TRUE(same(read(there), want));
      if (HasFailure()) return;
    }
    EXPECT_GT(uploads_failed, 0);
  }
}

// Reads of overwritten bytes no longer depend on the failed upload; reads of the rest do.
TEST_F(cuda_unified_failure, of_an_upload_is_over_where_its_bytes_are_overwritten) {
  const unified it = make(im::tracking_mechanism::bytes);
  int uploads_failed = 0;
  for (long n = 0; n < 8; ++n) {
    std::ranges::fill(it.host(), std::byte{1});
    const im::buffer there = it.device();
    queue_.wait();
    const im::host_event gate;
    (void)queue_.fence({gate});
    std::ranges::fill(it.host(), static_cast<std::byte>(2 + n));
    (void)it.device();
    relay_.fail_after(n, relayed::takes, k_unknown);
    gate.complete();
    queue_.wait();
    (void)reached();
    if (it.state() == im::unified_state::host_dirty) {
      ++uploads_failed;
      im::fill(there.slice(0, 100), std::byte{7});
      EXPECT_TRUE(same(read(there.slice(0, 100)), of_value(7, 100)));
      EXPECT_EQ(status_of([&] { (void)read(there); }), im::status::dependency);
      EXPECT_EQ(status_of([&] { (void)it.device(); }), im::status::driver);
    }
    EXPECT_TRUE(same(read(it.device()), of_value(static_cast<int>(2 + n))));
  }
  EXPECT_GT(uploads_failed, 0);
}

// Memory that still has bytes from before the upload is not exported, to other processes either. An
// export while the upload is blocked waits for it and reports its failure.
TEST_F(cuda_unified_failure, of_an_upload_is_reported_to_callers_that_obtain_the_memory) {
  int uploads_failed = 0;
  for (long n = 0; n < 8; ++n) {
    SCOPED_TRACE("call " + std::to_string(n));
    const unified it = make(im::tracking_mechanism::bytes);
    std::ranges::fill(it.host(), std::byte{1});
    const im::buffer there = it.device();
    queue_.wait();
    const im::host_event gate;
    (void)queue_.fence({gate});
    std::ranges::fill(it.host(), std::byte{2});
    (void)it.device();
    const im::queue other(device_);
    relay_.fail_after(n, relayed::takes, k_unknown);
    std::thread opens{[&] {
      std::this_thread::sleep_for(2ms);
      gate.complete();
    }};
    const auto while_held_back = export_to(other, there);
    opens.join();
    queue_.wait();
    (void)reached();
    const bool failed = it.state() == im::unified_state::host_dirty;
    uploads_failed += failed ? 1 : 0;
    const auto want = failed ? im::status::dependency : im::status::ok;
    EXPECT_TRUE(while_held_back == want || while_held_back == im::status::driver);
    EXPECT_EQ(status_of([&] { there.wait(); }), want);
    EXPECT_EQ(export_to(queue_, there), want);
    EXPECT_EQ(export_unordered(there), want);
    isthmus_ipc_handle_t handle{};
    handle.struct_size = sizeof handle;
    EXPECT_EQ(static_cast<im::status>(isthmus_buffer_ipc_handle(there.get(), &handle)), want);
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }),
              failed ? im::status::driver : im::status::ok);
    it.sync_to_device();
    EXPECT_EQ(isthmus_buffer_ipc_handle(there.get(), &handle), ISTHMUS_OK);
    EXPECT_EQ(export_to(queue_, there), im::status::ok);
    if (HasFailure()) return;
  }
  EXPECT_GT(uploads_failed, 0);
}

// What a failed download has written does not count as a host write, whichever side wins. A single
// range is copied directly to its target, and may have arrived when the driver fails to record the
// event. Several ranges are scattered after they have arrived.
class cuda_unified_download : public cuda_unified_failure {
 protected:
  struct kind_of_download {
    im::tracking_mechanism means;
    im::winner wins;
    bool waits;
    std::vector<std::size_t> begins;  // offsets of the ranges that the device wrote
  };

  // Makes one call after the other fail. Returns how many downloads failed.
  int fail_in_turn(const kind_of_download& what) {
    int failures = 0;
    for (long n = 0; n < k_most_failing; ++n) {
      SCOPED_TRACE(name_of(what.means) + ", winner " + std::to_string(static_cast<int>(what.wins)) +
                   ", " + std::to_string(what.begins.size()) + " ranges, call " +
                   std::to_string(n));
      const unified it = make(what.means, what.wins);
      const auto view = it.host();
      std::ranges::fill(view, std::byte{1});
      const im::buffer there = it.device();
      auto want = of_value(1);
      for (const auto at : what.begins) {
        fill_on_device(it, there, {at, at + 100}, 9);
        std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(at), 100, std::byte{9});
      }
      queue_.wait();
      relay_.fail_after(n, relayed::takes, k_unknown);
      const auto outcome = status_of([&] {
        if (what.waits) return it.sync_to_host();
        const im::event got = it.sync_to_host_async(it.all());
        if (got) got.wait();
      });
      const bool was_reached = reached();
      failures += outcome == im::status::driver ? 1 : 0;
      EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok) << "a retry";
      EXPECT_TRUE(same(view.span(), want));
      it.sync_to_device();
      EXPECT_TRUE(same(read(there), want));
      EXPECT_EQ(it.state(), im::unified_state::synchronized);
      if (HasFailure() || !was_reached) break;
    }
    return failures;
  }
};

TEST_F(cuda_unified_download, that_fails_invents_no_writes_of_the_host) {
  for (const auto means : usable_means()) {
    for (const auto wins : {im::winner::none, im::winner::host, im::winner::device}) {
      for (const bool waits : {true, false}) {
        for (const auto& begins : {std::vector<std::size_t>{100}, {100, 30'000}}) {
          EXPECT_GT(fail_in_turn({means, wins, waits, begins}), 0);
          if (HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
