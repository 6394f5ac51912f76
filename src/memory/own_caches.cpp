#include "memory/own_caches.hpp"

#include <algorithm>

#include "core/sizes.hpp"
#include "memory/slab.hpp"

namespace isthmus {

own_caches::own_caches(const pool& of, queue_slots& slots, const central_lists& central) noexcept
    : pool_{of}, slots_{slots}, central_{central}, count_{lane::find_own(of, lanes_)} {
  const auto lanes = all();
  const auto last = std::max_element(lanes.begin(), lanes.end(), [](const lane* a, const lane* b) {
    return a->found_at < b->found_at;
  });
  last_ = last != lanes.end() ? *last : nullptr;
}

template <class Visit>
void own_caches::visit(Visit&& visit) const noexcept {
  for (auto* const each : all()) {
    const lane::hold held{*each};
    if (held && each->owner.load(k_relaxed) == &pool_) {
      visit(*each);
    }
  }
}

// As of what it puts back, which waits for the next fence of its queue.
readiness own_caches::of_lane(const lane& mine) const noexcept {
  const auto slot = mine.slot;
  return slot == queue_slots::k_quiet || slots_.is_idle(slot) ? readiness::anybody
         : slot == whom()                                     ? readiness::in_order
                                                              : readiness::none;
}

readiness own_caches::of_run(std::uint32_t first) const noexcept {
  auto found = readiness::none;
  visit([&](const lane& each) {
    if (std::any_of(each.runs.begin(), each.runs.end(), [first](const lane::run& run) {
          return run.count != 0 && run.first == first;
        })) {
      found = of_lane(each);
    }
  });
  return found;
}

std::uint32_t own_caches::blocks_for(const slab& owner, unsigned size_class,
                                     const lane& mine) const noexcept {
  const auto& bin = mine.bins.at(size_class);
  const auto nbytes = std::size_t{owner.blocks} * owner.block_bytes;
  const auto found = std::count_if(
      bin.blocks.begin(), bin.blocks.begin() + bin.count,
      [&](const void* block) { return address(block) - address(owner.address_of(0)) < nbytes; });
  return found == 0 || central_.would_keep(size_class, bin.count, mine.shard)
             ? 0
             : static_cast<std::uint32_t>(found);
}

// While a lane has a block of it the slab stays; one that went as it was looked at has none.
readiness own_caches::of_slab(const slab& owner, unsigned size_class) const noexcept {
  if (size_class >= size_classes::k_most) {
    return readiness::none;  // of a run that is there instead by now
  }
  auto found = readiness::anybody;
  std::uint32_t blocks = 0;  // that this thread has of it
  central_shard::share in_slab{};
  visit([&](const lane& each) {
    if (const auto mine = blocks_for(owner, size_class, each); mine != 0) {
      blocks += mine;
      found = std::min(found, of_lane(each));
      in_slab = central_.share_of(size_class, owner);
    }
  });
  return blocks != 0 && blocks + in_slab.blocks == owner.blocks ? std::min(found, of(in_slab.until))
                                                                : readiness::none;
}

bool own_caches::has_block(unsigned size_class) const noexcept {
  bool found = false;
  visit([&](const lane& each) {
    found = found || (&each == last_ && each.bins.at(size_class).count != 0);
  });
  return found;
}

}  // namespace isthmus
