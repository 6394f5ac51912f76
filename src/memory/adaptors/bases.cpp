// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/bases.hpp"

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

std::size_t Bases::held_by_others(const MemoryResource& than) const noexcept {
  std::size_t sum = 0;
  for (auto* each : all_) {
    sum += each == &than ? 0 : each->usage().held_bytes;
  }
  return sum;
}

std::size_t Bases::trim(std::size_t keep) const noexcept {
  std::size_t given_back = 0;
  for (auto each = all_.rbegin(); each != all_.rend(); ++each) {
    const auto others = held_by_others(**each);
    given_back += (*each)->trim(keep - std::min(keep, others));
  }
  return given_back;
}

}  // namespace isthmus
