// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.hpp"

#include <algorithm>

#include "memory/adaptors/tracking_resource.hpp"

namespace isthmus {
namespace {

void add(const std::vector<BlockRecord>& live, std::vector<Holder>& holders) {
  for (const auto& each : live) {
    auto found = std::find_if(holders.begin(), holders.end(),
                              [&](const Holder& candidate) { return candidate.tag == each.tag; });
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

std::string describe_holders(const Snapshot& snapshot) {
  std::string text;
  for (std::size_t index = 0; index < snapshot.holder_count; ++index) {
    const auto& holder = snapshot.holders.at(index);
    text += fmt::format("{}{} has {}", text.empty() ? "; of the live memory, " : ", ",
                        holder.tag != nullptr ? holder.tag : "no tag",
                        describe_blocks(holder.bytes, holder.count));
  }
  return text;
}

}  // namespace isthmus
