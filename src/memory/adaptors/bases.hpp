// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base resources of a resource that stands on several, each once, and their sums.

#include "memory/memory_resource.hpp"

namespace isthmus {

class Bases {
 public:
  // Adds those of `upstream`, which the owner keeps alive.
  void add(MemoryResource& upstream) { upstream.collect_bases(all_); }
  void collect(std::vector<MemoryResource*>& out) const;

  [[nodiscard]] MemoryResource::MemoryUsage usage() const noexcept;
  // Trims the last added first. Each may keep what the current holdings of the others leave of
  // `keep`.
  std::size_t trim(std::size_t keep) const noexcept;

 private:
  [[nodiscard]] std::size_t held_by_others(const MemoryResource& than) const noexcept;

  std::vector<MemoryResource*> all_;
};

}  // namespace isthmus
