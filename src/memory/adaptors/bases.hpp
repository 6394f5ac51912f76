// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base resources of a resource that has several upstreams, each once, and their sums. Not
// changed after the owner's construction, so it needs no lock.

#include "memory/memory_resource.hpp"

namespace isthmus {

class Bases {
 public:
  // Adds those of `upstream`, which the owner keeps alive.
  void add(MemoryResource& upstream) { upstream.collect_bases(all_); }
  void collect(std::vector<MemoryResource*>& out) const;

  [[nodiscard]] MemoryResource::MemoryUsage usage() const noexcept;
  // Trims the last added first. Each may hold what the current holdings of the other resources
  // leave of `keep`.
  std::size_t trim(std::size_t keep) const noexcept;

 private:
  [[nodiscard]] std::size_t held_except(const MemoryResource& excluded) const noexcept;

  std::vector<MemoryResource*> all_;
};

}  // namespace isthmus
