// SPDX-License-Identifier: Apache-2.0
// Views of arrays against a reference model, in memory of every kind.
#include "support/array_model.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class array_views : public on_arrays {
 protected:
  // An array and its model. Each random step changes both.
  struct both {
    im::dyn_array array;
    model known;
  };
  std::mt19937_64 random_{11};

  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most + 1));
  }
  std::optional<std::int64_t> an_end(std::int64_t extent) {
    if (up_to(3) == 0) return std::nullopt;
    return up_to(2 * extent + 4) - extent - 2;
  }
  void slice_it(both& it) {
    const auto axis =
        static_cast<std::size_t>(up_to(static_cast<std::int64_t>(it.known.shape.size()) - 1));
    const std::int64_t extent = it.known.shape[axis];
    const auto first = an_end(extent), last = an_end(extent);
    const std::int64_t steps[] = {1, 1, 2, 3, -1, -2, 100, -100};
    const std::int64_t step = steps[up_to(7)];
    it.known = it.known.sliced(axis, chosen(extent, first, last, step));
    // The axis is moved to the front, sliced and moved back.
    std::vector<std::int64_t> there(it.known.shape.size());
    std::iota(there.begin(), there.end(), 0);
    std::swap(there.front(), there[axis]);
    it.array =
        it.array.permute(axes_of(there)).view(im::slice(first, last, step)).permute(axes_of(there));
  }
  void permute_it(both& it) {
    std::vector<std::size_t> order(it.known.shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    it.known = it.known.permuted(order);
    it.array = it.array.permute(axes_of(numbers(order.begin(), order.end())));
  }
  void take_one(both& it) {
    const std::int64_t extent = it.known.shape.front();
    if (extent == 0 || it.known.shape.size() < 2) return;
    const std::int64_t at = up_to(extent - 1);
    it.known = it.known.sliced(0, {at});
    it.known = it.known.reshaped({it.known.shape.begin() + 1, it.known.shape.end()});
    it.array = it.array[up_to(1) == 0 ? at : at - extent];
  }
  void add_axis(both& it) {
    if (it.known.shape.size() > 5) return;
    numbers wanted = it.known.shape;
    wanted.push_back(1);
    it.known = it.known.reshaped(wanted);
    it.array = it.array.view(im::ellipsis, im::newaxis);
  }
  void broadcast_it(both& it) {
    if (it.known.shape.size() > 5) return;
    numbers wanted = it.known.shape;
    for (auto& each : wanted) each = each == 1 ? 1 + up_to(2) : each;
    wanted.insert(wanted.begin(), 1 + up_to(1));
    it.known = it.known.broadcast(wanted);
    it.array = it.array.broadcast_to(axes_of(wanted));
  }
  // If no view of that shape is possible, the error must say that it takes a copy.
  void reshape_it(both& it) {
    const numbers flat{product(it.known.shape)};
    numbers wanted = it.known.shape;
    if (up_to(1) == 0 && wanted.size() > 1) {
      wanted[1] *= wanted[0];
      wanted.erase(wanted.begin());
    } else {
      wanted.insert(wanted.begin(), 1);
    }
    try {
      it.array = it.array.reshape(axes_of(wanted));
      it.known = it.known.reshaped(wanted);
    } catch (const im::invalid_argument& problem) {
      EXPECT_TRUE(mentions(problem.what(), {"copy"}));
      EXPECT_FALSE(it.array.is_contiguous());
    }
  }
  void step(both& it) {
    switch (up_to(7)) {
      case 0:
      case 1:
      case 2: return slice_it(it);
      case 3: return permute_it(it);
      case 4: return take_one(it);
      case 5: return add_axis(it);
      case 6: return broadcast_it(it);
      default: return reshape_it(it);
    }
  }
};
INSTANTIATE_ON_BACKENDS(array_views);

