// SPDX-License-Identifier: Apache-2.0
// C++ copies and fills of arrays against a reference model: between all kinds and plain memory,
// strided, converted, overlapping, blocking and asynchronous.
#include "support/array_model.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class array_copies : public on_arrays {};
INSTANTIATE_ON_BACKENDS(array_copies);

// Mimics a std::mdspan with the strides of a column-major matrix.
struct columns {
  using element_type = float;
  float* data;
  std::size_t rows, width;
  float* data_handle() const { return data; }
  static constexpr std::size_t rank() { return 2; }
  std::size_t extent(std::size_t axis) const { return axis == 0 ? rows : width; }
  std::size_t stride(std::size_t axis) const { return axis == 0 ? 1 : rows; }
};

TEST_P(array_copies, between_all_kinds_and_any_strides) {
  const model whole = model::counting({7, 9, 5});
  const model part = whole.sliced(0, {5, 3, 1}).sliced(2, {0, 2, 4});
  for (const im::kind from : kinds()) {
    const auto cut =
        make_array(whole, from)
            .view(im::slice(5, 0, -2), im::every, im::slice(std::nullopt, std::nullopt, 2));
    for (const im::kind to : kinds()) {
      for (const bool blocking : {true, false}) {
        const auto target = im::zeros<std::int32_t>({3, 2, 9, 3}, to, options());
        const auto there = target.view(im::every, 1, im::ellipsis);
        if (blocking) {
          im::copy(there, cut);
        } else {
          im::copy_async(there, cut, im::casting::no, {.queue = queue_}).wait();
        }
        EXPECT_TRUE(same(there, part)) << name(from) << " to " << name(to);
        EXPECT_EQ(im::to_vector(target.view(im::every, 0)), std::vector<std::int32_t>(81, 0));
      }
    }
  }
}

TEST_P(array_copies, with_plain_memory) {
  for (const im::kind kind : kinds()) {
    const auto a = im::zeros<float>({2, 3}, kind, options());
    std::vector<float> values{1, 2, 3, 4, 5, 6};
    im::copy(a, values);
    EXPECT_EQ(im::to_vector(a), values);
    const std::array<float, 6> fixed{6, 5, 4, 3, 2, 1};
    im::copy(a.transpose(), fixed);
    EXPECT_EQ(im::to_vector(a), (std::vector<float>{6, 4, 2, 5, 3, 1}));
    std::vector<double> wide(6);
    im::copy(std::span(wide), a);
    EXPECT_EQ(wide, (std::vector<double>{6, 4, 2, 5, 3, 1}));
    std::vector<float> matrix{1, 2, 3, 4, 5, 6};
    im::copy(a, columns{matrix.data(), 2, 3});
    EXPECT_EQ(im::to_vector(a), (std::vector<float>{1, 3, 5, 2, 4, 6}));
    im::fill(a, 9);
    im::copy(columns{matrix.data(), 2, 3}, a.view(im::every, im::slice(0, 3)));
    EXPECT_EQ(matrix, std::vector<float>(6, 9));
    EXPECT_EQ(im::to_vector(im::to_array(columns{values.data(), 2, 3}, kind, options())),
              (std::vector<float>{1, 3, 5, 2, 4, 6}));
    EXPECT_TRUE(throws(im::status::invalid_argument, {"5 elements", "(2, 3)", "6"},
                       [&] { im::copy(a, std::span(values).first(5)); }));
  }
}

TEST_P(array_copies, convert_as_casting_allows) {
  for (const im::kind kind : kinds()) {
    const std::vector<double> values{0, 1.5, -2.75, 300, 65504};
    const auto a = im::to_array(values, kind, options());
    const auto floats = im::zeros<float>({5}, kind, options());
    im::copy(floats, a);
    EXPECT_EQ(im::to_vector(floats), (std::vector<float>{0, 1.5f, -2.75f, 300, 65504}));
    const auto halves = im::zeros<im::float16>({5}, kind, options());
    im::copy(halves, a);
    EXPECT_EQ(float(im::to_vector(halves)[4]), 65504.0f);
    const auto whole = im::zeros<std::int32_t>({5}, kind, options());
    im::copy(whole, a, im::casting::unsafe);
    EXPECT_EQ(im::to_vector(whole), (std::vector<std::int32_t>{0, 1, -2, 300, 65504}));
    const auto complex = im::zeros<std::complex<double>>({5}, kind, options());
    im::copy(complex, whole, im::casting::safe);
    EXPECT_EQ(im::to_vector(complex)[2], std::complex<double>(-2, 0));
    const auto refuses = [](auto&& call) {
      EXPECT_TRUE(throws(im::status::invalid_argument, {"float64", "int32"}, call));
    };
    refuses([&] { im::copy(whole, a); });
    refuses([&] { im::copy(whole, a, im::casting::no); });
    EXPECT_TRUE(
        throws(im::status::invalid_argument, [&] { im::copy(floats, a, im::casting::safe); }));
    EXPECT_EQ(im::to_vector(whole)[3], 300) << "nothing is half done";
  }
}

