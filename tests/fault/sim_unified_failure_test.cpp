// SPDX-License-Identifier: Apache-2.0
// Copies of a unified buffer that fail when the simulated device executes them, with each way of
// finding host writes. Their calls have returned, so either the event of the copy reports the
// failure, or the next call on the buffer does, once. A retry copies the right bytes, and no
// conflict is reported for bytes that only one side wrote.
#include "unified_failure.hpp"

namespace {

using namespace support;

class sim_unified_failure : public leak_checked,
                            public ::testing::WithParamInterface<im::tracking_mechanism> {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    if (GetParam() == im::tracking_mechanism::pages && !reports_pages()) {
      GTEST_SKIP() << "the kernel does not report written pages here";
    }
  }
  // Each time on a new device, for each moment at which operations take effect.
  template <class Body>
  static void on_each(Body body) {
    for (const std::string effect : {"effect=early", "effect=late"}) {
      SCOPED_TRACE(effect);
      const im::sim_device device(effect);
      body(device, im::queue(device));
      EXPECT_EQ(device.calls("violation"), 0u);
    }
  }
  static bool may_have_work(const im::buffer& of) {
    const unsigned char* flags[ISTHMUS_WATCHED];
    const auto count = isthmus_buffer_watch(of.get(), flags, ISTHMUS_WATCHED);
    return std::any_of(flags, flags + count, [](const unsigned char* each) { return *each != 0; });
  }
  static void fail_next(const im::sim_device& device) { device.configure("fail=operation:1"); }

  static unified make(const im::queue& on, im::winner wins = im::winner::none) {
    return make_separate(on, GetParam(), wins);
  }

  // The device copy is ones, the host copy twos.
  struct newer_on_host {
    explicit newer_on_host(const im::queue& on, im::winner wins = im::winner::none)
        : it{make(on, wins)}, view{it.host()} {
      std::ranges::fill(view, std::byte{1});
      there = it.device();
      on.wait();
      std::ranges::fill(view, std::byte{2});
    }

    unified it;
    im::unified_view<std::byte> view;
    im::buffer there;
  };
  // What is submitted now, for example an upload, waits for `gate`.
  struct held_upload : newer_on_host {
    explicit held_upload(const im::queue& on, im::winner wins = im::winner::none)
        : newer_on_host{on, wins} {
      (void)on.fence({gate});
    }
    void end(const im::queue& on) const {
      gate.complete();
      on.wait();
    }

    im::host_event gate;
  };
};

INSTANTIATE_TEST_SUITE_P(means, sim_unified_failure,
                         ::testing::Values(im::tracking_mechanism::bytes,
                                           im::tracking_mechanism::hashes,
                                           im::tracking_mechanism::pages),
                         [](const auto& each) { return name_of(each.param); });

TEST_P(sim_unified_failure, of_an_upload_is_reported_once_and_sent_again) {
  for (const auto way : k_upload_paths) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(way)));
    on_each([&](const im::sim_device& device, const im::queue& queue) {
      const held_upload upload(queue);
      const auto& it = upload.it;
      const auto& there = upload.there;
      const auto& gate = upload.gate;
      const im::event sent = send_by(way, it);
      bytes got(k_failing_bytes), late(k_failing_bytes);
      const im::event before = im::copy_async(std::span(got), there);
      fail_next(device);
      gate.complete();
      EXPECT_EQ(status_of([&] { before.wait(); }), im::status::dependency);
      queue.wait();
      EXPECT_EQ(it.state(), im::unified_state::host_dirty);
      EXPECT_EQ(status_of([&] { im::copy(std::span(late), there); }), im::status::dependency);
      if (sent) {
        EXPECT_EQ(status_of([&] { sent.wait(); }), im::status::driver);
      } else {
        EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
      }
      EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok) << "reported once";
      EXPECT_TRUE(same(read(there), of_value(2)));
      EXPECT_TRUE(same(it.host_read(), of_value(2)));
      EXPECT_EQ(it.state(), im::unified_state::synchronized);
    });
  }
}

// The call has reported the failure. Some of the bytes may have been written.
TEST_P(sim_unified_failure, of_an_upload_that_its_call_waits_for_reaches_readers_too) {
  on_each([&](const im::sim_device& device, const im::queue& queue) {
    const newer_on_host both(queue);
    const auto& it = both.it;
    const auto& there = both.there;
    fail_next(device);
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
    bytes got(k_failing_bytes);
    EXPECT_EQ(status_of([&] { im::copy(std::span(got), there); }), im::status::dependency);
    EXPECT_EQ(status_of([&] { there.wait(); }), im::status::dependency);
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok);
    EXPECT_TRUE(same(read(there), of_value(2)));
    EXPECT_TRUE(same(it.host_read(), of_value(2)));
    EXPECT_EQ(it.state(), im::unified_state::synchronized);
  });
}

