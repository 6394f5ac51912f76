// SPDX-License-Identifier: Apache-2.0
// Arrays print as NumPy's do, in any kind of memory, and only the elements that are shown are
// copied.
#include <complex>
#include <limits>
#include <numeric>
#include <sstream>

#include "support/array_model.hpp"

namespace {

using namespace support;

class array_print : public on_arrays {
 protected:
  template <class T>
  std::string text(const std::vector<T>& values, const im::print_options& how = {}) const {
    return to_string(im::to_array(values, im::kind::device, options()), how);
  }
  // An array of the numbers from 0 up.
  im::dyn_array counting(const im::axes<im::dynamic_rank>& shape, im::kind kind) const {
    const im::dyn_array made = im::empty(im::dtype::int32, shape, kind, options());
    std::vector<std::int32_t> values(made.size());
    std::iota(values.begin(), values.end(), 0);
    im::copy(made, values);
    return made;
  }
};
INSTANTIATE_ON_BACKENDS(array_print);

TEST_P(array_print, elements_stand_below_one_another) {
  for (const im::kind kind : kinds()) {
    const auto a = counting({2, 3}, kind);
    EXPECT_EQ(to_string(a), "[[0 1 2]\n [3 4 5]]");
    EXPECT_EQ(to_string(a.transpose()), "[[0 3]\n [1 4]\n [2 5]]");
    EXPECT_EQ(to_string(a.view(1)), "[3 4 5]");
    EXPECT_EQ(to_string(a.view(1, 2)), "5");
    EXPECT_EQ(to_string(a.view(im::slice(0, 0))), "[]");
    const auto b = counting({2, 2, 6}, kind);
    EXPECT_EQ(to_string(b),
              "[[[ 0  1  2  3  4  5]\n  [ 6  7  8  9 10 11]]\n\n"
              " [[12 13 14 15 16 17]\n  [18 19 20 21 22 23]]]");
    std::ostringstream out;
    out << im::full<float>({2}, 1.5f, kind, options()) << a.view(0);
    EXPECT_EQ(out.str(), "[1.5 1.5][0 1 2]");
  }
}

TEST_P(array_print, of_many_the_ends_are_shown) {
  for (const im::kind kind : kinds()) {
    EXPECT_EQ(to_string(counting({1001}, kind)), "[   0    1    2 ...  998  999 1000]");
    EXPECT_EQ(to_string(counting({300, 4}, kind), {.edge = 1}),
              "[[   0 ...    3]\n ...\n [1196 ... 1199]]");
    EXPECT_EQ(to_string(counting({600, 2}, kind), {.edge = 1}),
              "[[   0    1]\n ...\n [1198 1199]]");
    EXPECT_EQ(to_string(counting({2, 2, 2}, kind), {.threshold = 7, .edge = 0}), "[...]");
    const auto turned = counting({40, 40}, kind).transpose();
    EXPECT_EQ(to_string(turned, {.edge = 1}), "[[   0 ... 1560]\n ...\n [  39 ... 1599]]");
  }
}

TEST_P(array_print, long_rows_are_broken) {
  EXPECT_EQ(to_string(counting({10}, im::kind::device), {.width = 8}),
            "[0 1 2\n 3 4 5\n 6 7 8\n 9]");
  EXPECT_EQ(to_string(counting({2, 3}, im::kind::device), {.width = 6}),
            "[[0 1\n  2]\n [3 4\n  5]]");
  EXPECT_EQ(to_string(counting({2}, im::kind::device), {.width = 0}), "[0\n 1]");
}

TEST_P(array_print, every_type_in_the_fewest_digits) {
  EXPECT_EQ(to_string(im::full<bool>({2}, true, im::kind::device, options())), "[true true]");
  EXPECT_EQ(text(std::vector<std::int8_t>{-128, 7}), "[-128    7]");
  EXPECT_EQ(text(std::vector{std::numeric_limits<std::uint64_t>::max()}), "[18446744073709551615]");
  EXPECT_EQ(text(std::vector{0.1f, 1.0f / 3, 1e30f}), "[       0.1 0.33333334      1e+30]");
  EXPECT_EQ(text(std::vector{0.1, -0.0}), "[0.1  -0]");
  EXPECT_EQ(text(std::vector{std::numeric_limits<double>::quiet_NaN(),
                             -std::numeric_limits<double>::infinity()}),
            "[ nan -inf]");
  EXPECT_EQ(text(std::vector{0.1L}), "[0.1]");
  EXPECT_EQ(text(std::vector{im::float16(0.1f), im::float16(65504.0f)}), "[  0.1 65500]");
  EXPECT_EQ(text(std::vector{im::bfloat16(0.1f), im::bfloat16(3.0f)}), "[0.1   3]");
  EXPECT_EQ(
      text(std::vector{im::float16(10), im::float16(12), im::float16(-100), im::float16(6e-8f)}),
      "[   10    12  -100 6e-08]");
  EXPECT_EQ(text(std::vector{im::bfloat16(110), im::bfloat16(0)}), "[110   0]");
  EXPECT_EQ(text(std::vector{-std::numeric_limits<float>::quiet_NaN()}), "[nan]");
  EXPECT_EQ(
      to_string(im::full<std::uint8_t>({2}, 2, im::kind::device, options()).reinterpret<bool>()),
      "[true true]");
  EXPECT_EQ(text(std::vector<std::complex<float>>{{1, -2.5f}}), "[(1,-2.5)]");
  // Each printed number parses to the same value.
  for (std::uint32_t bits = 0; bits < 1u << 16; bits += 7) {
    const auto half = std::bit_cast<im::float16>(static_cast<std::uint16_t>(bits));
    const auto exact = static_cast<float>(half);
    if (exact != exact) continue;
    EXPECT_EQ(static_cast<float>(im::float16(std::stof(im::detail::text_of(half)))), exact);
  }
}

TEST_P(array_print, arrays_without_memory_are_marked) {
  EXPECT_EQ(to_string(im::array<float, 2>()), "(no memory)");
  auto a = counting({3}, im::kind::device);
  const im::dyn_array view = a.view(im::slice(1, 3));
  a.free();
  EXPECT_EQ(to_string(a), "(no memory)");
  EXPECT_EQ(to_string(view), "[1 2]");
  EXPECT_EQ(describe(a), "array device (3,) int32, 12 bytes, no memory");
  view.buffer().free();
  EXPECT_EQ(to_string(view), "(no memory)");
  EXPECT_EQ(describe(view), "array device (2,) int32, 8 bytes, no memory");
}

TEST_P(array_print, waits_for_pending_work) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const auto a = im::zeros<std::int32_t>({3}, im::kind::device, options());
  const im::host_event gate;
  const im::event filled = im::fill_async(a, 7, {.after = gate});
  std::thread opener([&] {
    std::this_thread::sleep_for(5ms);
    gate.complete();
  });
  EXPECT_EQ(to_string(a), "[7 7 7]");
  opener.join();
  filled.wait();
}

TEST_P(array_print, is_described_in_a_line) {
  for (const im::kind kind : kinds()) {
    const auto info = device_.info();
    const std::string where =
        " on " + std::string(info.filter) + " \"" + std::string(info.name) + "\"";
    const auto a = im::zeros<float>({2, 3}, kind, options());
    const std::string what = "array " + std::string(name(kind));
    EXPECT_EQ(describe(a), what + " (2, 3) float32, 24 bytes" + where);
    EXPECT_EQ(describe(im::array<const float, 2>(a.transpose())),
              what + " (3, 2) float32, strides (4, 12), 24 bytes" + where + ", read-only");
  }
}

}  // namespace
