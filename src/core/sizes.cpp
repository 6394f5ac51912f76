// SPDX-License-Identifier: Apache-2.0
#include "core/sizes.hpp"

namespace isthmus {

SizeText::SizeText(std::uint64_t bytes) noexcept {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    length_ =
        fmt::format_to_n(text_.data(), text_.size(), "{} byte{}", bytes, bytes == 1 ? "" : "s")
            .size;
    return;
  }
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (scaled >= 1024 && unit + 1 < units.size()) {
    scaled /= 1024;
    ++unit;
  }
  length_ = fmt::format_to_n(text_.data(), text_.size(), "{:.4g} {} ({} bytes)", scaled,
                             units[unit], bytes)
                .size;
}

}  // namespace isthmus
