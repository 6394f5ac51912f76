// SPDX-License-Identifier: Apache-2.0
// 2-D copies, fills, prefetch and advice.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

struct shape {
  std::size_t width, height, destination_pitch, source_pitch, destination, source;
};
constexpr shape k_shapes[] = {{16, 4, 16, 16, 0, 0},       {7, 5, 16, 9, 3, 1},
                              {0, 5, 16, 16, 0, 0},        {5, 0, 16, 16, 0, 0},
                              {1, 1, 1, 1, 0, 0},          {100, 33, 4096, 128, 7, 64},
                              {4096, 64, 4096, 5000, 0, 0}};

class rows : public on_backend {
 protected:
  static std::size_t reach(const shape& s, std::size_t pitch, std::size_t offset) {
    return offset + (s.height == 0 ? 0 : (s.height - 1) * pitch + s.width);
  }
  static bytes expected(bytes into, const bytes& from, const shape& s) {
    for (std::size_t y = 0; y < s.height; ++y) {
      std::memcpy(into.data() + s.destination + y * s.destination_pitch,
                  from.data() + s.source + y * s.source_pitch, s.width);
    }
    return into;
  }
};
INSTANTIATE_ON_BACKENDS(rows);

TEST_P(rows, between_all_places) {
  for (const shape& s : k_shapes) {
    const bytes old = noise(reach(s, s.destination_pitch, s.destination), 1);
    const bytes data = noise(reach(s, s.source_pitch, s.source), 2);
    const bytes want = expected(old, data, s);
    const im::extent size{s.width, s.height};
    for (im::kind to : kinds()) {
      const im::buffer b = make(old.size(), to);
      write(b, old);
      im::copy_2d({im::at(b, s.destination), s.destination_pitch},
                  {std::span(data).subspan(s.source), s.source_pitch}, size);
      EXPECT_TRUE(same(read(b), want)) << "host to " << name(to);
      for (im::kind from : kinds()) {
        const im::buffer a = make(data.size(), from);
        write(a, data);
        write(b, old);
        im::copy_2d_async({im::at(b, s.destination), s.destination_pitch},
                          {im::at(a, s.source), s.source_pitch}, size)
            .wait();
        EXPECT_TRUE(same(read(b), want)) << name(from) << " to " << name(to);
        bytes got = old;
        im::copy_2d({std::span(got).subspan(s.destination), s.destination_pitch},
                    {im::at(a, s.source), s.source_pitch}, size);
        EXPECT_TRUE(same(got, want)) << name(from) << " to host";
      }
    }
  }
}

TEST_P(rows, bad_shapes_are_refused) {
  const im::buffer buffer = make(1000, kinds().front());
  const bytes data(1000);
  const isthmus_endpoint_t to{buffer.get(), nullptr, 0};
  const isthmus_endpoint_t from{nullptr, const_cast<std::byte*>(data.data()), 0};
  const auto attempt = [&](std::size_t to_pitch, std::size_t from_pitch, std::size_t width,
                           std::size_t height) {
    return isthmus_copy_2d(queue_.get(), &to, to_pitch, &from, from_pitch, width, height, nullptr,
                           nullptr);
  };
  EXPECT_TRUE(refused(attempt(9, 10, 10, 2), ISTHMUS_ERROR_INVALID_ARGUMENT, {"9", "10"}));
  EXPECT_TRUE(refused(attempt(10, 9, 10, 2), ISTHMUS_ERROR_INVALID_ARGUMENT, {"9", "10"}));
  EXPECT_TRUE(refused(attempt(100, 100, 100, 11), ISTHMUS_ERROR_OUT_OF_RANGE, {"1000"}));
  EXPECT_TRUE(refused(attempt(1000, 100, 1, 2), ISTHMUS_ERROR_OUT_OF_RANGE, {"1000"}));
  EXPECT_TRUE(refused(attempt(SIZE_MAX / 2, 100, 1, 4), ISTHMUS_ERROR_OUT_OF_RANGE));
  EXPECT_TRUE(refused(attempt(SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX), ISTHMUS_ERROR_OUT_OF_RANGE));
  EXPECT_TRUE(refused(attempt(std::size_t{1} << 62, 10, 1, 5), ISTHMUS_ERROR_OUT_OF_RANGE));
}

class filling : public on_backend {
 protected:
  template <class T>
  void expect_filled(im::kind kind, const T& pattern) {
    for (std::size_t count : {0u, 1u, 3u, 1000u}) {
      const bytes old = noise(16 + count * sizeof(T) + 16);
      const im::buffer buffer = make(old.size(), kind);
      write(buffer, old);
      im::fill(buffer.slice(16, count * sizeof(T)), pattern);
      bytes want = old;
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(want.data() + 16 + i * sizeof(T), &pattern, sizeof(T));
      }
      EXPECT_TRUE(same(read(buffer), want)) << name(kind) << ' ' << sizeof(T) << " x " << count;
    }
  }
};
INSTANTIATE_ON_BACKENDS(filling);

struct sixteen {
  std::uint64_t a = 0x0123456789abcdef, b = 0xfedcba9876543210;
};

