// SPDX-License-Identifier: Apache-2.0
// Fills of strided arrays on a device, and the temporary memory that they use.
#include "support/arrays.hpp"
#include "support/backends.hpp"

namespace {

using namespace support;

class array_fills : public leak_checked {
 protected:
  static isthmus_array_t floats(const isthmus_endpoint_t& at, const lengths& shape,
                                const lengths& strides) {
    return {at, ISTHMUS_FLOAT32, shape.size(), shape.data(), strides.data()};
  }
  static void fill(const isthmus_array_t& what, float value) {
    ASSERT_EQ(isthmus_fill_array(nullptr, &what, &value, ISTHMUS_FLOAT32, ISTHMUS_CASTING_NO,
                                 nullptr, nullptr),
              ISTHMUS_OK)
        << isthmus_error_message();
  }
  // Expects that every `step`th float of the buffer is `value`, except those past the first `used`
  // of each row of `row` floats, and that all others are 0.
  static void expect_filled(const im::buffer& all, std::size_t step, float value,
                            std::size_t row = SIZE_MAX, std::size_t used = SIZE_MAX) {
    std::vector<float> got(all.size() / sizeof(float));
    im::copy(std::span(got), all);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const bool is_one = i % step == 0 && i % row < used;
      wrong += got[i] != (is_one ? value : 0.0F);
    }
    EXPECT_EQ(wrong, 0U);
  }
};

// Each row takes 3/8 of the device's memory and has a prime number of elements, so that it does not
// divide into equal parts.
TEST_F(array_fills, of_long_rows_take_none) {
  constexpr std::int64_t k_row = 6'291'469;
  const im::sim_device device("capacity=64MiB");
  const im::queue on(device);
  const im::buffer all(2 * (k_row + 1) * sizeof(float), im::kind::device, {.queue = on});
  im::fill(all, std::byte{0});
  const auto allocations = device.calls("allocate"), fills = device.calls("fill");
  fill(floats({all.get(), nullptr, 0}, {2, k_row}, {(k_row + 1) * 4, 4}), 2.5F);
  EXPECT_EQ(device.calls("allocate"), allocations);
  EXPECT_EQ(device.calls("fill"), fills + 2);
  expect_filled(all, 1, 2.5F, k_row + 1, k_row);
}

// Some drivers cannot fill at unaligned addresses.
TEST_F(array_fills, of_long_rows_at_odd_addresses) {
  constexpr std::size_t k_row = 300'000;
  const im::sim_device device("");
  const im::queue on(device);
  const im::buffer all(2 * k_row * sizeof(float) + 4, im::kind::device, {.queue = on});
  fill(floats({all.get(), nullptr, 1}, {2, k_row}, {k_row * 4 + 1, 4}), 2.5F);
  std::vector<float> got(k_row);
  im::copy(std::span(got), all.slice(1 + k_row * 4 + 1, k_row * 4));
  EXPECT_EQ(got, std::vector<float>(k_row, 2.5F));
}

TEST_F(array_fills, continue_where_the_device_is_full) {
  const im::sim_device device("");
  const im::queue on(device);
  const im::resource pool = im::resource::pool(
      on.context(), im::kind::device,
      {.initial_bytes = 4 * k_mib, .limit_bytes = 4 * k_mib, .wait = 1ms}, device);
  const im::buffer all(4 * k_mib, im::kind::device, {.queue = on, .resource = pool});
  im::fill(all, std::byte{0});
  fill(floats({all.get(), nullptr, 0}, {k_mib / 2}, {8}), 2.5F);
  expect_filled(all, 2, 2.5F);
}

TEST_F(array_fills, of_memory_of_no_pool_take_none_while_they_are_small) {
  const im::sim_device device("");
  const im::queue on(device);
  const im::buffer owner(40'000, im::kind::device, {.queue = on});
  im::fill(owner, std::byte{0});
  {
    const im::buffer all = im::buffer::adopt(
        std::span(static_cast<std::byte*>(isthmus_buffer_pointer(owner.get())), owner.size()), 0,
        {.queue = on});
    const auto allocations = device.calls("allocate");
    for (int i = 1; i <= 100; ++i) {
      fill(floats({all.get(), nullptr, 0}, {5000}, {8}), static_cast<float>(i));
    }
    EXPECT_EQ(device.calls("allocate"), allocations);
  }
  expect_filled(owner, 2, 100.0F);
}

}  // namespace
