// SPDX-License-Identifier: Apache-2.0
// Fills with a driver that reads the pattern when the fill begins. They write the pattern that the
// caller passed, even if the caller's memory has changed since. The memory of the pattern is not
// freed before that, and is freed eventually; sanitizers check both.
#include <array>
#include <cstring>

#include "opencl_relay.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_filled_bytes = 4096;
constexpr long k_most_refused = 8;

using of_16 = std::array<std::uint64_t, 2>;

class opencl_patterns : public on_opencl_relay {
 protected:
  void SetUp() override {
    on_opencl_relay::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    before_ = relay_.late_fills();
    if (before_ < 0) GTEST_SKIP() << "OPENCL_RELAY_LATE_PATTERNS is not set";
  }
  [[nodiscard]] long begun() const { return relay_.late_fills() - before_; }

  im::buffer make() const {
    const im::buffer made(k_filled_bytes, im::kind::device, {.queue = queue_});
    write(made, bytes(k_filled_bytes));
    return made;
  }
  // The contents after a fill with `pattern`.
  template <class T>
  static bytes full_of(const T& pattern) {
    bytes all(k_filled_bytes);
    for (std::size_t at = 0; at < all.size(); at += sizeof pattern) {
      std::memcpy(all.data() + at, &pattern, sizeof pattern);
    }
    return all;
  }

  static im::operation after(const im::host_event* gate) {
    im::operation how;
    if (gate != nullptr) how.after = {*gate};
    return how;
  }

  // A fill, its target and the expected contents.
  struct wanted_fill {
    im::buffer to;
    bytes want{};
    im::event ended{};

    template <class T>
    void submit(const T& pattern, const im::host_event* gate) {
      want = full_of(pattern);
      ended = im::fill_async(to, pattern, after(gate));
    }
  };
  std::array<wanted_fill, 5> make_five() const {
    return {{{make()}, {make()}, {make()}, {make()}, {make()}}};
  }
  // Submits fills with patterns of every size. They depend on `gate` if it is not null.
  static void submit(std::array<wanted_fill, 5>& all, const im::host_event* gate) {
    all[0].submit(std::uint8_t{0x11}, gate);
    all[1].submit(std::uint16_t{0x2122}, gate);
    all[2].submit(std::uint32_t{0x31323334}, gate);
    all[3].submit(std::uint64_t{0x4142434445464748}, gate);
    all[4].submit(of_16{0x5152535455565758, 0x6162636465666768}, gate);
  }

  long before_ = 0;
};

TEST_F(opencl_patterns, are_those_that_the_caller_passed) {
  for (const bool names_gate : {false, true}) {
    for (const bool drops_events : {false, true}) {
      SCOPED_TRACE(std::string{names_gate ? "after the event" : "on a queue after the event"} +
                   (drops_events ? ", without their own events" : ""));
      auto all = make_five();
      const auto earlier = begun();
      const im::host_event gate;
      if (!names_gate) (void)queue_.fence({gate});
      submit(all, names_gate ? &gate : nullptr);
      for (auto& each : all) {
        if (drops_events) each.ended = {};
      }
      EXPECT_EQ(begun(), earlier) << "the event holds them back";
      gate.complete();
      queue_.wait();
      EXPECT_EQ(begun() - earlier, static_cast<long>(all.size()));
      for (const auto& each : all) EXPECT_TRUE(same(read(each.to), each.want));
    }
  }
}

TEST_F(opencl_patterns, of_fills_whose_commands_are_refused_in_turn) {
  for (const bool names_gate : {false, true}) {
    bool was_refused = true;
    for (long n = 0; was_refused && n < k_most_refused; ++n) {
      SCOPED_TRACE((names_gate ? "after an event, command " : "command ") + std::to_string(n));
      const im::buffer to = make();
      const im::host_event gate;
      const auto seen = refuse_after(n, gate, [&] {
        return im::fill_async(to, of_16{0x7172737475767778, 9},
                              after(names_gate ? &gate : nullptr));
      });
      expect_driver_error(seen);
      was_refused = seen.was_refused;
      const of_16 again{0x8182838485868788, 7};
      im::fill(to, again);
      EXPECT_TRUE(same(read(to), full_of(again)));
      if (HasFailure()) return;
    }
    EXPECT_FALSE(was_refused);
  }
}

TEST_F(opencl_patterns, of_fills_whose_event_fails_are_not_read_again) {
  auto all = make_five();
  const im::host_event gate;
  submit(all, &gate);
  gate.fail("the program gave up");
  for (const auto& each : all) {
    EXPECT_EQ(status_of([&] { each.ended.wait(); }), im::status::dependency);
  }
  queue_.wait();
  EXPECT_EQ(begun(), 0);
  for (const auto& each : all) EXPECT_TRUE(same(read(each.to), bytes(k_filled_bytes)));
}

}  // namespace
