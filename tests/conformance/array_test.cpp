// SPDX-License-Identifier: Apache-2.0
// Copies and fills of arrays in the C interface against a reference model: any strides of either
// sign, broadcasting, every pair of dtypes, between all kinds, blocking and asynchronous.
#include <atomic>
#include <optional>

#include "support/arrays.hpp"
#include "support/backends.hpp"

namespace {

using namespace support;

constexpr isthmus_casting_t k_unsafe = ISTHMUS_CASTING_UNSAFE;

// An operation with one owner.
isthmus_operation_t with_owner(const isthmus_owner_t& owner) {
  isthmus_operation_t how{};
  how.struct_size = sizeof how;
  how.owners = &owner;
  how.owner_count = 1;
  return how;
}

// Atomic, because a thread of the library may release the owner.
isthmus_owner_t counting_owner(std::atomic<int>& released) {
  return {&released, [](void* one) { ++*static_cast<std::atomic<int>*>(one); }};
}

class arrays : public on_backend {
 protected:
  using place = std::optional<im::kind>;  // without a value: plain memory

  struct memory {
    bytes plain;
    im::buffer buffer;

    [[nodiscard]] isthmus_endpoint_t at() {
      return buffer ? isthmus_endpoint_t{buffer.get(), nullptr, 0}
                    : isthmus_endpoint_t{nullptr, plain.data(), 0};
    }
    [[nodiscard]] bytes look() const { return buffer ? read(buffer) : plain; }
  };

  memory put(place where, const bytes& data) const {
    if (!where) return {data, {}};
    memory made{{}, make(data.size(), *where)};
    write(made.buffer, data);
    return made;
  }
  std::vector<place> places() const {
    std::vector<place> all{std::nullopt};
    for (const im::kind kind : kinds()) all.emplace_back(kind);
    return all;
  }
  static std::string text(place where) { return where ? std::string(name(*where)) : "plain"; }

