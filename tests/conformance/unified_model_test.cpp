// SPDX-License-Identifier: Apache-2.0
// Random operations on a unified buffer against a plain array: either side reads what was written
// last, by either side, and only ranges that were written are ever dirty.
#include "support/unified.hpp"

namespace {

using namespace support;

class unified_model : public on_unified {};
ISTHMUS_ON_UNIFIED(unified_model);

class model {
 public:
  model(unified it, unsigned seed)
      : it_(std::move(it)), truth_(it_.size()), random_(seed), kept_(it_.host()) {}

  void step() {
    switch (random_() % 9) {
      case 0: return write_by_new_view();
      case 1: return write_by_old_view();
      case 2: return write_exactly();
      case 3: return write_on_device();
      case 4: return read_host();
      case 5: return read_device();
      case 6: return it_.sync_to_device(some());
      case 7: return it_.sync_to_host(some());
      default: return look();
    }
  }
  void finish() {
    EXPECT_TRUE(same(it_.host_read(), truth_));
    EXPECT_TRUE(same(read(it_.device()), truth_));
    EXPECT_EQ(it_.state(), im::unified_state::synchronized);
    EXPECT_TRUE(same(kept_.span(), truth_)) << "by the old view";
  }

 private:
  im::element_range some() {
    const auto size = truth_.size();
    const auto begin = random_() % size;
    const auto longest = random_() % 4 == 0 ? size : std::min<std::size_t>(size, 9000);
    return {begin, std::min(size, begin + 1 + random_() % longest)};
  }
  bytes fresh(im::element_range range) {
    bytes data = noise(range.end - range.begin, static_cast<unsigned>(random_()));
    std::copy(data.begin(), data.end(), truth_.begin() + static_cast<std::ptrdiff_t>(range.begin));
    return data;
  }
  std::span<const std::byte> expected(im::element_range range) const {
    return std::span(truth_).subspan(range.begin, range.end - range.begin);
  }
  // Granules are reported as written as a whole, so newer bytes of the device in them are fetched
  // first.
  im::element_range widened(im::element_range range) const {
    constexpr std::size_t k_granule = 2 * k_mib;
    const auto first = range.begin / k_granule * k_granule;
    return {first, std::min(truth_.size(), (range.end + k_granule - 1) / k_granule * k_granule)};
  }

  void write_by_new_view() {
    const auto range = some();
    it_.sync_to_host(widened(range));
    const auto view = it_.host(range);
    const auto data = fresh(range);
    std::copy(data.begin(), data.end(), view.begin());
  }
  void write_by_old_view() {
    const auto range = some();
    it_.sync_to_host(widened(range));
    const auto data = fresh(range);
    std::copy(data.begin(), data.end(), kept_.begin() + static_cast<std::ptrdiff_t>(range.begin));
  }
  void write_exactly() {
    const auto range = some();
    it_.host_write(range, [&](std::span<std::byte> part) {
      EXPECT_TRUE(same(part, expected(range)));
      const auto data = fresh(range);
      std::copy(data.begin(), data.end(), part.begin());
    });
  }
  void write_on_device() {
    const auto range = some();
    it_.sync_to_device(widened(range));
    it_.device_write(range, [&](const im::buffer& all) {
      const auto data = fresh(range);
      im::copy(im::at(all, range.begin), std::span(data));
    });
  }
  void read_host() {
    const auto range = some();
    EXPECT_TRUE(same(it_.host_read(range), expected(range)));
  }
  void read_device() {
    const auto range = some();
    bytes got(range.end - range.begin);
    im::copy_bytes(std::span(got), im::at(it_.device(range), range.begin), got.size());
    EXPECT_TRUE(same(got, expected(range)));
  }
  void look() {
    const bool host_owes = !it_.dirty_on_host().empty();
    const bool device_owes = !it_.dirty_on_device().empty();
    const auto now = it_.state();
    if (device_owes) {
      EXPECT_EQ(now, im::unified_state::device_dirty);
    } else if (host_owes) {
      EXPECT_EQ(now, im::unified_state::host_dirty);
    }
  }

  unified it_;
  bytes truth_;
  std::mt19937_64 random_;
  im::unified_view<std::byte> kept_;
};

TEST_P(unified_model, random_operations) {
  const std::size_t sizes[] = {100, 5000, 66'000, 200'000, 4 * k_mib + 4097};
  for (const std::size_t nbytes : sizes) {
    const unsigned seeds = nbytes > k_mib || k_slower > 1 ? 1 : 4;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(std::to_string(nbytes) + " bytes, seed " + std::to_string(seed));
      model run(make(nbytes), seed);
      for (int i = 0; i < 150 && !HasFailure(); ++i) run.step();
      run.finish();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