// The call has moved no bytes, so reads of them succeed.
TEST_P(sim_unified_failure, of_a_call_with_a_queue_of_another_context_reaches_no_readers) {
  on_each([&](const im::sim_device&, const im::queue& queue) {
    const im::sim_device other;
    const im::queue foreign(other);
    const newer_on_host both(queue);
    const auto& it = both.it;
    const auto& there = both.there;
    EXPECT_EQ(status_of([&] { it.sync_to_device(foreign); }), im::status::wrong_context);
    EXPECT_TRUE(same(read(there), of_value(1)));
    EXPECT_EQ(status_of([&] { there.wait(); }), im::status::ok);
    it.sync_to_device();
    EXPECT_TRUE(same(read(there), of_value(2)));
  });
}

// Memory that has bytes from before the upload is not exported, and waits for the buffer report the
// failure.
TEST_P(sim_unified_failure, of_an_upload_is_reported_to_callers_that_obtain_the_memory) {
  on_each([&](const im::sim_device& device, const im::queue& queue) {
    const unified it = make(queue);
    const auto view = it.host();
    std::ranges::fill(view, std::byte{1});
    const im::buffer there = it.device();
    queue.wait();
    const im::host_event gate;
    (void)queue.fence({gate});
    std::ranges::fill(view.span().subspan(0, 100), std::byte{2});
    (void)it.device();
    const im::buffer sent = there.slice(50, 100);
    const im::buffer other = there.slice(k_failing_bytes - 100, 100);
    const im::buffer none = there.slice(50, 0);
    EXPECT_EQ(export_unordered(sent), im::status::ok) << "nothing has failed yet";
    fail_next(device);
    std::thread opens{[&] {
      std::this_thread::sleep_for(2ms);
      gate.complete();
    }};
    EXPECT_EQ(status_of([&] { sent.wait(); }), im::status::dependency) << "a wait that sees it";
    opens.join();
    EXPECT_EQ(status_of([&] { there.wait(); }), im::status::dependency) << "and every later one";
    EXPECT_EQ(export_unordered(there), im::status::dependency);
    EXPECT_EQ(export_to(queue, sent), im::status::dependency);
    EXPECT_EQ(export_to(im::queue(device), sent), im::status::dependency);
    EXPECT_EQ(isthmus_buffer_idle(sent.get()), 0);
    EXPECT_TRUE(may_have_work(sent)) << "the flags of what is not idle";
    // The buffer is a single chunk.
    const bool is_sent_whole = GetParam() == im::tracking_mechanism::hashes;
    for (const auto& each : {is_sent_whole ? none : other, none}) {
      EXPECT_EQ(status_of([&] { each.wait(); }), im::status::ok);
      EXPECT_EQ(export_to(queue, each), im::status::ok);
    }
    im::fill(sent, std::byte{9});
    EXPECT_EQ(export_to(queue, sent), im::status::ok) << "overwritten";
    EXPECT_EQ(export_to(queue, there), im::status::dependency) << "in part";
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver) << "still reported";
    it.sync_to_device();
    EXPECT_EQ(status_of([&] { there.wait(); }), im::status::ok);
    EXPECT_EQ(export_unordered(there), im::status::ok);
    EXPECT_EQ(export_to(queue, there), im::status::ok);
    EXPECT_EQ(isthmus_buffer_idle(there.get()), 1);
  });
}

// A kernel wrote after the failed upload. Its bytes count as written by the device, without a
// conflict, whether the failure occurs before the write is declared, is reported before that, or
// occurs later.
TEST_P(sim_unified_failure, of_an_upload_makes_no_conflict_with_later_writes_of_the_device) {
  enum class comes { later, before_the_mark, and_is_reported };
  for (const auto wins : {im::winner::none, im::winner::host, im::winner::device}) {
    for (const auto failure : {comes::later, comes::before_the_mark, comes::and_is_reported}) {
      SCOPED_TRACE("winner " + std::to_string(static_cast<int>(wins)) + ", failure " +
                   std::to_string(static_cast<int>(failure)));
      on_each([&](const im::sim_device& device, const im::queue& queue) {
        const held_upload upload(queue, wins);
        const auto& it = upload.it;
        const auto& view = upload.view;
        const auto& there = upload.there;
        const auto& gate = upload.gate;
        (void)it.device();
        const im::event kernel = im::fill_async(there.slice(100, 50), std::byte{9});
        fail_next(device);
        int reported = 0;
        const auto count = [&](im::status told) { reported += told == im::status::driver ? 1 : 0; };
        if (failure != comes::later) {
          upload.end(queue);
          EXPECT_EQ(it.state(), im::unified_state::host_dirty);
        }
        if (failure == comes::and_is_reported) {
          count(status_of([&] { it.sync_to_host(); }));
        }
        count(status_of([&] { it.mark_device({100, 150}); }));
        if (failure == comes::later) gate.complete();
        queue.wait();
        EXPECT_NO_THROW(kernel.wait());
        count(status_of([&] { it.sync_to_host(); }));
        EXPECT_EQ(reported, 1);
        EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok);
        it.sync_to_device();
        auto want = of_value(2);
        std::fill_n(want.begin() + 100, 50, std::byte{9});
        EXPECT_TRUE(same(view.span(), want));
        EXPECT_TRUE(same(read(there), want));
      });
    }
  }
}