  // The final status of a call: its own, or that of its event.
  static isthmus_status_t end(isthmus_status_t code, isthmus_event_t* event) {
    if (event == nullptr) return code;
    const isthmus_status_t ended = isthmus_event_wait(event, 20'000'000'000);
    isthmus_event_release(event);
    return ended;
  }
  isthmus_status_t copy(const isthmus_array_t& to, const isthmus_array_t& from, bool blocking) {
    std::atomic<int> released = 0;
    const isthmus_owner_t owner = counting_owner(released);
    const isthmus_operation_t how = with_owner(owner);
    isthmus_event_t* event = nullptr;
    const isthmus_status_t begun =
        isthmus_copy_array(queue_.get(), &to, &from, k_unsafe, &how, blocking ? nullptr : &event);
    const isthmus_status_t code = end(begun, event);
    expect_released(released);
    return code;
  }
  // Polls, because a thread of the library may release the owner a moment later.
  static void expect_released(const std::atomic<int>& released) {
    const auto patience = std::chrono::steady_clock::now() + 5s;
    while (released == 0 && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(released, 1);
  }

  void check(place to_place, place from_place, const nd_array& to, const nd_array& from,
             std::mt19937_64& random, bool blocking) {
    const char kind = dtype_info(to.dtype).kind;
    const bytes old = noise(to.nbytes, 1);
    const bytes data = numbers_in(from, random, kind != 'u');
    memory into = put(to_place, old);
    memory out_of = put(from_place, data);
    ASSERT_EQ(copy(to.at(into.at()), from.at(out_of.at()), blocking), ISTHMUS_OK)
        << isthmus_error_message();
    bytes want = modelled(old, to, data, from);
    const bytes got = into.look();
    take_padding(to, want, got);
    EXPECT_TRUE(same(got, want)) << text(from_place) << " to " << text(to_place) << ", "
                                 << dtype_info(from.dtype).name << " to "
                                 << dtype_info(to.dtype).name << ", rank " << to.shape.size()
                                 << (blocking ? "" : ", not blocking");
  }
  void check_everywhere(const nd_array& to, const nd_array& from, std::mt19937_64& random) {
    for (const place to_place : places()) {
      for (const place from_place : places()) {
        check(to_place, from_place, to, from, random, true);
        check(to_place, from_place, to, from, random, false);
      }
    }
  }
  // Source and destination are in the same memory.
  void check_within(place where, const nd_array& to, const nd_array& from, bool blocking) {
    std::mt19937_64 random(3);
    nd_array whole = from.nbytes > to.nbytes ? from : to;
    const bytes old = numbers_in(whole, random, true);
    memory both = put(where, old);
    const auto into = to.at(both.at());
    const auto out_of = from.at(both.at());
    ASSERT_EQ(copy(into, out_of, blocking), ISTHMUS_OK) << isthmus_error_message();
    EXPECT_TRUE(same(both.look(), modelled(old, to, old, from)))
        << text(where) << (blocking ? "" : ", not blocking");
  }
  void check_fill(place where, const nd_array& to, isthmus_dtype_t of, bool blocking) {
    const bytes old = noise(to.nbytes, 4);
    memory into = put(where, old);
    const nd_array value = dense_array(of, {});
    bytes element(value.nbytes);
    put_number(of, element.data(), 42, 7);
    isthmus_event_t* event = nullptr;
    const auto target = to.at(into.at());
    bytes given = element;
    isthmus_queue_t* const on = where ? queue_.get() : nullptr;  // the host fills plain memory
    const isthmus_status_t begun = isthmus_fill_array(on, &target, given.data(), of, k_unsafe,
                                                      nullptr, blocking ? nullptr : &event);
    std::fill(given.begin(), given.end(), std::byte{0xee});
    ASSERT_EQ(end(begun, event), ISTHMUS_OK) << isthmus_error_message();
    bytes want = modelled(old, to, element, value);
    const bytes got = into.look();
    take_padding(to, want, got);
    EXPECT_TRUE(same(got, want)) << text(where) << ", " << dtype_info(of).name << " in "
                                 << dtype_info(to.dtype).name << ", rank " << to.shape.size()
                                 << (blocking ? "" : ", not blocking");
  }
};
INSTANTIATE_ON_BACKENDS(arrays);

lengths random_shape(std::mt19937_64& random, std::size_t rank, std::uint64_t longest) {
  lengths shape;
  for (std::size_t i = 0; i < rank; ++i) {
    shape.push_back(static_cast<std::int64_t>(1 + random() % longest));
  }
  return shape;
}

// A shape that can be broadcast to `shape`.
lengths narrowed(std::mt19937_64& random, lengths shape) {
  for (auto& count : shape) {
    if (random() % 5 == 0) count = 1;
  }
  while (!shape.empty() && random() % 6 == 0) shape.erase(shape.begin());
  return shape;
}

isthmus_dtype_t random_dtype(std::mt19937_64& random) {
  return static_cast<isthmus_dtype_t>(1 + random() % k_last_dtype);
}

TEST_P(arrays, every_pair_of_dtypes) {
  std::mt19937_64 random(1);
  std::size_t number = 0;
  for (isthmus_dtype_t to = 1; to <= k_last_dtype; ++to) {
    for (isthmus_dtype_t from = 1; from <= k_last_dtype; ++from) {
      const lengths shape = random_shape(random, 1 + random() % 2, 30);
      const auto all = places();
      const place to_place = all[number % all.size()];
      const place from_place = all[number / all.size() % all.size()];
      check(to_place, from_place, random_array(random, to, shape, false),
            random_array(random, from, shape, false), random, number++ % 2 == 0);
    }
  }
}

TEST_P(arrays, of_any_shape_and_strides) {
  std::mt19937_64 random(2);
  for (const std::size_t rank : {0u, 1u, 2u, 3u, 4u, 5u, 8u}) {
    for (int turn = 0; turn < 6; ++turn) {
      const lengths shape = random_shape(random, rank, rank < 4 ? 9 : 3);
      const isthmus_dtype_t to = random_dtype(random);
      const isthmus_dtype_t from = turn % 2 == 0 ? to : random_dtype(random);
      check_everywhere(random_array(random, to, shape, false),
                       random_array(random, from, narrowed(random, shape), true), random);
    }
  }
}

TEST_P(arrays, of_many_dimensions) {
  std::mt19937_64 random(3);
  for (const std::size_t rank : {11u, 64u}) {
    lengths shape(rank, 1);
    for (std::size_t i = 0; i < 10; ++i) shape[i * rank / 11] = 2;
    check_everywhere(random_array(random, ISTHMUS_INT16, shape, false),
                     random_array(random, ISTHMUS_INT16, shape, false), random);
    check_everywhere(random_array(random, ISTHMUS_FLOAT32, shape, false),
                     random_array(random, ISTHMUS_INT8, shape, true), random);
    check_fill(im::kind::device, random_array(random, ISTHMUS_INT16, shape, false), ISTHMUS_INT8,
               true);
  }
}

// The elements of one row lie between those of another.
TEST_P(arrays, whose_strides_do_not_nest) {
  std::mt19937_64 random(12);
  for (const isthmus_dtype_t of : {ISTHMUS_INT16, ISTHMUS_FLOAT32}) {
    const lengths shape{5, 9};
    nd_array woven = dense_array(of, shape);
    const auto item = woven.strides.back();
    woven.strides = {7 * item, 5 * item};
    woven.measure(2, 2);
    check_everywhere(woven, random_array(random, of, shape, true), random);
    check_everywhere(woven, random_array(random, ISTHMUS_INT8, shape, true), random);
    check_everywhere(dense_array(of, shape), woven, random);
    check_fill(im::kind::device, woven, of, true);
  }
}

// Large enough for several chunks: in host memory, in device memory, and between the two.
TEST_P(arrays, that_are_large) {
  std::mt19937_64 random(4);
  const auto a = static_cast<std::int64_t>(45 / k_slower);
  const lengths shape{a, 60, 130};
  const nd_array dense = dense_array(ISTHMUS_FLOAT32, shape);
  nd_array back = dense, turned = dense, apart = dense, wide = dense_array(ISTHMUS_FLOAT64, shape);
  back.strides = {-dense.strides[0], dense.strides[1], -dense.strides[2]};
  turned.strides = {4, a * 4, a * 60 * 4};
  apart.strides = {60 * 130 * 8, 130 * 8, 8};
  for (nd_array* each : {&back, &turned, &apart}) each->measure(4, 4);
  for (const place to : {place{im::kind::device}, place{}}) {
    for (const place from : {place{im::kind::device}, place{}}) {
      check(to, from, dense, back, random, false);
      check(to, from, turned, back, random, true);
      check(to, from, wide, apart, random, true);
      check(to, from, apart, wide, random, false);
    }
  }
}

TEST_P(arrays, that_overlap) {
  std::vector<place> all = places();
  for (const place where : all) {
    for (const bool blocking : {true, false}) {
      const nd_array line = dense_array(ISTHMUS_INT32, {300});
      nd_array up = line, down = line, back = line, spread = line;
      up.shape = down.shape = {299};
      down.first = 4;
      back.strides = {-4};
      back.first = 299 * 4;
      spread.shape = {150};
      spread.strides = {8};
      nd_array start = line;
      start.shape = {150};
      check_within(where, down, up, blocking);
      check_within(where, up, down, blocking);
      check_within(where, line, back, blocking);
      check_within(where, line, line, blocking);
      check_within(where, spread, start, blocking);
      check_within(where, start, spread, blocking);
      const nd_array square = dense_array(ISTHMUS_FLOAT32, {40, 40});
      nd_array turned = square, columns = square, others = square;
      turned.strides = {4, 160};
      columns.shape = others.shape = {40, 20};
      columns.strides = others.strides = {160, 8};
      others.first = 4;
      nd_array row = square;
      row.shape = {40};
      row.strides = {4};
      check_within(where, square, turned, blocking);
      check_within(where, columns, others, blocking);
      check_within(where, square, row, blocking);
      nd_array narrow = line, other = line;
      narrow.dtype = ISTHMUS_INT16;
      narrow.strides = {2};
      other.shape = {600};
      other.dtype = ISTHMUS_INT16;
      other.strides = {-2};
      other.first = 1198;
      nd_array halves = dense_array(ISTHMUS_INT16, {600});
      check_within(where, halves, other, blocking);
    }
  }
}

// The destination has another dtype and overlaps the source.
TEST_P(arrays, that_overlap_and_convert) {
  std::mt19937_64 random(6);
  for (const place where : places()) {
    for (const bool blocking : {true, false}) {
      const nd_array wide = dense_array(ISTHMUS_FLOAT64, {200});
      const nd_array narrow = dense_array(ISTHMUS_INT16, {200});
      bytes old = numbers_in(wide, random, true);
      memory both = put(where, old);
      ASSERT_EQ(copy(narrow.at(both.at()), wide.at(both.at()), blocking), ISTHMUS_OK);
      const bytes want = modelled(old, narrow, old, wide);
      EXPECT_TRUE(same(both.look(), want)) << text(where);
      ASSERT_EQ(copy(wide.at(both.at()), narrow.at(both.at()), blocking), ISTHMUS_OK);
      EXPECT_TRUE(same(both.look(), modelled(want, wide, want, narrow))) << text(where);
    }
  }
}

TEST_P(arrays, filled) {
  std::mt19937_64 random(7);
  for (const place where : places()) {
    for (isthmus_dtype_t of = 1; of <= k_last_dtype; ++of) {
      const lengths shape = random_shape(random, random() % 4, 9);
      check_fill(where, random_array(random, of, shape, false), random_dtype(random), of % 2 == 0);
      check_fill(where, dense_array(of, {random() % 2 == 0 ? 1 : 77}), of, of % 2 == 0);
    }
    nd_array rows = dense_array(ISTHMUS_FLOAT32, {30, 3000});
    rows.shape = {30, 2999};
    check_fill(where, rows, ISTHMUS_INT8, true);
    nd_array column = dense_array(ISTHMUS_FLOAT64, {500, 20});
    column.shape = {500, 1};
    check_fill(where, column, ISTHMUS_BOOL, false);
  }
}

TEST_P(arrays, with_no_element) {
  const im::buffer there = make(100, im::kind::device);
  const bytes old = noise(100);
  write(there, old);
  const lengths none{3, 0}, far{INT64_MAX, INT64_MIN};
  const isthmus_endpoint_t middle{there.get(), nullptr, 50};
  const isthmus_array_t array{middle, ISTHMUS_INT32, 2, none.data(), far.data()};
  const isthmus_array_t one{middle, ISTHMUS_INT8, 0, nullptr, nullptr};
  for (const bool blocking : {true, false}) {
    EXPECT_EQ(copy(array, array, blocking), ISTHMUS_OK);
    EXPECT_EQ(copy(array, one, blocking), ISTHMUS_OK);
  }
  const int value = 3;
  EXPECT_EQ(
      isthmus_fill_array(queue_.get(), &array, &value, ISTHMUS_INT32, k_unsafe, nullptr, nullptr),
      ISTHMUS_OK);
  EXPECT_EQ(isthmus_arrays_overlap(&array, &array), 0);
  EXPECT_TRUE(same(read(there), old));
}

TEST_P(arrays, wait_for_their_dependencies) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  std::mt19937_64 random(8);
  const nd_array to = dense_array(ISTHMUS_FLOAT64, {60, 50});
  nd_array from = dense_array(ISTHMUS_INT16, {60, 50});
  from.strides = {-100, 2};
  from.measure(0, 0);
  bytes data = numbers_in(from, random, true);
  const bytes later = numbers_in(from, random, true);
  const im::buffer there = make(to.nbytes, im::kind::device);
  const im::host_event gate;
  isthmus_event_t* const after = gate.get();
  std::atomic<int> released = 0;
  const isthmus_owner_t owner = counting_owner(released);
  isthmus_operation_t how = with_owner(owner);
  how.after = &after;
  how.after_count = 1;
  isthmus_event_t* event = nullptr;
  const auto target = to.at({there.get(), nullptr, 0});
  const auto start = from.at({nullptr, data.data(), 0});
  ASSERT_EQ(isthmus_copy_array(queue_.get(), &target, &start, k_unsafe, &how, &event), ISTHMUS_OK);
  EXPECT_EQ(isthmus_event_status(event), ISTHMUS_PENDING);
  EXPECT_EQ(released, 0);
  data = later;
  gate.complete();
  EXPECT_EQ(end(ISTHMUS_OK, event), ISTHMUS_OK);
  expect_released(released);
  EXPECT_TRUE(same(read(there), modelled(bytes(to.nbytes), to, later, from)));
}

// A copy of an array onto itself moves nothing, but still completes only after the pending writes
// to it.
TEST_P(arrays, onto_themselves_wait_too) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const nd_array line = dense_array(ISTHMUS_INT32, {300});
  const im::queue other(device_);
  for (const im::kind kind : kinds()) {
    const im::buffer there = make(line.nbytes, kind);
    const auto whole = line.at({there.get(), nullptr, 0});
    const im::host_event gate;
    const im::event filled = im::fill_async(there, std::byte{7}, {.queue = queue_, .after = gate});
    isthmus_event_t* event = nullptr;
    ASSERT_EQ(isthmus_copy_array(other.get(), &whole, &whole, k_unsafe, nullptr, &event),
              ISTHMUS_OK);
    EXPECT_EQ(isthmus_event_status(event), ISTHMUS_PENDING) << name(kind);
    gate.complete();
    EXPECT_EQ(isthmus_copy_array(other.get(), &whole, &whole, k_unsafe, nullptr, nullptr),
              ISTHMUS_OK);
    EXPECT_TRUE(filled.done());
    EXPECT_EQ(end(ISTHMUS_OK, event), ISTHMUS_OK);
  }
}

// An operation whose dependency fails writes nothing and releases its owners.
TEST_P(arrays, after_a_failed_operation) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  std::mt19937_64 random(9);
  const nd_array line = dense_array(ISTHMUS_INT32, {300});
  nd_array back = line, wide = dense_array(ISTHMUS_FLOAT64, {150});
  back.strides = {-4};
  back.first = 299 * 4;
  nd_array half = line;
  half.shape = {150};
  const bytes old = numbers_in(line, random, true);
  for (const nd_array* from : {&back, &half}) {
    const nd_array& to = from == &back ? line : wide;
    const im::buffer there = make(line.nbytes, im::kind::device);
    write(there, old);
    const im::host_event gate;
    isthmus_event_t* const after = gate.get();
    std::atomic<int> released = 0;
    const isthmus_owner_t owner = counting_owner(released);
    isthmus_operation_t how = with_owner(owner);
    how.after = &after;
    how.after_count = 1;
    isthmus_event_t* event = nullptr;
    const isthmus_endpoint_t start_of{there.get(), nullptr, 0};
    const auto target = to.at(start_of);
    const auto start = from->at(start_of);
    ASSERT_EQ(isthmus_copy_array(queue_.get(), &target, &start, k_unsafe, &how, &event),
              ISTHMUS_OK);
    gate.fail("on purpose");
    EXPECT_EQ(end(ISTHMUS_OK, event), ISTHMUS_ERROR_DEPENDENCY);
    const bool ran = ran_despite_failure();
    expect_released(released);
    if (!ran) {
      EXPECT_TRUE(same(read(there), old));
    }
  }
}

