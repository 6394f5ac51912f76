// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base resources of a resource that stands on several, each once, and their sums.

#include "memory/memory_resource.hpp"

namespace isthmus {

class bases {
 public:
  // Adds those of `upstream`, which the owner keeps alive.
  void add(memory_resource& upstream) { upstream.collect_bases(all_); }
  void collect(std::vector<memory_resource*>& out) const;

  [[nodiscard]] memory_resource::memory_usage usage() const noexcept;
  // Trims the last added first. Each may keep what the current holdings of the others leave of
  // `keep`.
  std::size_t trim(std::size_t keep) const noexcept;

 private:
  [[nodiscard]] std::size_t held_by_others(const memory_resource& than) const noexcept;

  std::vector<memory_resource*> all_;
};

}  // namespace isthmus
