// SPDX-License-Identifier: Apache-2.0
#pragma once
// A scenario with unified buffers, in which any driver call may fail. Unless the device is lost,
// the following holds after each failure. The host's view is unchanged, and dirty ranges stay
// dirty. There is no conflict, as the two sides never write the same bytes. The next try succeeds
// and gives both sides the bytes of the shadow, `want_`. A copy that fails after its call has
// returned is reported by the next call.
#include <algorithm>

#include "steps.hpp"
#include "support/bytes.hpp"
#include "support/unified.hpp"

namespace support {

class unified_scenario : public steps {
 public:
  explicit unified_scenario(im::device device) : device_(std::move(device)) {}

  void run() {
    attempt([&] { first_ = im::queue(device_); });
    attempt([&] { second_ = im::queue(device_); });
    if (!first_ || !second_) return;
    for (const auto means : {im::tracking_mechanism::pages, im::tracking_mechanism::bytes,
                             im::tracking_mechanism::hashes}) {
      if (means != im::tracking_mechanism::pages || reports_pages()) live(means, 200'000);
    }
    live(im::tracking_mechanism::hashes, k_mib + 200'000);  // uploaded in several chunks
    attempt([&] { first_.wait(); });
    attempt([&] { second_.wait(); });
  }

 private:
  void live(im::tracking_mechanism means, std::size_t nbytes) {
    im::unified_options options;
    options.queue = first_;
    options.separate = true;
    options.tracking = means;
    it_ = unified(nbytes, options);
    want_ = noise(nbytes);
    device_range_ = {};
    if (retry([&] { view_ = it_.host(); })) {
      std::copy(want_.begin(), want_.end(), view_.begin());
      if (!use()) expect_missing_range_reported();
    }
    view_ = {};
    it_ = {};
  }
  // Returns false when a step keeps failing.
  bool use() {
    if (!upload([&] { it_.sync_to_device(); })) return false;
    for (unsigned round = 0; round < 3; ++round) {
      write_on_host(round * 60'000, 3000);
      const bool sent = upload([&] { end_all(it_.sync_to_device_async(it_.all())); });
      if (!sent || !write_on_device(round * 50'000 + 20'000, 2000)) return false;
      write_on_host(want_.size() - 20'000, 4000);  // not the bytes that the device wrote
      if (!download() || !upload([&] { it_.sync_to_device(second_); })) return false;
      if (round == 1 && !expect_on_device(second_)) return false;
    }
    write_exactly(70'000, 300);
    return upload([&] { im::synchronize(it_); }) && expect_on_device(first_) &&
           expect_on_device(second_);
  }
  static void end_all(const im::event& moved) {
    if (moved) end(moved);
  }

  template <class Step>
  bool retry(Step step) {
    for (int tries = 0; tries < 4; ++tries) {
      const bool done = attempt([&] {
        try {
          step();
        } catch (const im::conflict& invented) {
          ADD_FAILURE() << "nobody made this conflict: " << invented.what();
          throw;
        }
      });
      if (done) return true;
      expect_intact();
    }
    return false;
  }
  // As long as `step` fails, the host's writes stay dirty.
  template <class Step>
  bool upload(Step step) {
    return retry([&] {
      try {
        step();
      } catch (const im::error&) {
        const auto now = it_.state();
        EXPECT_TRUE(now == im::unified_state::host_dirty || now == im::unified_state::host_only);
        throw;
      }
      if (it_.state() == im::unified_state::synchronized) return;
      EXPECT_EQ(it_.state(), im::unified_state::host_dirty);
      it_.mark_host({0, 0});
      ADD_FAILURE() << "a copy failed, and no call reports it";
    });
  }
  bool download() {
    const bool succeeded = retry([&] {
      try {
        it_.sync_to_host();
      } catch (const im::error&) {
        EXPECT_EQ(it_.state(), im::unified_state::device_dirty);
        EXPECT_EQ(it_.dirty_on_device(), std::vector{device_range_});
        throw;
      }
    });
    if (succeeded) {
      device_range_ = {};
      EXPECT_TRUE(same(view_.span(), want_)) << "what the device wrote";
    }
    return succeeded;
  }
  void write_on_host(std::size_t at, std::size_t nbytes) {
    const bytes data = noise(nbytes, static_cast<unsigned>(at + nbytes));
    std::copy(data.begin(), data.end(), view_.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(data.begin(), data.end(), want_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void write_exactly(std::size_t at, std::size_t nbytes) {
    const bytes data = noise(nbytes, 7);
    retry([&] {
      it_.host_write({at, at + nbytes}, [&](std::span<std::byte> part) {
        std::copy(data.begin(), data.end(), part.begin());
      });
    });
    std::copy(data.begin(), data.end(), want_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // As a kernel would. The write counts once it is declared.
  bool write_on_device(std::size_t at, std::size_t nbytes) {
    const bytes data = noise(nbytes, static_cast<unsigned>(at));
    im::buffer there;
    const im::element_range range{at, at + nbytes};
    const bool done = retry([&] { there = it_.device(range); }) &&
                      retry([&] { im::copy(im::at(there, at), std::span<const std::byte>(data)); });
    if (!done) return false;
    std::copy(data.begin(), data.end(), want_.begin() + static_cast<std::ptrdiff_t>(at));
    device_range_ = range;
    return retry([&] { it_.mark_device(range); });
  }
  bool expect_on_device(const im::queue& on) {
    return retry([&] {
      bytes got(want_.size());
      im::copy(std::span(got), it_.device(on));
      EXPECT_TRUE(same(got, want_));
    });
  }
  // Except for the device's newer bytes.
  void expect_intact() const {
    if (view_.size() == 0) return;
    const auto rest = std::span(want_).subspan(device_range_.end);
    EXPECT_TRUE(
        same(view_.span().first(device_range_.begin), std::span(want_).first(device_range_.begin)));
    EXPECT_TRUE(same(view_.span().subspan(device_range_.end), rest));
  }
  // The device is lost. The host copy is valid except for the range that the error names.
  void expect_missing_range_reported() {
    expect_intact();
    (void)attempt([&] { it_.mark_host({0, 0}); });  // reports the copies that failed
    if (device_range_.end != 0) {
      EXPECT_FALSE(attempt([&] { (void)it_.host_read(); }));
      EXPECT_TRUE(contains(isthmus_error_message(), std::to_string(device_range_.begin)))
          << isthmus_error_message();
      it_.resolve(im::winner::host);
    }
    const auto read = it_.host_read();
    EXPECT_TRUE(same(read, view_.span()));
  }

  im::device device_;
  im::queue first_;
  im::queue second_;
  unified it_;
  im::unified_view<std::byte> view_;
  bytes want_;
  im::element_range device_range_;  // written by the device and declared
};

}  // namespace support
