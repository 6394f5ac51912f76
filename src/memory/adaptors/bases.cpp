// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/bases.hpp"

namespace isthmus {

void bases::collect(std::vector<memory_resource*>& out) const {
  for (auto* each : all_) {
    each->collect_bases(out);
  }
}

memory_resource::memory_usage bases::usage() const noexcept {
  memory_resource::memory_usage sum;
  for (auto* each : all_) {
    sum += each->usage();
  }
  return sum;
}

std::size_t bases::held_by_others(const memory_resource& than) const noexcept {
  std::size_t sum = 0;
  for (auto* each : all_) {
    sum += each == &than ? 0 : each->usage().held_bytes;
  }
  return sum;
}

std::size_t bases::trim(std::size_t keep) const noexcept {
  std::size_t given_back = 0;
  for (auto each = all_.rbegin(); each != all_.rend(); ++each) {
    const auto others = held_by_others(**each);
    given_back += (*each)->trim(keep - std::min(keep, others));
  }
  return given_back;
}

}  // namespace isthmus
