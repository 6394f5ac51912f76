// SPDX-License-Identifier: Apache-2.0
#pragma once
// Remembers the contents of one small page of each huge page, to estimate whether the writes to the
// huge page since then were dense. A sample takes about 1 us, if the page is not cached. Other
// threads may write the memory meanwhile. Not thread-safe otherwise.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/range_set.hpp"

namespace isthmus::tracking {

class PageSamples {
 public:
  // The memory has `nbytes` bytes, consists of whole huge pages, and is zeroed. Throws
  // std::bad_alloc.
  explicit PageSamples(std::size_t nbytes);
  // Returns whether the remembered small page of this huge page has changed. Remembers another one,
  // chosen at random. `memory` is the beginning of the memory.
  [[nodiscard]] bool take(std::size_t chunk, const std::byte* memory) noexcept;
  // The library wrote this range, which therefore does not count as changed.
  void refresh(const ByteRange& range, const std::byte* memory) noexcept;

 private:
  // Returns a small page of this huge page in which the memory has bytes.
  [[nodiscard]] std::uint16_t random_page(std::size_t chunk) noexcept;
  [[nodiscard]] ByteRange page_of(std::size_t chunk) const noexcept;
  [[nodiscard]] std::byte* contents_of(std::size_t chunk) noexcept;

  const std::size_t nbytes_;
  std::vector<std::byte> contents_;    // a small page for each chunk
  std::vector<std::uint16_t> chosen_;  // which small page of the chunk it is
  std::uint64_t random_ = 1;
};

}  // namespace isthmus::tracking
