// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base resources below a resource that has several upstreams, each listed once, and the sums
// over them. Constant after the owner's construction, so no lock is needed.

#include "memory/base/memory_resource.hpp"

namespace isthmus {

class Bases {
 public:
  // Adds the base resources of `upstream`, which the owner keeps alive.
  void add(MemoryResource& upstream) { upstream.collect_bases(all_); }
  void collect(std::vector<MemoryResource*>& out) const;

  [[nodiscard]] MemoryResource::MemoryUsage usage() const noexcept;
  // Trims the base resources in reverse order of their addition. Each may retain `keep` less the
  // bytes that the others hold at that moment. Returns the bytes released.
  std::size_t trim(std::size_t keep) const noexcept;

 private:
  [[nodiscard]] std::size_t held_except(const MemoryResource& excluded) const noexcept;

  std::vector<MemoryResource*> all_;
};

}  // namespace isthmus