// An exception of the function does not swallow a report: the next call reports a copy that failed
// meanwhile, as it does if the function returns. The write counts in both cases.
TEST_P(sim_unified_failure, of_an_upload_beside_a_write_of_the_device_is_reported_later) {
  struct gave_up {};
  for (const bool throws : {false, true}) {
    SCOPED_TRACE(throws ? "the function throws" : "the function returns");
    on_each([&](const im::sim_device& device, const im::queue& queue) {
      const held_upload upload(queue);
      const auto& it = upload.it;
      bool has_thrown = false;
      try {
        it.device_write({100, 150}, [&](const im::buffer& there) {
          fail_next(device);
          upload.end(queue);
          im::fill(there.slice(100, 50), std::byte{9});
          if (throws) throw gave_up{};
        });
      } catch (const gave_up&) {
        has_thrown = true;
      }
      EXPECT_EQ(has_thrown, throws);
      EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::driver);
      EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok) << "reported once";
      it.sync_to_device();
      auto want = of_value(2);
      std::fill_n(want.begin() + 100, 50, std::byte{9});
      EXPECT_TRUE(same(upload.view.span(), want));
      EXPECT_TRUE(same(read(upload.there), want));
    });
  }
}

// Host writes since the upload began are not lost, whenever the upload fails.
TEST_P(sim_unified_failure, of_an_upload_hides_no_conflict_with_later_writes_of_the_host) {
  for (const bool fails_before : {false, true}) {
    SCOPED_TRACE(fails_before ? "failed before" : "fails later");
    on_each([&](const im::sim_device& device, const im::queue& queue) {
      const held_upload upload(queue);
      const auto& it = upload.it;
      const auto& view = upload.view;
      const auto& there = upload.there;
      (void)it.device();
      fail_next(device);
      if (fails_before) upload.end(queue);
      std::ranges::fill(view, std::byte{3});
      const auto told = status_of([&] { it.mark_device({100, 150}); });
      EXPECT_EQ(told, fails_before ? im::status::driver : im::status::ok);
      if (!fails_before) upload.end(queue);
      const auto next = status_of([&] { it.sync_to_host(); });
      EXPECT_EQ(next, fails_before ? im::status::conflict : im::status::driver);
      EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::conflict);
      it.resolve(im::winner::host);
      it.sync_to_device();
      EXPECT_TRUE(same(view.span(), of_value(3)));
      EXPECT_TRUE(same(read(there), of_value(3)));
    });
  }
}

// Reads of bytes that neither the upload nor the fill has written fail.
TEST_P(sim_unified_failure, of_an_upload_and_of_its_overwriting_is_reported_to_readers) {
  on_each([](const im::sim_device& device, const im::queue& queue) {
    const held_upload upload(queue);
    const auto& it = upload.it;
    const auto& there = upload.there;
    const auto& gate = upload.gate;
    const im::host_event never;
    (void)it.device();
    const im::event filled = im::fill_async(there, std::byte{7}, {.after = {never}});
    fail_next(device);
    gate.complete();
    never.fail("the program gave up");
    EXPECT_EQ(status_of([&] { filled.wait(); }), im::status::dependency);
    bytes got(k_failing_bytes);
    EXPECT_EQ(status_of([&] { im::copy(std::span(got), there); }), im::status::dependency);
    im::fill(there, std::byte{8});
    EXPECT_NO_THROW(im::copy(std::span(got), there)) << "now they are written";
    EXPECT_TRUE(same(got, of_value(8)));
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok) << "reported once";
    EXPECT_TRUE(same(read(there), of_value(2)));
  });
}

// A conversion overwrites all bytes of the upload, as a copy or a fill does.
TEST_P(sim_unified_failure, of_an_upload_does_not_reach_readers_of_what_was_converted_there) {
  on_each([](const im::sim_device& device, const im::queue& queue) {
    const held_upload upload(queue);
    const auto& it = upload.it;
    const auto& there = upload.there;
    (void)it.device();
    fail_next(device);
    upload.end(queue);
    bytes got(k_failing_bytes);
    EXPECT_EQ(status_of([&] { im::copy(std::span(got), there); }), im::status::dependency);
    const std::vector<std::int16_t> values(k_failing_bytes / sizeof(std::int32_t), 0x0707);
    const im::array<std::int32_t, 1> elements(there, {values.size()});
    im::copy(elements, values, im::casting::safe);
    EXPECT_NO_THROW(im::copy(std::span(got), there));
    const std::vector<std::int32_t> want(values.begin(), values.end());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size()), 0);
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
  });
}