TEST_P(arrays, overlap_as_their_bytes_do) {
  const im::buffer there = make(1000, im::kind::device);
  const isthmus_endpoint_t start_of{there.get(), nullptr, 0};
  const auto overlap = [&](const nd_array& one, const nd_array& other) {
    const auto a = one.at(start_of);
    const auto b = other.at(start_of);
    EXPECT_EQ(isthmus_arrays_overlap(&a, &b), isthmus_arrays_overlap(&b, &a));
    return isthmus_arrays_overlap(&a, &b);
  };
  const nd_array line = dense_array(ISTHMUS_FLOAT32, {100});
  nd_array even = line, odd = line, behind = line;
  even.shape = odd.shape = {50};
  even.strides = {8};
  odd.strides = {-8};
  odd.first = 396;
  behind.first = 400;
  EXPECT_EQ(overlap(line, line), 1);
  EXPECT_EQ(overlap(line, even), 1);
  EXPECT_EQ(overlap(even, odd), 0);
  EXPECT_EQ(overlap(line, behind), 0);
  even.dtype = ISTHMUS_FLOAT64;
  EXPECT_EQ(overlap(even, odd), 1);
  nd_array past = line, before = line;
  past.first = 601;
  before.strides = {-4};
  EXPECT_EQ(overlap(past, past), 0) << "it leaves its memory";
  EXPECT_EQ(overlap(before, before), 0) << "it begins in front of its memory";
  const auto whole = line.at(start_of);
  EXPECT_EQ(isthmus_arrays_overlap(&whole, nullptr), 0);
  isthmus_buffer_free(there.get());
  EXPECT_EQ(isthmus_arrays_overlap(&whole, &whole), 0);
}

