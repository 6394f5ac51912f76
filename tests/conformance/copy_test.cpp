// SPDX-License-Identifier: Apache-2.0
// Copies in every direction between host memory and all kinds, blocking and asynchronous.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

struct span_of_copy {
  std::size_t destination, source, nbytes;
};
// Aligned, unaligned at either end, empty, across pages, and large enough for the driver's own
// methods.
constexpr span_of_copy k_spans[] = {{0, 0, 64},         {0, 0, 0},      {1, 0, 63},
                                    {0, 3, 61},         {7, 13, 100},   {100, 50, 4096},
                                    {4095, 4097, 8192}, {5, 1, 262139}, {0, 0, (1u << 20) + 3}};

class copying : public on_backend {
 protected:
  static bytes spliced(bytes into, const bytes& from, const span_of_copy& at) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at.source), at.nbytes,
                into.begin() + static_cast<std::ptrdiff_t>(at.destination));
    return into;
  }
  static std::span<const std::byte> from(const bytes& all, std::size_t offset) {
    return std::span(all).subspan(offset);
  }
};
INSTANTIATE_ON_BACKENDS(copying);

TEST_P(copying, from_the_host) {
  for (im::kind kind : kinds()) {
    for (const span_of_copy& at : k_spans) {
      const bytes old = noise(at.destination + at.nbytes + 11, 1);
      const bytes data = noise(at.source + at.nbytes + 5, 2);
      const im::buffer buffer = make(old.size(), kind);
      write(buffer, old);
      im::copy_bytes(im::at(buffer, at.destination), from(data, at.source), at.nbytes);
      EXPECT_TRUE(same(read(buffer), spliced(old, data, at))) << name(kind) << ' ' << at.nbytes;
    }
  }
}

TEST_P(copying, to_the_host) {
  for (im::kind kind : kinds()) {
    for (const span_of_copy& at : k_spans) {
      const bytes data = noise(at.source + at.nbytes + 5, 2);
      const im::buffer buffer = make(data.size(), kind);
      write(buffer, data);
      bytes got = noise(at.destination + at.nbytes + 11, 1);
      const bytes want = spliced(got, data, at);
      im::copy_bytes(std::span(got).subspan(at.destination), im::at(buffer, at.source), at.nbytes);
      EXPECT_TRUE(same(got, want)) << name(kind) << ' ' << at.nbytes;
    }
  }
}

TEST_P(copying, between_all_kinds) {
  for (im::kind to : kinds()) {
    for (im::kind source : kinds()) {
      for (const span_of_copy& at : k_spans) {
        const bytes old = noise(at.destination + at.nbytes + 11, 1);
        const bytes data = noise(at.source + at.nbytes + 5, 2);
        const im::buffer a = make(data.size(), source);
        const im::buffer b = make(old.size(), to);
        write(a, data);
        write(b, old);
        im::copy_bytes(im::at(b, at.destination), im::at(a, at.source), at.nbytes);
        EXPECT_TRUE(same(read(b), spliced(old, data, at)))
            << name(source) << " to " << name(to) << ' ' << at.nbytes;
      }
    }
  }
}

TEST_P(copying, asynchronously) {
  for (im::kind to : kinds()) {
    for (im::kind source : kinds()) {
      const bytes data = noise(300001);
      const im::buffer a = make(data.size(), source);
      const im::buffer b = make(data.size(), to);
      bytes got(data.size());
      const im::event sent = im::copy_async(a, std::span(data));
      const im::event moved = im::copy_async(b, a);
      const im::event back = im::copy_async(std::span(got), b);
      back.wait();
      EXPECT_TRUE(sent.done() && moved.done());
      EXPECT_EQ(sent.status(), im::status::ok);
      EXPECT_TRUE(same(got, data)) << name(source) << " to " << name(to);
    }
  }
}

TEST_P(copying, within_one_buffer) {
  for (im::kind kind : kinds()) {
    bytes data = noise(10000);
    const im::buffer buffer = make(data.size(), kind);
    write(buffer, data);
    im::copy_bytes(im::at(buffer, 6000), im::at(buffer, 100), 4000);
    std::copy_n(data.begin() + 100, 4000, data.begin() + 6000);
    EXPECT_TRUE(same(read(buffer), data));
  }
}

TEST_P(copying, overlapping_ranges_are_refused) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(1000, kind);
    const bytes data = noise(1000);
    write(buffer, data);
    EXPECT_TRUE(throws(im::status::invalid_argument,
                       [&] { im::copy_bytes(im::at(buffer, 100), buffer, 101); }));
    EXPECT_TRUE(throws(im::status::invalid_argument, [&] {
      im::copy_bytes(im::at(buffer.slice(100, 900), 0), buffer.slice(0, 500), 101);
    }));
    im::copy_bytes(im::at(buffer, 100), buffer, 100);  // adjacent ranges do not overlap
    bytes want = data;
    std::copy_n(data.begin(), 100, want.begin() + 100);
    EXPECT_TRUE(same(read(buffer), want));
  }
}

