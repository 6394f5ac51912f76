// SPDX-License-Identifier: Apache-2.0
// Operations that take several OpenCL commands, each of which fails in turn. If the first fails,
// the call reports it. If a later one fails, the event reports it after what is in flight has
// completed. A retry produces the right bytes, and no conflict is reported for bytes that only one
// side wrote.
#include <cstring>

#include "opencl_relay.hpp"
#include "unified_failure.hpp"

namespace {

using namespace support;

constexpr std::size_t k_parted =
    k_mib + 100;  // whole pages and a separate rest (copy_division.hpp)
constexpr long k_most_commands = 20;

class opencl_parts : public on_opencl_relay {
 protected:
  static void fill_view(const im::unified_view<std::byte>& view, int value) {
    std::memset(view.data(), value, view.size());
  }
};

TEST_F(opencl_parts, of_a_copy_are_refused_in_turn) {
  const auto data = noise(k_parted);
  // With a dependency on a host event, which may fail, the commands are enclosed by barriers.
  for (const bool depends : {false, true}) {
    int later = 0;
    bool was_refused = true;
    for (long n = 0; was_refused && n < k_most_commands; ++n) {
      SCOPED_TRACE((depends ? "after an event, command " : "command ") + std::to_string(n));
      const im::buffer from(k_parted, im::kind::device, {.queue = queue_});
      const im::buffer to(k_parted, im::kind::device, {.queue = queue_});
      write(from, data);
      write(to, bytes(k_parted));
      const im::host_event gate;
      const auto seen = refuse_after(n, gate, [&] {
        return depends ? im::copy_async(to, from, {.after = {gate}}) : im::copy_async(to, from);
      });
      expect_driver_error(seen);
      later += seen.event_status != im::status::ok ? 1 : 0;
      was_refused = seen.was_refused;
      if (was_refused) im::copy_async(to, from).wait();
      EXPECT_TRUE(same(read(to), data));
      if (HasFailure()) return;
    }
    EXPECT_FALSE(was_refused);
    EXPECT_GT(later, 0);
  }
}

TEST_F(opencl_parts, of_an_upload_are_refused_in_turn) {
  for (const auto means : usable_means()) {
    for (const auto way : k_upload_paths) {
      int later = 0;
      bool was_refused = true;
      for (long n = 0; was_refused && n < k_most_commands; ++n) {
        SCOPED_TRACE(name_of(means) + ", path " + std::to_string(static_cast<int>(way)) +
                     ", command " + std::to_string(n));
        const unified it = make_separate(queue_, means, im::winner::none, k_parted);
        const auto view = it.host();
        fill_view(view, 1);
        const im::buffer there = it.device();
        queue_.wait();
        const im::host_event gate;
        (void)queue_.fence({gate});
        fill_view(view, 2);
        auto seen = refuse_after(n, gate, [&] { return send_by(way, it); });
        if (!seen.any()) seen.event_status = status_of([&] { it.sync_to_device(); });
        expect_driver_error(seen);
        later += seen.event_status != im::status::ok ? 1 : 0;
        was_refused = seen.was_refused;
        EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::ok) << "reported once";
        EXPECT_TRUE(same(read(there), of_value(2, k_parted)));
        EXPECT_TRUE(same(it.host_read(), of_value(2, k_parted)));
        EXPECT_EQ(it.state(), im::unified_state::synchronized);
        if (HasFailure()) return;
      }
      EXPECT_FALSE(was_refused);
      EXPECT_GT(later, 0);
    }
  }
}

TEST_F(opencl_parts, of_a_download_are_refused_in_turn) {
  for (const auto means : usable_means()) {
    for (const auto wins : {im::winner::none, im::winner::host, im::winner::device}) {
      int later = 0;
      bool was_refused = true;
      for (long n = 0; was_refused && n < k_most_commands; ++n) {
        SCOPED_TRACE(name_of(means) + ", winner " + std::to_string(static_cast<int>(wins)) +
                     ", command " + std::to_string(n));
        const unified it = make_separate(queue_, means, wins, k_parted);
        const auto view = it.host();
        fill_view(view, 1);
        const im::buffer there = it.device();
        fill_on_device(it, there, {0, k_parted}, 9);
        queue_.wait();
        const im::host_event gate;
        (void)queue_.fence({gate});
        const auto seen = refuse_after(n, gate, [&] { return it.sync_to_host_async(it.all()); });
        expect_driver_error(seen);
        later += seen.event_status != im::status::ok ? 1 : 0;
        was_refused = seen.was_refused;
        EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok) << "a retry";
        EXPECT_TRUE(same(view.span(), of_value(9, k_parted)));
        it.sync_to_device();
        EXPECT_TRUE(same(read(there), of_value(9, k_parted)));
        EXPECT_EQ(it.state(), im::unified_state::synchronized);
        if (HasFailure()) return;
      }
      EXPECT_FALSE(was_refused);
      EXPECT_GT(later, 0);
    }
  }
}

}  // namespace
