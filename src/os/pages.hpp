// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sizes of the host's pages. Thread-safe.

#include <cstddef>

#include "core/sizes.hpp"

namespace isthmus::os {

[[nodiscard]] std::size_t page_size() noexcept;
inline constexpr std::size_t k_huge_page = std::size_t{2} << 20;

// Whether a range consists of whole pages of that size.
[[nodiscard]] inline bool are_whole_pages(const void* start, std::size_t nbytes,
                                          std::size_t page = page_size()) noexcept {
  return address(start) % page == 0 && nbytes % page == 0;
}

}  // namespace isthmus::os
