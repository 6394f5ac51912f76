// SPDX-License-Identifier: Apache-2.0
// Access to single elements and host views of arrays waits for pending work on their bytes, and for
// nothing else.
#include <atomic>
#include <thread>

#include "support/array_model.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class array_elements : public on_arrays {
 protected:
  std::vector<im::kind> host_kinds() const {
    auto found = kinds();
    std::erase(found, im::kind::device);
    return found;
  }
};
INSTANTIATE_ON_BACKENDS(array_elements);

TEST_P(array_elements, are_read_and_written_in_place) {
  for (const im::kind kind : host_kinds()) {
    const auto a = im::zeros<float>({3, 4}, kind, options());
    for (int i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 4; ++j)
        a(i, j) = static_cast<float>(i * 10) + static_cast<float>(j);
    }
    EXPECT_EQ(a(1, 2), 12.0f);
    EXPECT_EQ(a(-1, -1), 23.0f);
    EXPECT_EQ(a.transpose()(3, 1), 13.0f);
    EXPECT_EQ(a.view(2, im::slice(std::nullopt, std::nullopt, -1))(0), 23.0f);
    EXPECT_EQ(a[1][3], 13.0f);
    a(0, 0) += 5;
    a(0, 1) *= 3;
    a(0, 2) = a(0, 0);
    EXPECT_EQ(im::to_vector(a[0]), (std::vector{5.0f, 3.0f, 5.0f, 3.0f}));
    const im::array<const float, 2> read = a;
    EXPECT_EQ(read(0, 0), 5.0f);
    const auto none = im::full<float>(im::axes<0>{}, 4, kind, options());
    EXPECT_EQ(none(), 4.0f);
    const im::dyn_array any(a);
    EXPECT_EQ(any.get<float>({1, -1}), 13.0f);
    any.set<float>({1, -1}, 99);
    EXPECT_EQ(a(1, 3), 99.0f);
  }
}

