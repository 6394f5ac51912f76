// SPDX-License-Identifier: Apache-2.0
// Copies of many ranges against a reference model: any lengths and alignments, between all kinds,
// in both directions, blocking and asynchronous.
#include "support/backends.hpp"
#include "support/bytes.hpp"

#include <optional>
#include <random>
#include <thread>

namespace {

using namespace support;
using ranges = std::vector<im::copy_range>;

// An endpoint, a buffer or plain memory, and its contents.
class side {
 public:
  side(im::buffer made, const bytes& data) : buffer_(std::move(made)), memory_(data) {
    write(buffer_, data);
  }
  explicit side(bytes data) : memory_(std::move(data)) {}

  im::destination to() { return buffer_ ? im::destination(buffer_) : std::span(memory_); }
  im::source from() const {
    return buffer_ ? im::source(buffer_) : im::source(std::span<const std::byte>(memory_));
  }
  bytes now() const { return buffer_ ? read(buffer_) : memory_; }

 private:
  im::buffer buffer_;
  bytes memory_;
};

// Ranges that do not overlap on either side, in random order, with gaps that may be empty.
ranges random_ranges(std::mt19937_64& random, std::size_t count, std::size_t longest) {
  ranges made(count);
  std::size_t to = random() % 40;
  for (auto& each : made) {
    each.nbytes = random() % (longest + 1);
    each.destination_offset = to;
    to += each.nbytes + random() % 3 * (random() % 40);
  }
  std::shuffle(made.begin(), made.end(), random);
  std::size_t from = random() % 40;
  for (auto& each : made) {
    each.source_offset = from;
    from += each.nbytes + random() % 3 * (random() % 40);
  }
  std::shuffle(made.begin(), made.end(), random);
  return made;
}

struct extents {
  std::size_t destination = 1, source = 1;
};
extents of(const ranges& all) {
  extents found;
  for (const auto& each : all) {
    found.destination = std::max(found.destination, each.destination_offset + each.nbytes);
    found.source = std::max(found.source, each.source_offset + each.nbytes);
  }
  return found;
}

bytes modelled(bytes into, const bytes& from, const ranges& all) {
  for (const auto& each : all) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(each.source_offset), each.nbytes,
                into.begin() + static_cast<std::ptrdiff_t>(each.destination_offset));
  }
  return into;
}

class ranged : public on_backend {
 protected:
  // Without a value: plain memory.
  using place = std::optional<im::kind>;

  std::vector<place> places() const {
    std::vector<place> all{std::nullopt};
    for (const im::kind kind : kinds()) all.emplace_back(kind);
    return all;
  }
  side made(place where, const bytes& data) const {
    return where ? side(make(data.size(), *where), data) : side(data);
  }
  void check(place to, place from, const ranges& all, bool blocking) const {
    const auto room = of(all);
    const bytes old = noise(room.destination + 9, 1);
    const bytes data = noise(room.source + 5, 2);
    side into = made(to, old);
    const side out_of = made(from, data);
    if (blocking) {
      im::copy_ranges(into.to(), out_of.from(), all, {.queue = queue_});
    } else {
      im::copy_ranges_async(into.to(), out_of.from(), all, {.queue = queue_}).wait();
    }
    EXPECT_TRUE(same(into.now(), modelled(old, data, all)))
        << (from ? name(*from) : "plain") << " to " << (to ? name(*to) : "plain") << ", "
        << all.size() << " ranges, " << (blocking ? "blocking" : "not");
  }
  void check_everywhere(const ranges& all) const {
    for (const place to : places()) {
      for (const place from : places()) {
        check(to, from, all, true);
        check(to, from, all, false);
      }
    }
  }
};
INSTANTIATE_ON_BACKENDS(ranged);

TEST_P(ranged, move_every_byte_and_no_other) {
  std::mt19937_64 random(7);
  for (const std::size_t longest : {3u, 40u, 700u, 9000u}) {
    for (const std::size_t count : {1u, 2u, 5u, 60u}) {
      check_everywhere(random_ranges(random, count, longest));
    }
  }
}

