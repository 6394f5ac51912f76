// SPDX-License-Identifier: Apache-2.0
// Moves of blocks of elements: at once, by several threads, through packed memory and in chunks.
// The results are compared with moving one element at a time.
#include "array/element_move.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "array/conversion.hpp"
#include "array/elements.hpp"

namespace {

using namespace isthmus;
using bytes = std::vector<std::byte>;
using numbers = std::vector<std::int64_t>;

struct side_of {
  ArrayLayout layout;
  bytes memory;
};

ArrayLayout layout(Dtype of, const numbers& shape, const numbers& strides) {
  isthmus_array_t given{};
  given.dtype = of;
  given.dimensions = shape.size();
  given.shape = shape.data();
  given.strides = strides.data();
  return *layout_of(given, "array");
}

// Dimensions nest in random order, with gaps and negative strides, and with strides of 0 if
// `may_repeat`.
numbers random_strides(std::mt19937_64& random, const numbers& shape, std::size_t item,
                       bool may_repeat) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  numbers strides(shape.size());
  auto inside = static_cast<std::int64_t>(item);
  for (const auto i : order) {
    strides[i] = inside + static_cast<std::int64_t>(random() % 3 % 2 * (random() % 9));
    inside = strides[i] * shape[i];
    if (random() % 3 == 0) strides[i] = -strides[i];
    if (may_repeat && random() % 6 == 0) strides[i] = 0;
  }
  return strides;
}

bytes noise(std::mt19937_64& random, std::size_t nbytes) {
  bytes made(nbytes);
  for (auto& each : made) each = static_cast<std::byte>(random());
  return made;
}

struct block {
  ArrayLayout to;
  ArrayLayout from;
  bytes source;
  bytes old;

  [[nodiscard]] ElementMove move(bytes& into) const {
    return move_between(to, into.data() + to.first_offset, from, source.data() + from.first_offset);
  }
  [[nodiscard]] bytes modelled() const {
    bytes made = old;
    const auto rank = to.dimensions.size();
    std::vector<std::int64_t> at(rank);
    const auto how = conversion_of(to.dtype, from.dtype);
    for (;;) {
      auto* into = made.data() + to.first_offset;
      const auto* out_of = source.data() + from.first_offset;
      for (std::size_t i = 0; i < rank; ++i) {
        into += at[i] * to.dimensions[i].stride;
        out_of += at[i] * from.dimensions[i].stride;
      }
      convert_elements({into, 0, out_of, 0, 1}, how, to.item());
      std::size_t i = rank;
      while (i != 0 && ++at[i - 1] == to.dimensions[i - 1].count) at[--i] = 0;
      if (i == 0) return made;
    }
  }
};

// Never returns long double: its padding has no defined value.
Dtype random_dtype(std::mt19937_64& random) {
  const auto of = static_cast<Dtype>(1 + random() % 16);
  return of == ISTHMUS_LONGDOUBLE ? ISTHMUS_FLOAT64 : of;
}

block random_block(std::mt19937_64& random, std::size_t rank, std::uint64_t longest) {
  numbers shape;
  for (std::size_t i = 0; i < rank; ++i) {
    shape.push_back(static_cast<std::int64_t>(1 + random() % longest));
  }
  const Dtype to = random_dtype(random);
  const Dtype from = random() % 3 == 0 ? to : random_dtype(random);
  block made;
  made.to = layout(to, shape, random_strides(random, shape, facts_of(to).nbytes, false));
  made.from = layout(from, shape, random_strides(random, shape, facts_of(from).nbytes, true));
  made.source = noise(random, made.from.nbytes);
  made.old = noise(random, made.to.nbytes);
  return made;
}

void move_in_chunks(const ElementMove& what, std::size_t max_bytes) {
  const MoveChunks pieces{what, max_bytes};
  std::vector<std::byte> first(pieces.bytes());
  std::vector<std::byte> second(pieces.bytes());
  std::size_t moved = 0;
  for (std::size_t index = 0; index < pieces.count(); ++index) {
    const auto piece = pieces.at(index);
    ASSERT_LE(piece.dimensions.size(), StridedCopy::k_max_dimensions);
    ASSERT_LE(piece.elements() * piece.widest(), pieces.bytes());
    moved += piece.elements();
    const auto source = pack_source(piece, first.data());
    ASSERT_TRUE(is_strided_copy(source.read));
    copy_strided(as_strided(source.read));
    const auto destination = pack_destination(source.rest, second.data());
    move_elements(destination.pack);
    ASSERT_TRUE(is_strided_copy(destination.write));
    copy_strided(as_strided(destination.write));
  }
  EXPECT_EQ(moved, what.elements());
}

TEST(element_moves, match_the_model) {
  std::mt19937_64 random(7);
  for (int turn = 0; turn < 600; ++turn) {
    const std::size_t rank = random() % 6;
    const auto what = random_block(random, rank, rank < 3 ? 40 : 6);
    const auto want = what.modelled();
    bytes whole = what.old;
    move_elements(what.move(whole));
    EXPECT_EQ(whole, want);
    bytes cut = what.old;
    move_in_chunks(what.move(cut), std::size_t{1} << random() % 12);
    EXPECT_EQ(cut, want);
    bytes packed = what.old;
    const auto move = what.move(packed);
    bytes aside(move.elements() * move.source_item());
    const auto way = pack_source(move, aside.data());
    move_elements(way.read);
    move_elements(way.rest);
    EXPECT_EQ(packed, want);
  }
}

