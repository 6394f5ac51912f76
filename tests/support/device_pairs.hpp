// SPDX-License-Identifier: Apache-2.0
// Checks of copies between the device memory of two queues, of the same device or of different
// ones.
#pragma once

#include <vector>

#include "support/bytes.hpp"
#include "support/sizes.hpp"

namespace support {

inline isthmus::buffer device_buffer(const isthmus::queue& queue, const bytes& data) {
  isthmus::buffer result(data.size(), isthmus::kind::device, {.queue = queue});
  write(result, data);
  return result;
}

// An operation on either queue is ordered after the operations pending on its memory, including
// those on the other queue.
inline void check_order_of_both(const isthmus::queue& to, const isthmus::queue& from) {
  constexpr std::size_t k_bytes = 5 * k_mib + 7;
  const bytes data = noise(k_bytes);
  const isthmus::buffer source = device_buffer(from, bytes(k_bytes));
  const isthmus::buffer target = device_buffer(to, bytes(k_bytes));
  const isthmus::event ends[] = {isthmus::copy_async(source, std::span(data), {.queue = from}),
                                 isthmus::copy_async(target, source, {.queue = to}),
                                 isthmus::fill_async(source, std::byte{1}, {.queue = from})};
  bytes got(k_bytes);
  isthmus::copy(std::span(got), target, {.queue = to});
  for (const auto& each : ends) each.wait();
  EXPECT_TRUE(same(got, data));
  EXPECT_TRUE(same(read(source), bytes(k_bytes, std::byte{1})));
}

// Copies of rows, of ranges and of an array of elements.
class shapes {
 public:
  shapes() {
    for (std::size_t row = 0; row < k_rows; ++row) {
      ranges_.push_back({row * k_pitch + row % 16, (k_rows - 1 - row) * k_pitch, 1000 + row % 999});
      const auto& each = ranges_.back();
      std::copy_n(data_.data() + row * k_pitch, 2000, rows_.data() + row * k_pitch);
      std::copy_n(data_.data() + each.source_offset, each.nbytes,
                  picked_.data() + each.destination_offset);
      for (std::size_t x = 0; x < k_pitch / 4; ++x) {
        std::copy_n(data_.data() + row * k_pitch + x * 4, 4,
                    turned_.data() + (x * k_rows + row) * 4);
      }
    }
  }
  void check(const isthmus::queue& to, const isthmus::queue& from) const {
    const isthmus::buffer source = device_buffer(from, data_);
    const isthmus::buffer target = device_buffer(to, bytes(data_.size()));
    isthmus::copy_2d({target, k_pitch}, {source, k_pitch}, {.width = 2000, .height = k_rows});
    EXPECT_TRUE(same(read(target), rows_));
    isthmus::fill(target, std::byte{0});
    isthmus::copy_ranges_async(target, source, ranges_).wait();
    EXPECT_TRUE(same(read(target), picked_));
    isthmus::copy_nd({target, {4, k_rows * 4}}, {source, {k_pitch, 4}}, {k_rows, k_pitch / 4}, 4);
    EXPECT_TRUE(same(read(target), turned_));
  }

 private:
  static constexpr std::size_t k_pitch = 3000, k_rows = 1500 / k_slower;
  const bytes data_ = noise(k_pitch * k_rows);
  std::vector<isthmus::copy_range> ranges_;
  bytes rows_ = bytes(data_.size());
  bytes picked_ = bytes(data_.size());
  bytes turned_ = bytes(data_.size());
};

}  // namespace support