TEST_P(ranged, short_beside_long_ones) {
  std::mt19937_64 random(11);
  ranges all = random_ranges(random, 30, 60000);
  const auto room = of(all);
  all.push_back({room.destination + 5, room.source + 3, (2u << 20) + 11});
  all.push_back({room.destination + (3u << 20), room.source + (3u << 20) + 1, 100'001});
  check_everywhere(all);
}

TEST_P(ranged, pages_in_any_order) {
  constexpr std::size_t k_page_bytes = 4096;
  std::mt19937_64 random(3);
  std::vector<std::size_t> order(1000 / support::k_slower);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  ranges all;
  for (std::size_t i = 0; i < 350 / support::k_slower; ++i)
    all.push_back({i * k_page_bytes, order[i] * k_page_bytes, k_page_bytes});
  check_everywhere(all);
  for (auto& each : all) std::swap(each.destination_offset, each.source_offset);
  check_everywhere(all);
}

TEST_P(ranged, more_than_one_list_of_a_kernel_holds) {
  ranges all;
  for (std::size_t i = 0; i < 30'000; ++i) all.push_back({i * 24, i * 40 + 3, i % 17 + 1});
  check(im::kind::device, std::nullopt, all, true);
  check(std::nullopt, im::kind::device, all, true);
  check(im::kind::device, im::kind::device, all, false);
}

TEST_P(ranged, none_and_empty_ones) {
  const im::buffer there = make(100, im::kind::device);
  const bytes old = noise(100);
  write(there, old);
  bytes here(100);
  im::copy_ranges(there, std::span(here), ranges{});
  im::copy_ranges(there, std::span(here), ranges{{0, 100, 0}, {100, 3, 0}});
  im::copy_ranges_async(std::span(here), there, ranges{{100, 100, 0}}).wait();
  EXPECT_TRUE(same(read(there), old));
  EXPECT_TRUE(same(here, bytes(100)));
}

TEST_P(ranged, of_one_buffer_that_lie_apart) {
  for (const im::kind kind : kinds()) {
    const bytes old = noise(4000);
    const im::buffer one = make(old.size(), kind);
    write(one, old);
    ranges all;
    for (std::size_t i = 0; i < 40; ++i) all.push_back({100 * i, 100 * i + 50, 50});
    im::copy_ranges(one, one, all);
    EXPECT_TRUE(same(read(one), modelled(old, old, all))) << name(kind);
  }
}

TEST_P(ranged, are_in_order_with_the_queue) {
  constexpr std::size_t k_bytes = 1 << 20;
  const bytes first = noise(k_bytes, 1);
  const im::buffer there = make(k_bytes, im::kind::device);
  ranges all;
  for (std::size_t at = 0; at < k_bytes; at += 8192) all.push_back({at, at, 4096});
  bytes early(k_bytes);
  bytes late(k_bytes);
  const im::queue other(device_);
  im::fill(there, std::byte{0});
  const im::event ends[] = {im::copy_ranges_async(there, std::span(first), all, {.queue = queue_}),
                            im::copy_async(std::span(early), there, {.queue = other}),
                            im::fill_async(there, std::byte{7}, {.queue = queue_}),
                            im::copy_ranges_async(std::span(late), there, all, {.queue = other})};
  for (const auto& each : ends) each.wait();
  EXPECT_TRUE(same(early, modelled(bytes(k_bytes), first, all)));
  EXPECT_TRUE(same(late, modelled(bytes(k_bytes), bytes(k_bytes, std::byte{7}), all)));
}

TEST_P(ranged, wait_for_their_dependencies) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  constexpr std::size_t k_bytes = 200'000;
  bytes data = noise(k_bytes, 1);
  const bytes later = noise(k_bytes, 2);
  ranges all;
  for (std::size_t at = 0; at + 1000 < k_bytes; at += 2000) all.push_back({at, at + 1, 999});
  for (const im::kind kind : kinds()) {
    const im::buffer there = make(k_bytes, kind);
    im::fill(there, std::byte{0});
    const im::host_event gate;
    const im::event sent =
        im::copy_ranges_async(there, std::span(data), all, {.queue = queue_, .after = gate});
    EXPECT_FALSE(sent.done());
    data = later;
    gate.complete();
    sent.wait();
    EXPECT_TRUE(same(read(there), modelled(bytes(k_bytes), later, all))) << name(kind);
    data = noise(k_bytes, 1);
  }
}

TEST_P(ranged, what_they_depend_on_fails) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const bytes data = noise(5000);
  const im::buffer there = make(5000, im::kind::device);
  im::fill(there, std::byte{1});
  ranges all;
  for (std::size_t at = 0; at < 5000; at += 500) all.push_back({at, at, 100});
  const im::host_event gate;
  const im::event sent =
      im::copy_ranges_async(there, std::span(data), all, {.queue = queue_, .after = gate});
  gate.fail("gone");
  EXPECT_TRUE(throws(im::status::dependency, [&] { sent.wait(); }));
}

TEST_P(ranged, from_several_threads_at_once) {
  constexpr std::size_t k_bytes = 300'000;
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([this, seed] {
      std::mt19937_64 random(seed);
      const im::queue own(device_);
      for (int turn = 0; turn < 10; ++turn) {
        const ranges all = random_ranges(random, 50, 3000);
        const auto room = of(all);
        const bytes data = noise(room.source, seed);
        const im::buffer there(k_bytes, im::kind::device, {.queue = own});
        im::fill(there, std::byte{0});
        im::copy_ranges_async(there, std::span(data), all, {.queue = own}).wait();
        const bytes got = read(there);
        EXPECT_TRUE(same(got, modelled(bytes(k_bytes), data, all)));
      }
    });
  }
  for (auto& each : threads) each.join();
}

