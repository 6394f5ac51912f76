// SPDX-License-Identifier: Apache-2.0
// Copies of N-dimensional arrays against a reference model: any strides, between all kinds, in both
// directions, blocking and asynchronous.
#include "support/backends.hpp"
#include "support/bytes.hpp"

#include <numeric>
#include <optional>

namespace {

using namespace support;
using sizes = std::vector<std::size_t>;

struct nd_block {
  sizes shape, to, from;
  std::size_t item = 1;
};

std::size_t reach(const sizes& shape, const sizes& strides, std::size_t item) {
  std::size_t end = item;
  for (std::size_t i = 0; i < shape.size(); ++i) end += (shape[i] - 1) * strides[i];
  return end;
}

// The dimensions nest in any order, with gaps between their elements.
sizes random_strides(std::mt19937_64& random, const sizes& shape, std::size_t item) {
  sizes order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  sizes strides(shape.size());
  std::size_t inside = item;
  for (const std::size_t i : order) {
    strides[i] = inside + random() % 3 % 2 * (random() % 20);
    inside = strides[i] * shape[i];
  }
  return strides;
}

nd_block random_block(std::mt19937_64& random, std::size_t rank, std::size_t longest) {
  nd_block made;
  for (std::size_t i = 0; i < rank; ++i) made.shape.push_back(1 + random() % longest);
  made.item = std::size_t{1} << random() % 5;
  made.to = random_strides(random, made.shape, made.item);
  made.from = random_strides(random, made.shape, made.item);
  return made;
}

bytes modelled(bytes into, const bytes& from, const nd_block& what) {
  sizes at(what.shape.size());
  for (;;) {
    std::size_t to = 0, start = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      to += at[i] * what.to[i];
      start += at[i] * what.from[i];
    }
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), what.item,
                into.begin() + static_cast<std::ptrdiff_t>(to));
    std::size_t i = at.size();
    while (i != 0 && ++at[i - 1] == what.shape[i - 1]) at[--i] = 0;
    if (i == 0) return into;
  }
}

class nd : public on_backend {
 protected:
  using place = std::optional<im::kind>;  // without a value: plain memory

  void check(place to, place from, const nd_block& what, bool blocking) const {
    const bytes old = noise(reach(what.shape, what.to, what.item) + 9, 1);
    const bytes data = noise(reach(what.shape, what.from, what.item) + 5, 2);
    bytes memory = old;
    im::buffer into, out_of;
    if (to) write(into = make(old.size(), *to), old);
    if (from) write(out_of = make(data.size(), *from), data);
    const auto target = to ? im::destination(into) : im::destination(std::span(memory));
    const auto start = from ? im::source(out_of) : im::source(std::span(data));
    if (blocking) {
      im::copy_nd({target, std::span(what.to)}, {start, std::span(what.from)},
                  std::span(what.shape), what.item, {.queue = queue_});
    } else {
      im::copy_nd_async({target, std::span(what.to)}, {start, std::span(what.from)},
                        std::span(what.shape), what.item, {.queue = queue_})
          .wait();
    }
    EXPECT_TRUE(same(to ? read(into) : memory, modelled(old, data, what)))
        << (from ? name(*from) : "plain") << " to " << (to ? name(*to) : "plain") << ", rank "
        << what.shape.size() << ", items of " << what.item << (blocking ? "" : ", not blocking");
  }
  void check_everywhere(const nd_block& what) const {
    std::vector<place> places{std::nullopt};
    for (const im::kind kind : kinds()) places.emplace_back(kind);
    for (const place to : places) {
      for (const place from : places) {
        check(to, from, what, true);
        check(to, from, what, false);
      }
    }
  }
};
INSTANTIATE_ON_BACKENDS(nd);

TEST_P(nd, move_every_element_and_no_other_byte) {
  std::mt19937_64 random(5);
  for (const std::size_t rank : {0u, 1u, 2u, 3u, 4u, 5u, 8u}) {
    for (int turn = 0; turn < 4; ++turn) {
      check_everywhere(random_block(random, rank, rank < 4 ? 12 : 3));
    }
  }
}

// Large enough for several chunks: packed on one side, on neither, and in different orders.
TEST_P(nd, large_ones) {
  const std::size_t a = 90 / support::k_slower, b = 110, c = 130;
  const nd_block dense{{a, b, c}, {b * c * 4, c * 4, 4}, {b * c * 4, c * 4, 4}, 4};
  nd_block cut = dense, turned = dense, odd = dense, around = dense;
  cut.from = {b * c * 16, c * 16, 8};
  turned.from = {4, a * 4, a * b * 4};
  odd.from = {b * c * 12, c * 8 + 20, 4};
  odd.to = {b * c * 16, c * 8 + 12, 8};
  around.from = {0, 0, 4};
  for (const auto& what : {dense, cut, turned, odd, around}) {
    check(im::kind::device, std::nullopt, what, true);
    check(im::kind::device, std::nullopt, what, false);
    check(im::kind::device, im::kind::device, what, true);
    nd_block back = what;
    if (what.from[1] == 0) continue;
    std::swap(back.to, back.from);
    check(std::nullopt, im::kind::device, back, true);
    check(std::nullopt, im::kind::device, back, false);
  }
}

