// SPDX-License-Identifier: Apache-2.0
#include "unified/conflict.hpp"

#include <iterator>
#include <string>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_max_named_ranges = 4;

// Returns a text like "0 to 4096, 8192 to 12288 and 3 more".
std::string name_ranges(const RangeSet& ranges) {
  std::string text;
  std::size_t named_ranges = 0;
  for (const auto& range : ranges) {
    if (named_ranges++ == k_max_named_ranges) {
      break;
    }
    fmt::format_to(std::back_inserter(text), "{}{} to {}", text.empty() ? "" : ", ", range.begin,
                   range.end);
  }
  if (ranges.size() > k_max_named_ranges) {
    fmt::format_to(std::back_inserter(text), " and {} more", ranges.size() - k_max_named_ranges);
  }
  return text;
}

}  // namespace

Result<void> check_conflict(const UnifiedCopies& copies, const ByteRange& range) {
  if (copies.state.host_dirty().empty() || copies.state.device_dirty().empty()) {
    return {};
  }
  const auto overlap = copies.state.conflict(range);
  if (overlap.empty()) {
    return {};
  }
  const auto granule = copies.host ? copies.host->granule_of(overlap) : 1;
  return fail(ISTHMUS_ERROR_CONFLICT,
              "host and device both wrote bytes {} of a unified buffer: call resolve() for the "
              "host or the device, create the buffer with a winner, or keep the two from writing "
              "the same bytes ({} bytes, detected in granules of {}{})",
              name_ranges(overlap), overlap.nbytes(), describe_bytes(granule),
              granule > 1 ? "; the host may have written other bytes of the same granule" : "");
}

}  // namespace isthmus