TEST_P(ranged, bad_input) {
  const im::buffer there = make(1000, im::kind::device);
  const bytes old = noise(1000);
  write(there, old);
  bytes here(500);
  const auto refuses = [&](im::status why, const std::vector<std::string>& parts,
                           const ranges& all) {
    EXPECT_TRUE(throws(why, parts, [&] { im::copy_ranges(there, std::span(here), all); }));
    EXPECT_TRUE(
        throws(why, parts, [&] { (void)im::copy_ranges_async(there, std::span(here), all); }));
  };
  constexpr auto k_most = std::numeric_limits<std::size_t>::max();
  refuses(im::status::out_of_range, {"range 1", "501", "500"}, {{0, 0, 10}, {100, 0, 501}});
  refuses(im::status::out_of_range, {"range 2", "1000"}, {{0, 0, 1}, {5, 0, 1}, {999, 0, 2}});
  refuses(im::status::out_of_range, {"range 0"}, {{k_most, 0, 2}});
  refuses(im::status::out_of_range, {"range 0"}, {{0, k_most, 1}});
  refuses(im::status::out_of_range, {"range 0"}, {{0, 0, k_most}});
  refuses(im::status::invalid_argument, {"ranges 0 and 2", "overlap"},
          {{10, 0, 10}, {200, 0, 10}, {19, 30, 10}});
  EXPECT_TRUE(throws(im::status::invalid_argument, {"overlap", "50", "60"}, [&] {
    im::copy_ranges(there, there, ranges{{50, 300, 100}, {500, 60, 10}});
  }));
  EXPECT_TRUE(same(read(there), old));
}

TEST_P(ranged, the_library_holds_the_bounds_of_what_it_knows) {
  const im::buffer there = make(1000, im::kind::device);
  bytes here(600);
  const isthmus_endpoint_t device{there.get(), nullptr, 500};
  const isthmus_endpoint_t host{nullptr, here.data(), 0};
  const isthmus_range_t all[] = {{0, 0, 100}, {450, 0, 51}};
  EXPECT_TRUE(refused(isthmus_copy_ranges(nullptr, &device, &host, all, 2, nullptr, nullptr),
                      ISTHMUS_ERROR_OUT_OF_RANGE,
                      {"range 1 does not lie within the destination", "1000"}));
  EXPECT_TRUE(
      refused(isthmus_copy_ranges(nullptr, &host, &device, all, 2, nullptr, nullptr), ISTHMUS_OK));
  const isthmus_range_t far[] = {{0, SIZE_MAX - 10, 5}};
  EXPECT_TRUE(refused(isthmus_copy_ranges(nullptr, &host, &device, far, 1, nullptr, nullptr),
                      ISTHMUS_ERROR_OUT_OF_RANGE, {"range 0 does not lie within the source"}));
}

}  // namespace
