// SPDX-License-Identifier: Apache-2.0
#include "memory/base/holders.hpp"

#include <algorithm>
#include <atomic>
#include <new>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

std::atomic<HolderCount> holder_count_function{nullptr};

}  // namespace

void set_holder_count(HolderCount function) noexcept {
  holder_count_function.store(function, std::memory_order_release);
}

void find_holders(const MemoryResource& base, Snapshot& out) noexcept try {
  std::vector<Holder> found;
  if (const auto count_holders = holder_count_function.load(std::memory_order_acquire)) {
    count_holders(base, found);
  }
  const auto count = std::min(found.size(), out.holders.size());
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(found.begin(), end, found.end(),
                    [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  std::copy(found.begin(), end, out.holders.begin());
  out.holder_count = count;
} catch (const std::bad_alloc&) {
  out.holder_count = 0;
}

std::string describe_blocks(std::size_t nbytes, std::size_t count) {
  return fmt::format("{} in {} block{}", describe_bytes(nbytes), count, count == 1 ? "" : "s");
}

std::string describe_holders(const Snapshot& snapshot) {
  std::string text;
  for (std::size_t index = 0; index < snapshot.holder_count; ++index) {
    const auto& holder = snapshot.holders.at(index);
    text += fmt::format("{}{} has {}", text.empty() ? "of the live memory, " : ", ",
                        holder.tag != nullptr ? holder.tag : "no tag",
                        describe_blocks(holder.bytes, holder.count));
  }
  return text;
}

}  // namespace isthmus