TEST_P(arrays, by_pointer) {
  std::mt19937_64 random(10);
  const im::buffer there = make(400, im::kind::device);
  const bytes old = noise(400);
  write(there, old);
  auto* const end_of_it = static_cast<std::byte*>(isthmus_buffer_pointer(there.get())) + 396;
  nd_array back = dense_array(ISTHMUS_INT32, {100});
  back.strides = {-4};
  const nd_array line = dense_array(ISTHMUS_INT32, {100});
  bytes data = numbers_in(line, random, true);
  const isthmus_array_t to{
      {nullptr, end_of_it, 0}, ISTHMUS_INT32, 1, back.shape.data(), back.strides.data()};
  EXPECT_EQ(copy(to, line.at({nullptr, data.data(), 0}), true), ISTHMUS_OK)
      << isthmus_error_message();
  back.first = 396;
  EXPECT_TRUE(same(read(there), modelled(old, back, data, line)));
  const lengths longer{101};
  const isthmus_array_t past{
      {nullptr, end_of_it, 0}, ISTHMUS_INT32, 1, longer.data(), back.strides.data()};
  const int value = 0;
  EXPECT_TRUE(refused(
      isthmus_fill_array(queue_.get(), &past, &value, ISTHMUS_INT32, k_unsafe, nullptr, nullptr),
      ISTHMUS_ERROR_OUT_OF_RANGE, {"destination", "400"}));
}

