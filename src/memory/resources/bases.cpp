// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/bases.hpp"

namespace isthmus {

void Bases::collect(std::vector<MemoryResource*>& out) const {
  for (auto* each : all_) {
    each->collect_bases(out);
  }
}

MemoryResource::MemoryUsage Bases::usage() const noexcept {
  MemoryResource::MemoryUsage sum;
  for (auto* each : all_) {
    sum += each->usage();
  }
  return sum;
}

std::size_t Bases::held_except(const MemoryResource& excluded) const noexcept {
  std::size_t sum = 0;
  for (auto* each : all_) {
    sum += each == &excluded ? 0 : each->usage().held_bytes;
  }
  return sum;
}

std::size_t Bases::trim(std::size_t keep) const noexcept {
  std::size_t released = 0;
  for (auto each = all_.rbegin(); each != all_.rend(); ++each) {
    const auto other_bytes = held_except(**each);
    released += (*each)->trim(keep - std::min(keep, other_bytes));
  }
  return released;
}

}  // namespace isthmus