TEST_P(array_views, show_what_the_model_has) {
  for (const im::kind kind : kinds()) {
    for (int turn = 0; turn < 40; ++turn) {
      numbers shape;
      for (std::int64_t axis = up_to(3); axis >= 0; --axis) shape.push_back(up_to(6));
      const model whole = model::counting(shape);
      both it{make_array(whole, kind), whole};
      for (int steps = 0; steps < 5 && it.known.values.size() < 5000; ++steps) {
        step(it);
        ASSERT_TRUE(same(it.array, it.known)) << name(kind) << ", turn " << turn;
      }
    }
  }
}

TEST_P(array_views, of_known_rank) {
  const model whole = model::counting({4, 6, 5});
  const auto a = make_array(whole, im::kind::device).as<std::int32_t, 3>();
  const im::array<std::int32_t, 2> one = a.view(1);
  EXPECT_TRUE(same(one, whole.sliced(0, {1}).reshaped({6, 5})));
  EXPECT_TRUE(same(a.view(im::ellipsis, -1), whole.sliced(2, {4}).reshaped({4, 6})));
  EXPECT_TRUE(same(a.view(im::every, im::slice(1, 6, 2)), whole.sliced(1, {1, 3, 5})));
  EXPECT_TRUE(same(a.view(im::newaxis, 3, im::ellipsis, im::newaxis, 2),
                   whole.sliced(0, {3}).sliced(2, {2}).reshaped({1, 6, 1})));
  EXPECT_TRUE(same(a.transpose(), whole.permuted({2, 1, 0})));
  EXPECT_TRUE(same(a.permute({1, -1, 0}), whole.permuted({1, 2, 0})));
  EXPECT_TRUE(same(a.reshape({-1, 10}), whole.reshaped({12, 10})));
  EXPECT_TRUE(same(a.reshape({2, 2, 30}).view(1, 1), whole.sliced(0, {3}).reshaped({30})));
  EXPECT_TRUE(same(a[im::slice(1, 3)], whole.sliced(0, {1, 2})));
  EXPECT_TRUE(a[im::slice(1, 3)].is_contiguous());
  EXPECT_FALSE(a[im::slice(std::nullopt, std::nullopt, 2)].is_contiguous());
  EXPECT_EQ(a.view(im::every, 2).byte_offset(), 2u * 5 * 4);
  EXPECT_EQ(a.pointer(), a.view(0, 0).pointer());
  EXPECT_EQ(a.view(), a);
  const auto single = a.view(1, 2, 3);
  static_assert(single.rank() == 0);
  EXPECT_EQ(im::to_vector(single),
            std::vector<std::int32_t>{whole.values[whole.offset_of({1, 2, 3})]});
}

TEST_P(array_views, as_elements_of_another_type) {
  const auto a = im::to_array(std::vector<std::uint32_t>{0x3f800000, 0x40000000, 1, 2}, {2, 2},
                              im::kind::device, options());
  EXPECT_EQ(im::to_vector(a.reinterpret<float>().view(0)), (std::vector{1.0f, 2.0f}));
  const auto halves = a.view(1).reinterpret<std::uint16_t>();
  EXPECT_EQ(halves.shape(), (im::axes<1>{4}));
  EXPECT_EQ(im::to_vector(halves), (std::vector<std::uint16_t>{1, 0, 2, 0}));
  EXPECT_EQ(a.reinterpret<double>().shape(), (im::axes<2>{2, 1}));
  EXPECT_EQ(im::dyn_array(a).reinterpret(im::dtype::complex64).type(), im::dtype::complex64);
  const auto fails = [](const std::vector<std::string>& parts, auto&& call) {
    EXPECT_TRUE(throws(im::status::invalid_argument, parts, call));
  };
  fails({"whole number"}, [&] { (void)a.view(im::every, im::slice(0, 1)).reinterpret<double>(); });
  fails({"gaps"}, [&] { (void)a.transpose().reinterpret<std::uint16_t>(); });
  fails({"aligned", "8"}, [&] {
    (void)im::empty<float>({5}, im::kind::device, options())
        .view(im::slice(1, 5))
        .reinterpret<double>();
  });
  EXPECT_TRUE(same(im::dyn_array(a.transpose().reinterpret<std::int32_t>()),
                   model{{2, 2}, {0x3f800000, 1, 0x40000000, 2}}));
}