TEST(dtype_infos, report_bits_to_dlpack_only_where_they_fit) {
  EXPECT_EQ(dtype_info(ISTHMUS_COMPLEX128).dlpack_bits, 128);
  EXPECT_EQ(dtype_info(ISTHMUS_LONGDOUBLE).dlpack_bits, 128);
  EXPECT_EQ(dtype_info(ISTHMUS_CLONGDOUBLE).dlpack_bits, 0) << "256 is more than 8 bits hold";
}

TEST_P(arrays, bad_input) {
  const im::buffer there = make(1000, im::kind::device);
  const bytes old = noise(1000);
  write(there, old);
  bytes here(2000);
  const auto refuses = [&](isthmus_status_t why, const std::vector<std::string>& parts,
                           const nd_array& to, const nd_array& from,
                           isthmus_casting_t casting = k_unsafe) {
    const auto target = to.at({there.get(), nullptr, 0});
    const auto start = from.at({nullptr, here.data(), 0});
    for (const bool blocking : {true, false}) {
      std::atomic<int> released = 0;
      const isthmus_owner_t owner = counting_owner(released);
      const isthmus_operation_t how = with_owner(owner);
      isthmus_event_t* event = nullptr;
      EXPECT_TRUE(refused(isthmus_copy_array(queue_.get(), &target, &start, casting, &how,
                                             blocking ? nullptr : &event),
                          why, parts));
      EXPECT_EQ(event, nullptr);
      EXPECT_EQ(released, 1);
    }
  };
  const auto given = [](isthmus_dtype_t of, const lengths& shape, const lengths& strides,
                        std::size_t first = 0) { return nd_array{of, shape, strides, first, 0}; };
  const nd_array ten = given(ISTHMUS_INT32, {10}, {4});
  constexpr auto k_invalid = ISTHMUS_ERROR_INVALID_ARGUMENT;
  constexpr auto k_outside = ISTHMUS_ERROR_OUT_OF_RANGE;
  refuses(k_invalid, {"(10,)", "(9,)"}, given(ISTHMUS_INT32, {9}, {4}), ten);
  refuses(k_invalid, {"(2, 10)", "(10,)"}, ten, given(ISTHMUS_INT32, {2, 10}, {40, 4}));
  refuses(k_invalid, {"0 is not a dtype"}, given(0, {}, {}), ten);
  refuses(k_invalid, {"18 is not a dtype"}, ten, given(18, {}, {}));
  refuses(k_invalid, {"4 is not a casting rule"}, ten, ten, 4);
  refuses(k_invalid, {"float64", "int32", "same_kind"}, ten, given(ISTHMUS_FLOAT64, {10}, {8}),
          ISTHMUS_CASTING_SAME_KIND);
  refuses(k_invalid, {"int64", "int32", "safe"}, ten, given(ISTHMUS_INT64, {10}, {8}),
          ISTHMUS_CASTING_SAFE);
  refuses(k_invalid, {"uint32", "\"no\""}, ten, given(ISTHMUS_UINT32, {10}, {4}),
          ISTHMUS_CASTING_NO);
  refuses(k_invalid, {"65 dimensions", "64"}, given(ISTHMUS_INT8, lengths(65, 1), lengths(65, 1)),
          ten);
  refuses(k_invalid, {"-1 elements", "dimension 1"}, given(ISTHMUS_INT8, {2, -1}, {1, 1}), ten);
  refuses(k_invalid, {"overlap in the destination", "(10,)"}, given(ISTHMUS_INT32, {10}, {0}), ten);
  refuses(k_invalid, {"overlap in the destination", "3 bytes"}, given(ISTHMUS_INT32, {10}, {3}),
          ten);
  refuses(k_outside, {"destination", "1000"}, given(ISTHMUS_INT32, {251}, {4}),
          ten.broadcast_to({}));
  refuses(k_outside, {"destination", "offset 8"}, given(ISTHMUS_INT32, {10}, {-4}, 8), ten);
  refuses(k_outside, {"destination", "exceed"}, given(ISTHMUS_INT8, {INT64_MAX}, {INT64_MAX}), ten);
  refuses(k_outside, {"source", "exceed"}, ten, given(ISTHMUS_INT8, {3, 10}, {INT64_MIN, 1}));
  const auto target = ten.at({there.get(), nullptr, 0});
  const int value = 3;
  EXPECT_TRUE(refused(isthmus_fill_array(queue_.get(), &target, &value, ISTHMUS_FLOAT32,
                                         ISTHMUS_CASTING_SAFE, nullptr, nullptr),
                      k_invalid, {"float32", "int32"}));
  EXPECT_TRUE(same(read(there), old));
  isthmus_buffer_free(there.get());
  refuses(ISTHMUS_ERROR_CLOSED, {"freed"}, ten, ten);
}

}  // namespace
