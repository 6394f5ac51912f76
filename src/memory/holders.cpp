// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.hpp"

#include <algorithm>

#include "memory/adaptors/tracking_resource.hpp"

namespace isthmus {
namespace {

void add(const std::vector<block_note>& live, std::vector<holder>& to) {
  for (const auto& each : live) {
    auto found =
        std::find_if(to.begin(), to.end(), [&](const holder& one) { return one.tag == each.tag; });
    if (found == to.end()) {
      found = to.insert(found, {each.tag, 0, 0});
    }
    found->bytes += each.nbytes;
    ++found->count;
  }
}

}  // namespace

void find_holders(const memory_resource& base, snapshot& into) noexcept try {
  std::vector<holder> found;
  tracking_resource::visit_over(base, [&](tracking_resource& each) { add(each.all(), found); });
  const auto count = std::min(found.size(), into.holders.size());
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(found.begin(), end, found.end(),
                    [](const holder& a, const holder& b) { return a.bytes > b.bytes; });
  std::copy(found.begin(), end, into.holders.begin());
  into.holder_count = count;
} catch (const std::bad_alloc&) {
  into.holder_count = 0;
}

std::string describe_holders(const snapshot& seen) {
  std::string text;
  for (std::size_t each = 0; each < seen.holder_count; ++each) {
    const auto& of = seen.holders.at(each);
    text += fmt::format("{}{} has {}", text.empty() ? "; of the live memory, " : ", ",
                        of.tag != nullptr ? of.tag : "no tag", describe_blocks(of.bytes, of.count));
  }
  return text;
}

}  // namespace isthmus