TEST_P(array_copies, broadcast_the_source) {
  const auto a = im::zeros<int>({3, 4}, im::kind::device, options());
  im::copy(a, im::to_array(std::vector{1, 2, 3, 4}, im::kind::device, options()));
  EXPECT_EQ(im::to_vector(a), (std::vector{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
  im::copy(a, im::to_array(std::vector{1, 2, 3}, {3, 1}, im::kind::device, options()));
  EXPECT_EQ(im::to_vector(a), (std::vector{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  const auto five = im::zeros<int>({5}, im::kind::device, options());
  EXPECT_TRUE(throws(im::status::invalid_argument, [&] { im::copy(a, five); }));
  // An array that maps several indices to one element cannot be a destination.
  const im::array<int, 1> same_one(five.buffer(), im::layout<1>{{4}, {0}, 0});
  EXPECT_TRUE(throws(im::status::invalid_argument, [&] { im::copy(same_one, same_one); }));
  EXPECT_TRUE(throws(im::status::invalid_argument, [&] { im::fill(same_one, 1); }));
  EXPECT_TRUE(throws(im::status::read_only,
                     [&] { im::fill(im::dyn_array(five).broadcast_to({2, 5}), 1); }));
}

TEST_P(array_copies, of_arrays_that_overlap) {
  for (const im::kind kind : kinds()) {
    const auto a = im::to_array(std::vector{0, 1, 2, 3, 4, 5, 6, 7}, kind, options());
    const auto low = a[im::slice(0, 7)], high = a[im::slice(1, 8)];
    EXPECT_TRUE(im::overlaps(low, high));
    EXPECT_FALSE(im::overlaps(a[im::slice(0, 8, 2)], a[im::slice(1, 8, 2)]));
    EXPECT_FALSE(im::overlaps(a[im::slice(0, 3)], a[im::slice(3, 8)]));
    im::copy(high, low);
    EXPECT_EQ(im::to_vector(a), (std::vector{0, 0, 1, 2, 3, 4, 5, 6}));
    im::copy(low, high);
    EXPECT_EQ(im::to_vector(a), (std::vector{0, 1, 2, 3, 4, 5, 6, 6}));
    im::copy(a, a[im::slice(std::nullopt, std::nullopt, -1)]);
    EXPECT_EQ(im::to_vector(a), (std::vector{6, 6, 5, 4, 3, 2, 1, 0}));
  }
}

TEST_P(array_copies, fill_their_argument) {
  for (const im::kind kind : kinds()) {
    const auto a = im::zeros<std::complex<float>>({4, 6}, kind, options());
    im::fill(a.view(im::slice(1, 3), im::slice(0, 6, 2)), {1, 2});
    im::fill_async(a.view(3), std::complex<float>(5), {.queue = queue_}).wait();
    const auto all = im::to_vector(a);
    for (std::size_t at = 0; at < all.size(); ++at) {
      const std::size_t row = at / 6, column = at % 6;
      const bool inside = (row == 1 || row == 2) && column % 2 == 0;
      EXPECT_EQ(all[at], row == 3 ? 5.0f : inside ? std::complex<float>(1, 2) : 0.0f) << at;
    }
    const auto any = im::empty(im::dtype::uint16, {10}, kind, options());
    im::fill(any, std::uint8_t{3});
    EXPECT_EQ(im::to_vector(any.as<std::uint16_t, 1>()), std::vector<std::uint16_t>(10, 3));
    EXPECT_TRUE(throws(im::status::invalid_argument, {"uint16"}, [&] { im::fill(any, 1.5); }));
    im::fill(any, 7.9, im::casting::unsafe);
    EXPECT_EQ(im::to_vector<std::uint16_t>(any), std::vector<std::uint16_t>(10, 7));
    im::fill(any, 65'535);
    EXPECT_EQ(im::to_vector<std::uint16_t>(any), std::vector<std::uint16_t>(10, 65'535));
    EXPECT_TRUE(throws(im::status::out_of_range, {"65536", "uint16", "65535"},
                       [&] { im::fill(any, 65'536); }));
    EXPECT_TRUE(throws(im::status::out_of_range, {"-1"}, [&] { (void)im::fill_async(any, -1); }));
  }
}

TEST_P(array_copies, wait_for_their_dependencies) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const im::queue other(device_);
  const auto a = im::zeros<int>({1000}, im::kind::device, options());
  const auto b = im::zeros<int>({1000}, im::kind::device, {.queue = other});
  const im::host_event gate;
  const im::event filled = im::fill_async(a, 4, {.queue = queue_, .after = gate});
  const im::event copied = im::copy_async(b, a, {.queue = other});
  EXPECT_FALSE(copied.done());
  gate.complete();
  copied.wait();
  EXPECT_TRUE(filled.done());
  EXPECT_EQ(im::to_vector(b), std::vector<int>(1000, 4));
}

TEST_P(array_copies, between_this_device_and_the_host) {
  const im::queue elsewhere(im::device("host"));
  {
    const auto here =
        im::to_array(std::vector{1.0f, 2.0f, 3.0f, 4.0f}, {2, 2}, im::kind::device, options());
    const auto there = im::zeros<float>({2, 2}, im::kind::device, {.queue = elsewhere});
    im::copy(there, here.transpose());
    EXPECT_EQ(im::to_vector(there), (std::vector{1.0f, 3.0f, 2.0f, 4.0f}));
    im::copy(here, there.view(im::every, im::slice(std::nullopt, std::nullopt, -1)));
    EXPECT_EQ(im::to_vector(here), (std::vector{3.0f, 1.0f, 4.0f, 2.0f}));
  }
  trim(elsewhere, im::kind::device);
}

TEST_P(array_copies, in_batches) {
  std::vector<float> data(2500);
  std::iota(data.begin(), data.end(), 0.0f);
  std::vector<float> back;
  std::size_t count = 0;
  for (const auto batch : im::batches(data, 1000)) {
    const auto there = im::to_array(batch, im::kind::device, options());
    const auto values = im::to_vector(there);
    back.insert(back.end(), values.begin(), values.end());
    ++count;
  }
  EXPECT_EQ(back, data);
  EXPECT_EQ(count, im::batches(data, 1000).size());
  const auto a = im::to_array(data, {250, 10}, im::kind::device, options());
  for (const im::dyn_array& rows : im::batches(im::dyn_array(a), 100)) {
    EXPECT_LE(rows.extent(0), 100);
    count += rows.size();
  }
  EXPECT_EQ(count, 2503u);
  float sum = 0;
  im::batches(a, 100, [&](const im::array<float, 2>& rows) {
    EXPECT_LE(rows.extent(0), 100);
    for (const float each : im::to_vector(rows)) sum += each;
  });
  EXPECT_EQ(sum, 2500.0f * 2499 / 2);
  EXPECT_TRUE(throws(im::status::invalid_argument, {"batch", "0 elements"},
                     [&] { (void)im::batches(data, 0); }));
  for (const auto none : im::batches(std::span<float>(), 3)) ADD_FAILURE() << none.size();
}

// `batches` accepts temporaries too, which live as long as the call.
TEST_P(array_copies, in_batches_that_memory_suffices_for) {
  const im::resource small = im::resource::limit(im::default_pool(im::kind::device, queue_), 1200);
  std::vector<std::size_t> sizes;
  im::batches(std::vector<float>(1000, 1), [&](std::span<const float> batch) {
    sizes.push_back(batch.size());
    (void)im::to_array(batch, im::kind::device, options(small));
  });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1000, 500, 250, 250, 250, 250}));
  sizes.clear();
  const auto needs_too_much = [&](const auto& batch) {
    sizes.push_back(batch.size());
    throw std::bad_alloc();
  };
  EXPECT_THROW(im::batches(std::vector<float>(5), 4, needs_too_much), std::bad_alloc);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 2, 1}));
}

}  // namespace
