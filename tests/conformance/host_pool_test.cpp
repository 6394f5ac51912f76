// SPDX-License-Identifier: Apache-2.0
// Pools of memory that host and device both access, on every backend: a block made of pieces from
// different addresses behaves like any other.
#include <array>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

constexpr std::size_t k_piece = 2 * k_mib;
constexpr std::size_t k_pieces = 4;

class host_pools : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!device_.offers(im::kind::host)) GTEST_SKIP() << "no memory of host kind";
    pool_ =
        im::resource::pool(queue_.context(), im::kind::host, {.growth_bytes = k_piece}, device_);
  }
  void TearDown() override {
    for (void* each : between_) pool_.deallocate(each, k_piece, 0, queue_);
    pool_ = {};
    on_backend::TearDown();
  }
  // Frees every other block, and allocates one that takes the memory of all of them.
  im::buffer joined() {
    std::vector<void*> gone;
    for (std::size_t i = 0; i < k_pieces; ++i) {
      gone.push_back(pool_.allocate(k_piece, 0, queue_));
      between_.push_back(pool_.allocate(k_piece, 0, queue_));
    }
    for (void* each : gone) pool_.deallocate(each, k_piece, 0, queue_);
    const auto before = pool_.usage().held;
    im::buffer whole(k_pieces * k_piece, im::kind::host, {.queue = queue_, .resource = pool_});
    if (device_.info().backend == "cuda") {
      EXPECT_EQ(pool_.usage().held, before);
    }
    return whole;
  }
  static std::span<std::byte> bytes_of(const im::buffer& memory) {
    return {static_cast<std::byte*>(memory.pointer()), memory.size()};
  }

  im::resource pool_;
  std::vector<void*> between_;
};
INSTANTIATE_ON_BACKENDS(host_pools);

TEST_P(host_pools, coalesced_memory_is_host_memory) {
  const im::buffer whole = joined();
  const bytes data = noise(whole.size());
  std::copy(data.begin(), data.end(), bytes_of(whole).begin());
  EXPECT_TRUE(same(read(whole), data));
  for (std::size_t at = 0; at < whole.size(); at += k_piece / 2 + 1) {
    const im::pointer_info known = im::query(bytes_of(whole).data() + at, queue_.context());
    EXPECT_EQ(known.kind, im::kind::host);
    EXPECT_EQ(known.base, whole.pointer());
  }
}

TEST_P(host_pools, coalesced_memory_is_copied_across_chunk_boundaries) {
  const im::buffer whole = joined();
  const im::buffer there = make(whole.size(), kinds().front());
  const bytes data = noise(whole.size(), 2);
  write(whole, data);
  im::copy_bytes_async(im::at(there, 3), im::at(whole, 5), whole.size() - 9).wait();
  bytes_of(whole)[0] = std::byte{0};
  im::copy_bytes_async(im::at(whole, 5), im::at(there, 3), whole.size() - 9).wait();
  EXPECT_TRUE(same(bytes_of(whole).subspan(5, whole.size() - 9),
                   std::span(data).subspan(5, whole.size() - 9)));
}

TEST_P(host_pools, rows_and_ranges_of_coalesced_memory) {
  const im::buffer whole = joined();
  const im::buffer there = make(whole.size(), kinds().front());
  const bytes data = noise(whole.size(), 3);
  const im::extent size{.width = 1000, .height = whole.size() / 1500 - 1};
  bytes want(size.width * size.height);
  write(whole, data);
  im::copy_2d_async({there, size.width}, {im::at(whole, 7), 1500}, size).wait();
  for (std::size_t y = 0; y < size.height; ++y) {
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(7 + 1500 * y), size.width,
                want.begin() + static_cast<std::ptrdiff_t>(size.width * y));
  }
  const bytes got = read(there);
  EXPECT_TRUE(same(std::span(got).first(want.size()), want));
  std::vector<im::copy_range> ranges;
  for (std::size_t at = 0; at + 3000 < whole.size(); at += 5000) {
    ranges.push_back({whole.size() - at - 3000, at + 1, 2500});
  }
  bytes back = noise(whole.size(), 4);
  write(there, data);
  write(whole, back);
  im::copy_ranges_async(whole, there, ranges).wait();
  for (const im::copy_range& each : ranges) {
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(each.source_offset), each.nbytes,
                back.begin() + static_cast<std::ptrdiff_t>(each.destination_offset));
  }
  EXPECT_TRUE(same(bytes_of(whole), back));
}

TEST_P(host_pools, fills_of_coalesced_memory) {
  const im::buffer whole = joined();
  bytes want = noise(whole.size(), 5);
  write(whole, want);
  const auto expect = [&](std::size_t at, std::size_t count, const auto& value) {
    const im::buffer part = whole.slice(at, count * sizeof value);
    im::fill_async(part, value).wait();
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(want.data() + at + i * sizeof value, &value, sizeof value);
    }
    EXPECT_TRUE(same(bytes_of(whole), want)) << sizeof value << " bytes at " << at;
  };
  expect(k_piece - 3, 6, std::uint8_t{0x11});
  expect(k_piece - 5, 1000, std::uint16_t{0x1234});
  expect(2 * k_piece - 11, 3001, std::uint32_t{0x12345678});
  expect(2 * k_piece - 20, k_piece / 8 + 5, std::uint64_t{0x1122334455667788});
  expect(1, k_pieces * k_piece / 16 - 1,
         std::array<std::uint64_t, 2>{0x0102030405060708, 0x1112131415161718});
}

TEST_P(host_pools, all_memory_is_released) {
  { const im::buffer whole = joined(); }
  for (void* each : between_) pool_.deallocate(each, k_piece, 0, queue_);
  between_.clear();
  EXPECT_TRUE(eventually([&] {
    (void)pool_.trim();
    return pool_.usage().held == 0;
  }));
  void* const again = pool_.allocate(k_piece, 0, queue_);
  std::memset(again, 1, k_piece);
  pool_.deallocate(again, k_piece, 0, queue_);
}

}  // namespace
