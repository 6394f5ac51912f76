// SPDX-License-Identifier: Apache-2.0
// Writes the report of live blocks, grouped by the stack and tag of their allocation.

#include <algorithm>
#include <map>

#include "core/sizes.hpp"
#include "memory/resources/tracking_resource.hpp"

namespace isthmus {
namespace {

struct Group {
  std::size_t nbytes = 0;
  std::size_t count = 0;
  BlockRecord oldest;
};

using Groups = std::vector<Group>;

Groups grouped(const std::vector<BlockRecord>& live) {
  std::map<std::pair<const void*, const char*>, Group> by_origin;
  for (const auto& each : live) {
    auto& group = by_origin[{each.stack, each.tag}];
    group.oldest = group.count == 0 ? each : group.oldest;
    group.nbytes += each.nbytes;
    ++group.count;
  }
  Groups all;
  for (const auto& [origin, each] : by_origin) {
    all.push_back(each);
  }
  std::sort(all.begin(), all.end(), [](const Group& a, const Group& b) {
    return a.nbytes != b.nbytes ? a.nbytes > b.nbytes : a.oldest.order < b.oldest.order;
  });
  return all;
}

std::string indented(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    out += fmt::format("    {}\n", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

}  // namespace

std::string TrackingResource::report() {
  const auto blocks = live();
  std::size_t sum = 0;
  for (const auto& each : blocks) {
    sum += each.nbytes;
  }
  auto text =
      fmt::format("{} of {} memory on {} are live{}\n", describe_blocks(sum, blocks.size()),
                  kind_name(kind()), device().properties().filter, blocks.empty() ? "" : ":");
  for (const auto& each : grouped(blocks)) {
    const auto& oldest = each.oldest;
    text += fmt::format(
        "{}{}{}, the oldest {} at {} of thread {}\n", describe_blocks(each.nbytes, each.count),
        oldest.tag != nullptr ? ", tag " : "", oldest.tag != nullptr ? oldest.tag : "",
        describe_bytes(oldest.nbytes), oldest.pointer, oldest.thread);
    if (const auto* stack = stack_of(oldest)) {
      text += indented(stack->describe());
    }
  }
  return text;
}

}  // namespace isthmus