// The first operation's bytes are readable, even if the second operation fails.
TEST_P(sim_unified_failure, of_the_second_overwriting_of_a_failed_upload_leaves_the_first) {
  on_each([](const im::sim_device& device, const im::queue& queue) {
    const held_upload upload(queue);
    const auto& it = upload.it;
    const auto& there = upload.there;
    const auto& gate = upload.gate;
    const im::host_event never;
    (void)it.device();
    const im::event first = im::fill_async(there, std::byte{7});
    const im::event second = im::fill_async(there, std::byte{8}, {.after = {never}});
    fail_next(device);
    gate.complete();
    never.fail("the program gave up");
    EXPECT_NO_THROW(first.wait());
    EXPECT_EQ(status_of([&] { second.wait(); }), im::status::dependency);
    bytes got(k_failing_bytes);
    EXPECT_NO_THROW(im::copy(std::span(got), there));
    EXPECT_TRUE(same(got, of_value(7)));
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::driver);
  });
}

// The next user's bytes count, and the failure is not reported to that user.
TEST_P(sim_unified_failure, of_an_upload_that_was_forgotten_is_not_reported_later) {
  for (const bool fails_before : {false, true}) {
    SCOPED_TRACE(fails_before ? "failed before" : "fails later");
    on_each([&](const im::sim_device& device, const im::queue& queue) {
      const held_upload upload(queue);
      const auto& it = upload.it;
      const auto& there = upload.there;
      (void)it.device();
      fail_next(device);
      if (fails_before) upload.end(queue);
      EXPECT_EQ(isthmus_unified_forget(it.get()), ISTHMUS_OK);
      EXPECT_EQ(it.state(), im::unified_state::synchronized);
      if (!fails_before) upload.end(queue);
      EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok);
      EXPECT_EQ(it.state(), im::unified_state::synchronized) << "nothing is owed";
      im::fill(there, std::byte{5});
      it.mark_device(it.all());
      EXPECT_TRUE(same(it.host_read(), of_value(5)));
    });
  }
}

// The failure is reported by the call that waits, by the copy's event, or by the next call.
TEST_P(sim_unified_failure, of_a_download_leaves_the_bytes_dirty) {
  enum class reported_by { the_call, its_event, the_next_call };
  for (const auto wins : {im::winner::none, im::winner::host, im::winner::device}) {
    for (const auto by :
         {reported_by::the_call, reported_by::its_event, reported_by::the_next_call}) {
      SCOPED_TRACE("winner " + std::to_string(static_cast<int>(wins)) + ", reported by " +
                   std::to_string(static_cast<int>(by)));
      on_each([&](const im::sim_device& device, const im::queue& queue) {
        const unified it = make(queue, wins);
        const auto view = it.host();
        std::ranges::fill(view, std::byte{1});
        const im::buffer there = it.device();
        auto want = of_value(1);
        for (const std::size_t at : {std::size_t{100}, std::size_t{30'000}}) {
          fill_on_device(it, there, {at, at + 100}, 9);
          std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(at), 100, std::byte{9});
        }
        queue.wait();
        fail_next(device);
        im::event got;
        if (by != reported_by::the_call) got = it.sync_to_host_async(it.all());
        queue.wait();
        EXPECT_EQ(status_of([&] { by == reported_by::its_event ? got.wait() : it.sync_to_host(); }),
                  im::status::driver);
        EXPECT_EQ(it.state(), im::unified_state::device_dirty);
        EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok) << "reported once";
        EXPECT_TRUE(same(view.span(), want));
        it.sync_to_device();
        EXPECT_TRUE(same(read(there), want));
        EXPECT_EQ(it.state(), im::unified_state::synchronized);
      });
    }
  }
}

// The function of device_write no longer uses the memory, but its write is not declared yet.
TEST_P(sim_unified_failure, of_a_request_for_memory_leaves_the_copy_that_the_device_writes) {
  const im::sim_device device("capacity=64MiB");
  const im::queue queue(device);
  const unified it = make_separate(queue, GetParam(), im::winner::none, 8 * k_mib);
  (void)it.host();
  it.sync_to_device();
  it.device_write({0, 100}, [&](im::buffer memory) {
    im::fill(memory.slice(0, 100), std::byte{9});
    memory = {};
    EXPECT_THROW(im::buffer(60 * k_mib, im::kind::device, {.queue = queue}), im::error);
  });
  EXPECT_TRUE(same(it.host_read({0, 100}), bytes(100, std::byte{9})));
}

}  // namespace