TEST_P(array_elements, of_every_type) {
  const auto holds = [&]<class T>(T value) {
    for (const im::kind kind : host_kinds()) {
      const auto a = im::full<T>({2}, value, kind, options());
      EXPECT_EQ(a(1).get(), value);
      EXPECT_EQ(a.type(), im::dtype_of<T>);
      EXPECT_EQ(a.nbytes(), 2 * im::nbytes(im::dtype_of<T>));
    }
  };
  holds(true);
  holds(std::int8_t{-3});
  holds(std::int16_t{-3000});
  holds(-3'000'000);
  holds(-3'000'000'000'000);
  holds(std::uint8_t{200});
  holds(std::uint16_t{60'000});
  holds(4'000'000'000u);
  holds(std::uint64_t{1} << 63);
  holds(im::float16(0.5f));
  holds(im::bfloat16(1.5f));
  holds(0.1f);
  holds(0.1);
  holds(0.1L);
  holds(std::complex<float>(1, 2));
  holds(std::complex<double>(1, 2));
  holds(std::complex<long double>(1, 2));
}

TEST_P(array_elements, of_16_bits_and_of_two_parts_are_values_too) {
  for (const im::kind kind : host_kinds()) {
    const auto halves = im::full<im::float16>({2}, 0.5f, kind, options());
    const float one = halves(0);
    EXPECT_EQ(one + halves(1), 1.0f);
    EXPECT_TRUE(halves(0) == halves(1) && 0.5 == halves(0));
    const auto pairs = im::full<std::complex<float>>({2}, {1, 2}, kind, options());
    EXPECT_TRUE(pairs(0) == pairs(1) && pairs(0) != 1.0f);
    halves(0) = halves(1) = 3;
    EXPECT_EQ(halves(0), 3.0f);
  }
}

// Accesses through two types to the same bytes, which a compiler may assume not to alias.
TEST_P(array_elements, of_the_same_bytes_as_two_types) {
  for (const im::kind kind : host_kinds()) {
    const auto a = im::zeros<float>({4}, kind, options());
    const auto bits = a.reinterpret<std::uint32_t>();
    bits(1) = 5;
    a(1) = 1.0f;
    EXPECT_EQ(bits(1), 0x3f800000u);
    const auto bytes = im::full<std::uint8_t>({2}, 2, kind, options());
    const auto truths = bytes.reinterpret<bool>();
    EXPECT_TRUE(truths(0) == true);
    EXPECT_EQ(im::to_vector(truths), std::vector<bool>(2, true));
    bytes(1) = 0;
    EXPECT_FALSE(truths(1));
  }
}

TEST_P(array_elements, know_their_bounds) {
  for (const im::kind kind : host_kinds()) {
    const auto a = im::zeros<float>({3, 4}, kind, options());
    EXPECT_TRUE(
        throws(im::status::out_of_range, {"index 3", "axis 0", "3"}, [&] { (void)a(3, 0).get(); }));
    EXPECT_TRUE(throws(im::status::out_of_range, {"index -5", "axis 1"}, [&] { a(0, -5) = 1; }));
    EXPECT_TRUE(throws(im::status::out_of_range, {"index 4"}, [&] { (void)a.host().at(0, 4); }));
    EXPECT_TRUE(
        throws(im::status::out_of_range, [&] { (void)im::dyn_array(a).get<float>({0, 4}); }));
    EXPECT_TRUE(throws(im::status::invalid_argument, {"1 indices", "2 axes"},
                       [&] { (void)im::dyn_array(a).get<float>({0}); }));
    EXPECT_EQ(a.host().at(-1, -4), 0.0f);
  }
}

TEST_P(array_elements, wait_for_the_last_writer) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  for (const im::kind kind : host_kinds()) {
    const auto a = im::zeros<std::int32_t>({1000}, kind, options());
    const im::host_event gate;
    const im::event filled = im::fill_async(a, 7, {.queue = queue_, .after = gate});
    std::atomic<int> seen{0};
    std::thread reader([&] { seen = a(999); });
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(seen, 0) << "the element was read before its writer had ended";
    gate.complete();
    reader.join();
    EXPECT_EQ(seen, 7);
    EXPECT_TRUE(filled.done());
    a(0) = 8;
    EXPECT_EQ(a.host()(0), 8);
  }
}

// Work pending on one half of an array does not delay access to the other half.
TEST_P(array_elements, wait_for_their_own_bytes_alone) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  for (const im::kind kind : host_kinds()) {
    const auto a = im::zeros<std::int32_t>({2, 1000}, kind, options());
    const im::host_event gate;
    const im::event filled = im::fill_async(a[1], 7, {.queue = queue_, .after = gate});
    EXPECT_EQ(a(0, 5), 0);
    EXPECT_EQ(a[0].host()(5), 0);
    a[0].wait();
    gate.complete();
    filled.wait();
    EXPECT_EQ(a(1, 0), 7);
  }
}

TEST_P(array_elements, of_device_memory_are_copies_that_must_be_allowed) {
  const auto a = im::full<float>({3, 4}, 2, im::kind::device, options());
  EXPECT_TRUE(
      throws(im::status::unsupported, {"allow_scalar", "copy"}, [&] { (void)a(0, 0).get(); }));
  EXPECT_TRUE(throws(im::status::unsupported, {"allow_scalar"}, [&] { a(0, 0) = 1; }));
  EXPECT_TRUE(throws(im::status::unsupported, {"device memory"}, [&] { (void)a.host(); }));
  {
    const im::allow_scalar scope;
    EXPECT_EQ(a(1, 1), 2.0f);
    a(1, 1) += 3;
    EXPECT_EQ(a(1, 1), 5.0f);
    const im::array<const float, 2> read = a;
    EXPECT_EQ(read(1, 1), 5.0f);
    EXPECT_EQ(im::dyn_array(a).get<float>({1, 1}), 5.0f);
    { const im::allow_scalar nested; }
    EXPECT_EQ(a(0, 0), 2.0f);
    std::thread other([&] { EXPECT_THROW((void)a(0, 0).get(), im::unsupported); });
    other.join();
  }
  EXPECT_THROW((void)a(1, 1).get(), im::unsupported);
}

TEST_P(array_elements, by_a_host_view) {
  for (const im::kind kind : host_kinds()) {
    const model whole = model::counting({4, 5, 6});
    const auto a = make_array(whole, kind).as<std::int32_t, 3>();
    const auto odd = a.view(im::slice(3, std::nullopt, -2), im::every, 1).transpose();
    const model known = whole.sliced(0, {3, 1}).sliced(2, {1}).reshaped({2, 5}).permuted({1, 0});
    {
      const auto view = odd.host();
      EXPECT_EQ(view.extent(0), 5);
      EXPECT_EQ(view.size(), 10u);
      for_each_index(known.shape, [&](const numbers& at) {
        EXPECT_EQ(view(at[0], at[1]), known.values[known.offset_of(at)]);
      });
      EXPECT_TRUE(throws(im::status::invalid_argument, {"gaps"}, [&] { (void)view.span(); }));
      view(2, 1) = -7;
    }
    EXPECT_EQ(a(1, 2, 1), -7);
    auto all = a[2].host();
    EXPECT_EQ(all.span().size(), 30u);
    std::fill(all.span().begin(), all.span().end(), 9);
    auto moved = std::move(all);
    EXPECT_EQ(moved(3, 3), 9);
    EXPECT_EQ(im::to_vector(a[2]), std::vector<std::int32_t>(30, 9));
  }
}

TEST_P(array_elements, of_memory_that_is_only_read) {
  if (!device_.offers(im::kind::shared)) GTEST_SKIP() << "no shared memory";
  const im::buffer memory = make(64, im::kind::shared);
  const auto start = static_cast<const float*>(memory.pointer());
  const auto adopted =
      im::buffer::adopt(std::span<const float>(start, 16), memory, {.queue = queue_});
  using floats = im::array<float, 1>;
  using constants = im::array<const float, 1>;
  EXPECT_TRUE(throws(im::status::read_only, {"const"}, [&] { floats(adopted, {16}); }));
  im::fill(im::array<float, 1>(memory, {16}), 3);
  const constants read(adopted, {16});
  EXPECT_EQ(read(15), 3.0f);
  EXPECT_EQ(read.host()(1), 3.0f);
  const im::dyn_array any(adopted, im::dtype::float32, {16});
  EXPECT_TRUE(any.read_only());
  EXPECT_TRUE(throws(im::status::read_only, [&] { im::fill(any, 1); }));
  EXPECT_TRUE(throws(im::status::read_only, [&] { (void)any.as<float, 1>(); }));
  EXPECT_EQ((any.as<const float, 1>()(2)), 3.0f);
}

}  // namespace