TEST_P(copying, raw_usm_pointers_are_places_too) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(100, kind);
    const bytes data = noise(100);
    write(buffer, data);
    const isthmus_endpoint_t there{nullptr, buffer.pointer(), 10};
    bytes got(50);
    const isthmus_endpoint_t here{nullptr, got.data(), 0};
    ASSERT_EQ(isthmus_copy(queue_.get(), &here, &there, 50, nullptr, nullptr), ISTHMUS_OK)
        << isthmus_error_message();
    EXPECT_TRUE(same(got, std::span(data).subspan(10, 50)));
    EXPECT_TRUE(refused(isthmus_copy(queue_.get(), &here, &there, 91, nullptr, nullptr),
                        ISTHMUS_ERROR_OUT_OF_RANGE));
  }
}

TEST_P(copying, between_host_places_is_a_plain_copy) {
  const bytes data = noise(5000);
  bytes got(5000);
  im::copy(std::span(got), std::span(data));
  EXPECT_TRUE(same(got, data));
  std::fill(got.begin(), got.end(), std::byte{0});
  im::copy_async(std::span(got), std::span(data)).wait();
  EXPECT_TRUE(same(got, data));
}

TEST_P(copying, keeps_its_owners_until_the_end) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(1 << 20, kind);
    auto data = std::make_shared<bytes>(noise(1 << 20));
    const bytes want = *data;
    const std::weak_ptr<bytes> seen = data;
    const std::span<const std::byte> source(*data);
    const im::event done = im::copy_async(buffer, source, {.keep = im::keep(std::move(data))});
    done.wait();
    for (int i = 0; i < 10'000 && !seen.expired(); ++i) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(seen.expired());
    EXPECT_TRUE(same(read(buffer), want));
  }
}

// No caller waits for this copy, and a later copy replaces it in all lists of pending operations.
TEST_P(copying, releases_its_owners_without_a_wait) {
  const im::buffer buffer = make(1 << 16, kinds().front());
  auto data = std::make_shared<bytes>(noise(1 << 16));
  const std::weak_ptr<bytes> seen = data;
  const std::span<const std::byte> source(*data);
  (void)im::copy_async(buffer, source, {.keep = im::keep(std::move(data))});
  const bytes last = noise(1 << 16);
  im::copy_async(buffer, std::span<const std::byte>(last)).wait();
  for (int i = 0; i < 10'000 && !seen.expired(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(seen.expired());
}

TEST_P(copying, releases_its_owners_on_failure) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = owned;
  const im::buffer buffer = make(10, kinds().front());
  const bytes data(100);
  const isthmus_endpoint_t to{buffer.get(), nullptr, 0};
  const isthmus_endpoint_t source{nullptr, const_cast<std::byte*>(data.data()), 0};
  std::vector<isthmus_owner_t> owners = im::keep(std::move(owned)).detach();
  isthmus_operation_t how{};
  how.struct_size = sizeof how;
  how.owners = owners.data();
  how.owner_count = owners.size();
  EXPECT_TRUE(refused(isthmus_copy(queue_.get(), &to, &source, 100, &how, nullptr),
                      ISTHMUS_ERROR_OUT_OF_RANGE, {"100", "10"}));
  EXPECT_TRUE(seen.expired());
}

TEST_P(copying, to_unaligned_host_memory) {
  if (kinds().empty()) return;
  // Copied in chunks by several threads.
  for (const std::size_t nbytes : {(9u << 20) + 5, (17u << 20) + 5}) {
    const bytes data = noise(nbytes);
    for (im::kind kind : kinds()) {
      const im::buffer buffer = make(nbytes, kind);
      write(buffer, data);
      for (std::size_t shift : {1u, 16u, 31u}) {
        bytes got(nbytes + 64);
        im::copy(std::span(got).subspan(shift, nbytes), buffer);
        EXPECT_TRUE(same(std::span(got).subspan(shift, nbytes), data)) << shift;
        EXPECT_EQ(got[shift - 1], std::byte{0});
        EXPECT_EQ(got[shift + nbytes], std::byte{0});
      }
    }
  }
}

TEST_P(copying, to_result_memory) {
  const im::buffer buffer = make(3 << 20, kinds().front());
  const bytes data = noise(3 << 20);
  write(buffer, data);
  for (int i = 0; i < 3; ++i) {  // from the second iteration on, the memory is reused
    const im::result_memory result(data.size());
    im::copy(result.span(), buffer);
    EXPECT_TRUE(same(result.span(), data));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(result.data()) % 4096, 0u);
  }
  EXPECT_EQ(im::result_memory(0).span().size(), 0u);
}

TEST_P(copying, rows_longer_than_a_piece_between_two_contexts) {
  const im::device elsewhere = im::sim_device("");
  const std::size_t width = (5u << 20) + 7;
  const std::size_t pitch = width + 100;
  const im::buffer from = make(2 * pitch, kinds().front());
  const im::buffer to(2 * pitch, im::kind::device, {.queue = im::queue(elsewhere)});
  const bytes data = noise(2 * pitch);
  write(from, data);
  im::fill(to, std::byte{0});
  im::copy_2d({to, pitch}, {from, pitch}, {.width = width, .height = 2});
  const bytes got = read(to);
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT_TRUE(same(std::span(got).subspan(row * pitch, width),
                     std::span(data).subspan(row * pitch, width)));
  }
  EXPECT_EQ(got[width], std::byte{0});
}

}  // namespace