// So many elements that it is cheaper to reorder them on the host than to have the device write
// them one by one.
TEST_P(nd, elements_that_lie_apart_in_host_memory) {
  const std::size_t count = 600 / support::k_slower;
  const nd_block column{{count * 1000}, {8}, {4}, 4};
  const nd_block turned{{count, 1000}, {8, count * 8}, {4000, 4}, 4};
  for (const im::kind kind : kinds()) {
    check(kind, im::kind::device, column, true);
    check(kind, im::kind::device, turned, false);
  }
}

TEST_P(nd, long_runs) {
  const nd_block what{{2, 3}, {15u << 20, 5u << 20}, {16u << 20, (5u << 20) + 64}, 3u << 20};
  check(im::kind::device, std::nullopt, what, true);
  check(std::nullopt, im::kind::device, what, true);
}

TEST_P(nd, windows_that_share_elements) {
  const nd_block windows{{50, 8}, {64, 8}, {8, 8}, 8};
  check_everywhere(windows);
  const nd_block repeated{{20, 6}, {48, 8}, {0, 8}, 8};
  check_everywhere(repeated);
}

TEST_P(nd, empty_ones) {
  const im::buffer there = make(100, im::kind::device);
  const bytes old = noise(100);
  write(there, old);
  bytes here(10);
  im::copy_nd({there, {50, 1}}, {std::span(here), {50, 1}}, {0, 100}, 1);
  im::copy_nd_async({there, {50, 1}}, {std::span(here), {50, 1}}, {100, 0}, 1).wait();
  im::copy_nd({there, {1}}, {std::span(here), {1}}, {1000}, 0);
  EXPECT_TRUE(same(read(there), old));
}

TEST_P(nd, columns_of_one_matrix) {
  const bytes old = noise(64 * 50);
  const im::buffer one = make(old.size(), im::kind::device);
  write(one, old);
  im::copy_nd({im::at(one, 32), {64, 4}}, {one, {64, 4}}, {50, 8}, 4);
  bytes want = old;
  for (std::size_t row = 0; row < 50; ++row) {
    std::copy_n(old.data() + row * 64, 32, want.data() + row * 64 + 32);
  }
  EXPECT_TRUE(same(read(one), want));
}

TEST_P(nd, wait_for_their_dependencies) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const nd_block what{{30, 20, 10}, {800, 40, 4}, {4, 160, 3200}, 4};
  bytes data = noise(40'000, 1);
  const bytes later = noise(40'000, 2);
  const im::buffer there = make(24'000, im::kind::device);
  im::fill(there, std::byte{0});
  const im::host_event gate;
  const im::event sent =
      im::copy_nd_async({there, std::span(what.to)}, {std::span(data), std::span(what.from)},
                        std::span(what.shape), 4, {.queue = queue_, .after = gate});
  EXPECT_FALSE(sent.done());
  data = later;
  gate.complete();
  sent.wait();
  EXPECT_TRUE(same(read(there), modelled(bytes(24'000), later, what)));
}

TEST_P(nd, bad_input) {
  const im::buffer there = make(1000, im::kind::device);
  const bytes old = noise(1000);
  write(there, old);
  bytes here(500);
  const auto refuses = [&](im::status why, const std::vector<std::string>& parts,
                           const nd_block& what) {
    const auto call = [&] {
      im::copy_nd({there, std::span(what.to)}, {std::span(here), std::span(what.from)},
                  std::span(what.shape), what.item);
    };
    EXPECT_TRUE(throws(why, parts, call));
  };
  constexpr auto k_most = std::numeric_limits<std::size_t>::max();
  refuses(im::status::out_of_range, {"source", "500"}, {{10, 5}, {100, 4}, {60, 4}, 4});
  refuses(im::status::out_of_range, {"destination", "1000"}, {{10, 5}, {110, 4}, {40, 4}, 4});
  refuses(im::status::out_of_range, {"destination"}, {{3, 1}, {k_most / 2, 4}, {4, 4}, 4});
  refuses(im::status::out_of_range, {"source"}, {{k_most}, {1}, {1}, 2});
  refuses(im::status::invalid_argument, {"overlap", "0 bytes"}, {{5, 4}, {0, 4}, {16, 4}, 4});
  refuses(im::status::invalid_argument, {"overlap", "12 bytes"}, {{5, 4}, {12, 4}, {16, 4}, 4});
  refuses(im::status::invalid_argument, {"1 strides", "2 dimensions"}, {{5, 4}, {16, 4}, {16}, 4});
  refuses(im::status::invalid_argument, {"9 dimensions", "8"},
          {sizes(9, 1), sizes(9, 1), sizes(9, 1), 1});
  EXPECT_TRUE(throws(im::status::invalid_argument, {"overlap"}, [&] {
    im::copy_nd({there, {100, 10, 1}}, {im::at(there, 3), {1, 10, 100}}, {3, 4, 5}, 1);
  }));
  const isthmus_endpoint_t device{there.get(), nullptr, 0};
  const sizes many(9, 1);
  EXPECT_TRUE(refused(isthmus_copy_nd(nullptr, &device, many.data(), &device, many.data(),
                                      many.data(), 9, 1, nullptr, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"9 dimensions", "8"}));
  const std::size_t far = k_most / 2, three = 3;
  EXPECT_TRUE(refused(
      isthmus_copy_nd(nullptr, &device, &far, &device, &far, &three, 1, 1, nullptr, nullptr),
      ISTHMUS_ERROR_OUT_OF_RANGE));
  EXPECT_TRUE(same(read(there), old));
}

}  // namespace
