// SPDX-License-Identifier: Apache-2.0
#include "tracking/take_all.hpp"

#include <vector>

#include "os/process.hpp"
#include "tracking/page_memory.hpp"

namespace isthmus::tracking {

void take_all(std::span<const TrackedMemory::Taking> requests) {
  const auto is_kernel_scan = [](const TrackedMemory::Taking& one) {
    return one.memory->mechanism() == TrackingMechanism::pages && !os::is_forked_child();
  };
  std::vector<TrackedMemory::Taking> together;
  for (const auto& one : requests) {
    if (is_kernel_scan(one)) {
      together.push_back(one);
    } else {
      one.memory->take(*one.written);
    }
  }
  if (!together.empty()) {
    PageMemory::take_all(together);
  }
}

}  // namespace isthmus::tracking
