// SPDX-License-Identifier: Apache-2.0
// Tracked memory for tests, and helpers that write to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "os/virtual_memory.hpp"
#include "tracking/creation.hpp"
#include "tracking/page_support.hpp"
#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

constexpr std::size_t k_kib = 1024, k_mib = 1024 * k_kib;

using bytes = std::vector<std::byte>;

// Reports where two byte strings first differ, rather than printing all bytes.
inline testing::AssertionResult same(std::span<const std::byte> got,
                                     std::span<const std::byte> want) {
  if (got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size()) == 0) {
    return testing::AssertionSuccess();
  }
  const auto one = std::mismatch(got.begin(), got.end(), want.begin(), want.end()).first;
  return testing::AssertionFailure() << "they differ from byte " << one - got.begin() << " on";
}

inline void fill_with_noise(std::byte* at, std::size_t nbytes, std::mt19937_64& random) {
  for (std::size_t done = 0; done < nbytes; done += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(at + done, &word, std::min(nbytes - done, sizeof word));
  }
}

using memory_pointer = std::unique_ptr<TrackedMemory>;

inline memory_pointer make_tracked(const Request& wanted) {
  auto memory = create_memory(wanted);
  if (!memory) {
    ADD_FAILURE() << memory.failure().message();
    return nullptr;
  }
  return std::move(*memory);
}

// Skips its tests where the kernel cannot report written pages.
class with_pages : public testing::Test {
 protected:
  void SetUp() override {
    if (auto supported = pages_are_reported(); !supported) {
      GTEST_SKIP() << supported.failure().message();
    }
  }
  static memory_pointer make(std::size_t nbytes, Granularity granularity = Granularity::automatic) {
    return make_tracked({nbytes, granularity, TrackingMechanism::pages});
  }
};

inline RangeSet taken(TrackedMemory& from) {
  RangeSet found;
  from.take(found);
  return found;
}

inline void write(const TrackedMemory& to, const ByteRange& range, int value = 1) {
  std::memset(to.view() + range.begin, value, range.nbytes());
}

// Extends the range to whole granules, up to the end of the memory.
inline ByteRange granules(const TrackedMemory& of, const ByteRange& range, std::size_t granule) {
  return {range.begin / granule * granule,
          std::min(of.nbytes(), (range.end + granule - 1) / granule * granule)};
}

}  // namespace isthmus::tracking