// Elements of one row of the destination lie between those of another row.
TEST(element_moves, where_strides_do_not_nest) {
  std::mt19937_64 random(10);
  for (const Dtype from : {ISTHMUS_INT16, ISTHMUS_INT8}) {
    for (const auto& [shape, strides] : {std::pair{numbers{2, 3}, numbers{6, 4}},
                                         std::pair{numbers{5, 9, 4}, numbers{14, 10, 200}}}) {
      block what;
      what.to = layout(ISTHMUS_INT16, shape, strides);
      what.from = layout(from, shape, random_strides(random, shape, facts_of(from).nbytes, true));
      what.source = noise(random, what.from.nbytes);
      what.old = noise(random, what.to.nbytes);
      ASSERT_TRUE(check_disjoint(what.to));
      const auto want = what.modelled();
      bytes whole = what.old, cut = what.old, copied = what.old;
      move_elements(what.move(whole));
      EXPECT_EQ(whole, want);
      move_in_chunks(what.move(cut), 20);
      EXPECT_EQ(cut, want);
      const auto move = what.move(copied);
      if (is_strided_copy(move)) {
        copy_strided(as_strided(move));
        EXPECT_EQ(copied, want);
      }
    }
  }
}

TEST(element_moves, are_packed_to_each_element_of_the_source_once) {
  std::mt19937_64 random(11);
  for (int turn = 0; turn < 100; ++turn) {
    auto what = random_block(random, 1 + random() % 3, 6);
    const auto move = what.move(what.old);
    const auto read = pack_source(move, what.old.data()).read;
    EXPECT_EQ(packed_bytes(move), read.elements() * read.source_item());
  }
}

TEST(element_moves, of_many_dimensions) {
  std::mt19937_64 random(8);
  for (const std::size_t rank : {9U, 12U, 64U}) {
    numbers shape(rank, 1), to(rank), from(rank);
    std::int64_t to_inside = 1, from_inside = 1;
    for (std::size_t i = 0; i < std::min<std::size_t>(rank, 11); ++i) {
      const auto at = i * rank / 11;
      shape[at] = 2;
      to[at] = to_inside;
      from[at] = i % 2 == 0 ? from_inside : -from_inside;
      to_inside = 2 * to_inside + 1;
      from_inside *= 2;
    }
    block what;
    what.to = layout(ISTHMUS_UINT8, shape, to);
    what.from = layout(ISTHMUS_INT8, shape, from);
    what.source = noise(random, what.from.nbytes);
    what.old = noise(random, what.to.nbytes);
    bytes whole = what.old;
    move_elements(what.move(whole));
    EXPECT_EQ(whole, what.modelled());
    bytes cut = what.old;
    move_in_chunks(what.move(cut), 1 << 20);
    EXPECT_EQ(cut, what.modelled());
  }
}

TEST(element_moves, large_enough_for_several_threads) {
  std::mt19937_64 random(9);
  const numbers shape{1100, 5, 1000};
  const std::vector<numbers> strides{{20'000, 4000, 4}, {4, 4'400'000, 4400}, {0, -4000, 4}};
  for (const auto& from : strides) {
    for (const Dtype to : {ISTHMUS_FLOAT32, ISTHMUS_FLOAT64}) {
      const auto item = static_cast<std::int64_t>(facts_of(to).nbytes);
      block what;
      what.to = layout(to, shape, {5000 * item + 16, 1000 * item, item});
      what.from = layout(ISTHMUS_FLOAT32, shape, from);
      what.source = bytes(what.from.nbytes);
      for (std::size_t i = 0; i < what.source.size(); i += 4) {
        const auto x = static_cast<float>(i);
        std::memcpy(what.source.data() + i, &x, 4);
      }
      what.old = bytes(what.to.nbytes);
      bytes one = what.old, shared = what.old;
      move_elements(what.move(one));
      move_elements_in_parallel(what.move(shared));
      EXPECT_EQ(one, shared);
    }
  }
}

TEST(element_moves, are_joined_to_few_dimensions) {
  const auto rank = [](const numbers& to, const numbers& from) {
    std::byte none{};
    const numbers shape{2, 3, 4};
    return move_between(layout(ISTHMUS_INT32, shape, to), &none, layout(ISTHMUS_INT32, shape, from),
                        &none)
        .dimensions.size();
  };
  EXPECT_EQ(rank({48, 16, 4}, {48, 16, 4}), 1U);
  EXPECT_EQ(rank({-48, -16, -4}, {-48, -16, -4}), 1U);
  EXPECT_EQ(rank({4, 8, 24}, {4, 8, 24}), 1U);
  EXPECT_EQ(rank({48, 16, 4}, {-48, -16, -4}), 1U);
  EXPECT_EQ(rank({48, 16, 4}, {48, 16, -4}), 2U);
  EXPECT_EQ(rank({48, 16, 4}, {0, 0, 0}), 1U);
  EXPECT_EQ(rank({96, 32, 4}, {48, 16, 4}), 2U);
}

}  // namespace
