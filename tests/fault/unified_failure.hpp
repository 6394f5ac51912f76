// SPDX-License-Identifier: Apache-2.0
#pragma once
// Support for tests of failed copies of a unified buffer, on any device.

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes.hpp"
#include "support/status_of.hpp"
#include "support/unified.hpp"

namespace support {

inline constexpr std::size_t k_failing_bytes = 50'000;

// The ways in which host writes are uploaded.
enum class upload_path { device, blocking, together, with_event };
inline constexpr std::array k_upload_paths{upload_path::device, upload_path::blocking,
                                           upload_path::together, upload_path::with_event};

// The event is null if that way returns none.
inline im::event send_by(upload_path way, const unified& it) {
  if (way == upload_path::device) (void)it.device();
  if (way == upload_path::blocking) it.sync_to_device();
  if (way == upload_path::together) im::synchronize(it);
  return way == upload_path::with_event ? it.sync_to_device_async(it.all()) : im::event{};
}

inline unified make_separate(const im::queue& queue, im::tracking_mechanism means,
                             im::winner winner = im::winner::none,
                             std::size_t nbytes = k_failing_bytes) {
  im::unified_options options;
  options.queue = queue;
  options.separate = true;
  options.tracking = means;
  options.on_conflict = winner;
  return unified(nbytes, options);
}

inline std::vector<im::tracking_mechanism> usable_means() {
  std::vector all{im::tracking_mechanism::bytes, im::tracking_mechanism::hashes};
  if (reports_pages()) all.push_back(im::tracking_mechanism::pages);
  return all;
}

inline bytes of_value(int value, std::size_t nbytes = k_failing_bytes) {
  return bytes(nbytes, static_cast<std::byte>(value));
}

// What a kernel would do: writes `value` to a range of the device copy `there` and declares the
// write.
inline void fill_on_device(const unified& it, const im::buffer& there,
                           const im::element_range& range, int value) {
  im::fill(there.slice(range.begin, range.end - range.begin), static_cast<std::byte>(value));
  it.mark_device(range);
}

// The status of exporting the memory for external work on that queue, which ends its use at once.
inline im::status export_to(const im::queue& user, const im::buffer& memory) {
  void* pointer = nullptr;
  const auto status = isthmus_buffer_export_to_queue(memory.get(), user.get(), &pointer);
  if (status == ISTHMUS_OK) isthmus_buffer_unexport(memory.get());
  return static_cast<im::status>(status);
}
inline im::status export_unordered(const im::buffer& memory) { return export_to({}, memory); }

}  // namespace support
