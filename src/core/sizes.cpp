#include "core/sizes.hpp"

#include <array>

#include "core/text.hpp"

namespace isthmus {

std::string describe_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    return formatted("{} byte{}", bytes, bytes == 1 ? "" : "s");
  }
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (scaled >= 1024 && unit + 1 < units.size()) {
    scaled /= 1024;
    ++unit;
  }
  return formatted("{:.4g} {} ({} bytes)", scaled, units.at(unit), bytes);
}

}  // namespace isthmus