TEST_P(filling, with_every_pattern) {
  for (im::kind kind : kinds()) {
    expect_filled(kind, std::byte{0});
    expect_filled(kind, std::uint8_t{0xa5});
    expect_filled(kind, std::uint16_t{0x1234});
    expect_filled(kind, 1.5f);
    expect_filled(kind, std::uint64_t{0x123456789abcdef0});
    expect_filled(kind, sixteen{});
  }
}

TEST_P(filling, asynchronously_keeps_a_copy_of_the_pattern) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(1 << 20, kind);
    auto pattern = std::make_unique<std::uint32_t>(0xdeadbeefu);
    const im::event done = im::fill_async(buffer, *pattern);
    *pattern = 0;
    done.wait();
    const bytes got = read(buffer);
    std::uint32_t last = 0;
    std::memcpy(&last, got.data() + got.size() - 4, 4);
    EXPECT_EQ(last, 0xdeadbeefu);
  }
}

TEST_P(filling, off_its_natural_alignment) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(101, kind);
    const bytes old = noise(101);
    write(buffer, old);
    const isthmus_endpoint_t place{buffer.get(), nullptr, 3};
    const std::uint64_t pattern = 0x1122334455667788;
    const isthmus_status_t code =
        isthmus_fill(queue_.get(), &place, &pattern, 8, 96, nullptr, nullptr);
    ASSERT_EQ(code, ISTHMUS_OK) << isthmus_error_message();
    bytes want = old;
    for (std::size_t i = 0; i < 12; ++i) std::memcpy(want.data() + 3 + 8 * i, &pattern, 8);
    EXPECT_TRUE(same(read(buffer), want));
  }
}

TEST_P(filling, bad_patterns_and_ranges_are_refused) {
  const im::buffer buffer = make(100, kinds().front());
  const isthmus_endpoint_t place{buffer.get(), nullptr, 0};
  const sixteen pattern;
  const auto attempt = [&](std::size_t pattern_bytes, std::size_t nbytes) {
    return isthmus_fill(queue_.get(), &place, &pattern, pattern_bytes, nbytes, nullptr, nullptr);
  };
  for (std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{12}, std::size_t{32}}) {
    EXPECT_TRUE(refused(attempt(size, 96), ISTHMUS_ERROR_INVALID_ARGUMENT, {std::to_string(size)}));
  }
  EXPECT_TRUE(refused(attempt(8, 99), ISTHMUS_ERROR_INVALID_ARGUMENT, {"99", "8"}));
  EXPECT_TRUE(refused(attempt(4, 104), ISTHMUS_ERROR_OUT_OF_RANGE, {"104", "100"}));
  EXPECT_TRUE(refused(attempt(1, std::size_t{1} << 62), ISTHMUS_ERROR_OUT_OF_RANGE, {"100"}));
  EXPECT_TRUE(refused(isthmus_fill(queue_.get(), &place, nullptr, 1, 100, nullptr, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT));
}

class hints : public on_backend {};
INSTANTIATE_ON_BACKENDS(hints);

TEST_P(hints, prefetch_changes_no_bytes) {
  const im::kind kind = device_.offers(im::kind::shared) ? im::kind::shared : kinds().front();
  const im::buffer buffer = make(100000, kind);
  const bytes data = noise(100000);
  write(buffer, data);
  if (!can(im::capability::prefetch)) {
    EXPECT_TRUE(throws(im::status::unsupported, [&] { im::prefetch(buffer); }));
    return;
  }
  im::prefetch(buffer);
  im::prefetch_async(im::at(buffer, 5000), im::prefetch_to::host).wait();
  EXPECT_TRUE(same(read(buffer), data));
  const isthmus_endpoint_t place{buffer.get(), nullptr, 0};
  EXPECT_TRUE(refused(isthmus_prefetch(queue_.get(), &place, 100001, 0, nullptr, nullptr),
                      ISTHMUS_ERROR_OUT_OF_RANGE, {"100001", "100000"}));
}

TEST_P(hints, advice_changes_no_bytes) {
  const im::buffer buffer = make(1000, kinds().front());
  const bytes data = noise(1000);
  write(buffer, data);
  if (!can(im::capability::advise)) {
    EXPECT_TRUE(throws(im::status::unsupported, [&] { im::advise(buffer, 0); }));
  } else {
    im::advise(buffer, 0);
  }
  EXPECT_TRUE(same(read(buffer), data));
}

TEST_P(hints, nothing_to_move_is_no_error) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(100, kind);
    const im::buffer none = buffer.slice(50, 0);
    im::fill(none, std::byte{1});
    im::fill_async(none, std::byte{1}).wait();
    if (can(im::capability::prefetch)) im::prefetch(none);
    if (can(im::capability::advise)) im::advise(none, 0);
    im::copy_async(none, buffer.slice(100, 0)).wait();
    const isthmus_endpoint_t nowhere{nullptr, nullptr, 1341};
    const isthmus_endpoint_t here{buffer.get(), nullptr, 50};
    EXPECT_EQ(isthmus_copy(nullptr, &here, &nowhere, 0, nullptr, nullptr), ISTHMUS_OK);
    EXPECT_TRUE(same(read(buffer.slice(0, 0)), bytes{}));
  }
}

}  // namespace