TEST_P(array_views, on_existing_buffers) {
  const im::buffer memory = make(400, im::kind::device);
  const im::array<float, 2> a(memory, {5, 4}, 16);
  EXPECT_EQ(a.buffer(), memory);
  EXPECT_EQ(a.byte_offset(), 16u);
  EXPECT_EQ(static_cast<void*>(a.pointer()), static_cast<std::byte*>(memory.pointer()) + 16);
  const im::array<float, 1> backwards(memory, im::layout<1>{{100}, {-4}, 396});
  im::fill(a, 1.0f);
  im::fill(backwards.view(im::slice(0, 3)), 2.0f);
  std::vector<float> all(100);
  im::copy(std::span(all), memory);
  EXPECT_EQ(all[4], 1.0f);
  EXPECT_EQ(all[97], 2.0f);
  const auto refuses = [](im::status why, const std::vector<std::string>& parts, auto&& call) {
    EXPECT_TRUE(throws(why, parts, call));
  };
  using floats = im::array<float, 1>;
  refuses(im::status::out_of_range, {"(101,)", "400"}, [&] { floats(memory, {101}); });
  refuses(im::status::out_of_range, {"400"}, [&] { floats(memory, {100}, 4); });
  refuses(im::status::out_of_range, {"-4"}, [&] { floats(memory, im::layout<1>{{2}, {-4}, 0}); });
  refuses(im::status::invalid_argument, {"aligned"}, [&] { floats(memory, {1}, 2); });
  refuses(im::status::invalid_argument, {"-1"}, [&] { floats(memory, {-1}); });
  const im::layout<1> far{{5}, {1LL << 62}, 0}, less{{-3}, {-4}, 0}, less_on{{-3}, {4}, 32};
  const im::layout<2> many{{1LL << 32, 1LL << 32}, {1LL << 40, 1LL << 40}, 0};
  const auto refuses_both = [&]<std::size_t N>(im::status why, const im::layout<N>& where) {
    refuses(why, {im::to_string(where.shape)}, [&] { (im::array<float, N>(memory, where)); });
    refuses(why, {im::to_string(where.shape)}, [&] {
      im::dyn_array(memory, im::dtype::float32,
                    im::layout<im::dynamic_rank>{where.shape, where.strides, where.offset});
    });
  };
  refuses_both(im::status::out_of_range, far);
  refuses_both(im::status::invalid_argument, less);
  refuses_both(im::status::invalid_argument, less_on);
  refuses_both(im::status::invalid_argument, many);
  refuses(im::status::invalid_argument, {"address space"},
          [&] { (void)im::empty<float>({1LL << 40, 1LL << 40}, im::kind::device, options()); });
  refuses(im::status::invalid_argument, {"-3"},
          [&] { (void)im::empty<float>({2, -3}, im::kind::device, options()); });
}

