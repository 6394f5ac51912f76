// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.hpp"

#include <algorithm>

#include "memory/adaptors/tracking_resource.hpp"

namespace isthmus {
namespace {

void add(const std::vector<BlockNote>& live, std::vector<Holder>& holders) {
  for (const auto& each : live) {
    auto found = std::find_if(holders.begin(), holders.end(),
                              [&](const Holder& one) { return one.tag == each.tag; });
    if (found == holders.end()) {
      found = holders.insert(found, {each.tag, 0, 0});
    }
    found->bytes += each.nbytes;
    ++found->count;
  }
}

}  // namespace

void find_holders(const MemoryResource& base, Snapshot& out) noexcept try {
  std::vector<Holder> found;
  TrackingResource::visit_over(base, [&](TrackingResource& each) { add(each.all(), found); });
  const auto count = std::min(found.size(), out.holders.size());
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(found.begin(), end, found.end(),
                    [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  std::copy(found.begin(), end, out.holders.begin());
  out.holder_count = count;
} catch (const std::bad_alloc&) {
  out.holder_count = 0;
}

std::string describe_holders(const Snapshot& seen) {
  std::string text;
  for (std::size_t each = 0; each < seen.holder_count; ++each) {
    const auto& of = seen.holders.at(each);
    text += fmt::format("{}{} has {}", text.empty() ? "; of the live memory, " : ", ",
                        of.tag != nullptr ? of.tag : "no tag", describe_blocks(of.bytes, of.count));
  }
  return text;
}

}  // namespace isthmus