TEST_P(array_views, bad_input) {
  const auto a = im::zeros<float>({3, 4}, im::kind::device, options());
  const im::dyn_array any(a);
  const auto refuses = [](im::status why, const std::vector<std::string>& parts, auto&& call) {
    EXPECT_TRUE(throws(why, parts, call));
  };
  refuses(im::status::out_of_range, {"index 3", "axis 0", "3 elements"}, [&] { (void)a.view(3); });
  refuses(im::status::out_of_range, {"index -5", "axis 1"}, [&] { (void)a.view(0, -5); });
  refuses(im::status::invalid_argument, {"step", "0"}, [&] { (void)a.view(im::slice(0, 3, 0)); });
  refuses(im::status::invalid_argument, {"12", "(5, -1)"}, [&] { (void)a.reshape({5, -1}); });
  refuses(im::status::invalid_argument, {"(-1, -1)"}, [&] { (void)a.reshape({-1, -1}); });
  refuses(im::status::invalid_argument, {"(13,)"}, [&] { (void)a.reshape({13}); });
  refuses(im::status::invalid_argument, {"copy"}, [&] { (void)a.transpose().reshape({12}); });
  refuses(im::status::invalid_argument, {"(1, 1)"}, [&] { (void)a.permute({1, 1}); });
  refuses(im::status::invalid_argument, {"(0, 2)"}, [&] { (void)a.permute({0, 2}); });
  refuses(im::status::invalid_argument, {"(3, 4)", "(3, 5)"},
          [&] { (void)a.broadcast_to({3, 5}); });
  refuses(im::status::invalid_argument, {"(4,)"}, [&] { (void)a.broadcast_to({4}); });
  refuses(im::status::invalid_argument, {"3 indices"}, [&] { (void)any.view(0, 0, 0); });
  refuses(im::status::invalid_argument, {"2 axes", "float32", "3 axes"},
          [&] { (void)any.as<float, 3>(); });
  refuses(im::status::invalid_argument, {"float64"}, [&] { (void)any.as<double, 2>(); });
  refuses(im::status::invalid_argument, {"65", "64"}, [&] { (void)axes_of(numbers(65, 1)); });
  refuses(im::status::invalid_argument, {"buffer", "gaps"}, [&] { (void)a.transpose().bytes(); });
  refuses(im::status::out_of_range, {"axis 2", "2 axes"}, [&] { (void)any.extent(2); });
  const auto no_shape = [&](auto&& call) {
    refuses(im::status::invalid_argument, {"address space"}, call);
  };
  const auto none = im::empty<float>({0}, im::kind::device, options());
  no_shape([&] { (void)none.reshape({0, 1LL << 40, 1LL << 40}); });
  no_shape([&] { (void)a.view(0, im::slice(0, 1)).broadcast_to({1LL << 62}); });
  no_shape([&] { (void)any.view(0, im::slice(0, 1)).broadcast_to({1LL << 62}); });
}

// An unsigned index that was decremented below 0 is out of range. It does not count from the end.
TEST_P(array_views, unsigned_indices_that_wrapped_around) {
  const auto a = im::zeros<float>({3, 4}, im::kind::device, options());
  const std::size_t wrapped = std::size_t{0} - 1;
  const auto refuses = [](auto&& call) { EXPECT_TRUE(throws(im::status::out_of_range, call)); };
  refuses([&] { (void)a(wrapped, 0); });
  refuses([&] { (void)a.view(wrapped); });
  refuses([&] { (void)a.view(im::every, wrapped); });
  refuses([&] { (void)im::dyn_array(a).view(wrapped); });
  EXPECT_EQ(a[im::slice(1, wrapped)].extent(0), 2);
  EXPECT_EQ(a[im::slice(-1, std::nullopt)].extent(0), 1);
  if (!device_.offers(im::kind::host)) return;
  refuses([&] { (void)im::zeros<int>(3, im::kind::host, options()).host().at(wrapped); });
}

TEST_P(array_views, of_nothing_and_of_one) {
  for (const im::kind kind : kinds()) {
    const auto none = im::zeros<float>({3, 0, 2}, kind, options());
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.nbytes(), 0u);
    EXPECT_EQ(none.pointer(), nullptr);
    EXPECT_TRUE(none.is_contiguous());
    EXPECT_EQ(none.reshape({0, 7}).shape(), (im::axes<2>{0, 7}));
    EXPECT_TRUE(im::to_vector(none.transpose()).empty());
    const auto one = im::full<double>(im::axes<0>{}, 2.5, kind, options());
    EXPECT_EQ(one.size(), 1u);
    EXPECT_EQ(im::to_vector(one), std::vector{2.5});
    EXPECT_EQ(one.reshape({1, 1}).shape(), (im::axes<2>{1, 1}));
    EXPECT_EQ(im::to_vector(one.broadcast_to({3})), (std::vector{2.5, 2.5, 2.5}));
  }
}

}  // namespace
