// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/region_source.hpp"

#include <algorithm>

#include "core/order.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/base/provider.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_mib = std::size_t{1} << 20;
constexpr std::size_t k_default_growth = 32 * k_mib;

// Null if there is no chunk source, if its granularity does not suit pages, or if the limit is
// below one chunk.
ChunkSource* chunks_for(Context& context, Device& device, UsmKind kind,
                        std::size_t limit_bytes) noexcept {
  auto* found = context.chunks(device, kind);
  const bool fits = found != nullptr && found->granularity() <= limit_bytes &&
                    found->granularity() % k_pool_page_bytes == 0 &&
                    (!found->can_split() || found->granularity() == k_pool_page_bytes);
  return fits ? found : nullptr;
}

}  // namespace

RegionSource::RegionSource(const void* pool, Context& context, Device& device, UsmKind kind,
                           const Sizes& sizes, Ref<Budget> shared,
                           std::shared_ptr<PoolUpstream> upstream, bool remaps,
                           LiveCounts* live) noexcept
    : pool_{pool},
      context_{context},
      device_{device},
      kind_{kind},
      sizes_{sizes},
      shared_{std::move(shared)},
      upstream_{std::move(upstream)},
      chunks_{remaps && !upstream_ ? chunks_for(context, device, kind, sizes.limit_bytes)
                                   : nullptr},
      live_{live},
      poison_{device, kind} {}

// Separate allocations are few and large, since the free rest of one cannot extend another. Chunks
// are small, in multiples of 2 MiB: these are huge pages, which CUDA maps and which are fast for
// the host.
std::size_t RegionSource::growth_for(std::size_t needed) const noexcept {
  const auto held = counts_.held_bytes();
  const auto default_growth =
      moves() ? std::clamp(held / 128, 2 * k_mib, k_default_growth) : k_default_growth;
  const auto growth =
      std::max(needed, sizes_.growth_bytes != 0 ? sizes_.growth_bytes : default_growth);
  const auto rounded = moves() && sizes_.growth_bytes == 0 ? round_up(growth, 2 * k_mib) : growth;
  const auto available = sizes_.soft_limit_bytes - std::min(held, sizes_.soft_limit_bytes);
  return std::clamp(rounded, needed, std::max(needed, available));
}

Result<void> RegionSource::fits(std::size_t nbytes) const {
  const auto shared = shared_ ? shared_->limit_bytes() : SIZE_MAX;
  if (nbytes <= std::min(sizes_.limit_bytes, shared)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "a pool of {} memory on {} holds at most {}, its {}, and cannot allocate {}",
              kind_name(kind_), device_.properties().filter,
              describe_bytes(std::min(sizes_.limit_bytes, shared)),
              shared < sizes_.limit_bytes ? "budget" : "limit", describe_bytes(nbytes));
}

// Free memory counts towards a request only where it can move.
const char* RegionSource::remedy(std::size_t needed, std::size_t free) const noexcept {
  const auto more = driver_bytes_for(needed - (moves() ? std::min(free, needed) : 0));
  const auto is_above = [more](std::size_t limit, std::size_t held) {
    return more > limit - std::min(held, limit);
  };
  if (is_above(sizes_.limit_bytes, counts_.held_bytes())) {
    return needed > sizes_.limit_bytes ? "request less or raise its limit"
                                       : "free buffers, request less or raise its limit";
  }
  if (shared_ && is_above(shared_->limit_bytes(), shared_->held_bytes())) {
    return needed > shared_->limit_bytes() ? "request less or enlarge its budget"
                                           : "free buffers, request less or enlarge its budget";
  }
  return "free buffers or request less";
}

std::size_t RegionSource::driver_bytes_for(std::size_t needed) const noexcept {
  if (moves()) {
    return round_up(needed, chunks_->granularity());
  }
  // If the driver may not align to pages, one page more is requested.
  const bool aligns = device_.properties().max_alignment >= k_pool_page_bytes;
  return round_up(needed, k_pool_page_bytes) + (aligns ? 0 : k_pool_page_bytes);
}

Result<void> RegionSource::claim(std::size_t nbytes) {
  if (!counts_.claim(nbytes, sizes_.limit_bytes)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "a pool of {} memory on {} would need {} more and holds {} of at most {}",
                kind_name(kind_), device_.properties().filter, describe_bytes(nbytes),
                describe_bytes(counts_.held_bytes()), describe_bytes(sizes_.limit_bytes));
  }
  if (shared_ && !shared_->claim(nbytes)) {
    counts_.unclaim(nbytes);
    return shared_->refusal(device_, kind_, nbytes);
  }
  return {};
}

void RegionSource::unclaim(std::size_t nbytes) noexcept {
  counts_.unclaim(nbytes);
  if (shared_) {
    shared_->unclaim(nbytes);
  }
}

void RegionSource::observe_memory(MemoryEventKind kind, const void* pointer,
                                  std::size_t nbytes) const noexcept {
  observe(kind, [&] {
    return MemoryEvent{.kind = kind, .address = pointer, .nbytes = nbytes, .resource = pool_};
  });
}

Result<Region> RegionSource::allocate_memory(const AllocationRequest& request) {
  Region region;
  region.driver_bytes = request.nbytes;
  if (upstream_) {
    auto chunk = upstream_->allocate(request);
    ISTHMUS_TRY(chunk);
    region.driver_pointer = chunk->base;
    region.upstream_holder = chunk->holder.detach();
    region.since = order_above_all();
  } else {
    auto pointer = provider_allocate(context_, device_, request, live_);
    ISTHMUS_TRY(pointer);
    region.driver_pointer = *pointer;
  }
  return region;
}

Result<Region> RegionSource::allocate(std::size_t nbytes) {
  const auto rounded = round_up(nbytes, k_pool_page_bytes);
  const auto requested = driver_bytes_for(nbytes);
  ISTHMUS_TRY(claim(requested));
  Undo claimed{[&] { unclaim(requested); }};
  auto region = allocate_memory({kind_, requested, requested == rounded ? k_pool_page_bytes : 0});
  ISTHMUS_TRY(region);
  claimed.dismiss();
  counts_.record_claimed_allocation();
  observe_memory(MemoryEventKind::grow, region->driver_pointer, requested);
  auto* const begin = static_cast<std::byte*>(region->driver_pointer);
  region->base = begin + (round_up(address(begin), k_pool_page_bytes) - address(begin));
  region->count = static_cast<PoolPageTable::Index>(rounded / k_pool_page_bytes);
  return region;
}

Region RegionSource::split(Region& region, PoolPageTable::Index count) noexcept {
  auto front = region;
  front.count = count;
  front.driver_bytes = front.nbytes();
  region.first += count;
  region.count -= count;
  region.base += front.driver_bytes;
  region.driver_pointer = region.base;
  region.driver_bytes -= front.driver_bytes;
  provider_divided(kind_, {front.base, front.driver_bytes}, {region.base, region.driver_bytes},
                   live_);
  return front;
}

void RegionSource::deallocate(const Region& region) noexcept {
  if (os::drivers_unavailable()) {
    return;
  }
  poison_.discard(region.base, region.nbytes());
  if (moves()) {
    observe_memory(MemoryEventKind::unmap, region.driver_pointer, region.driver_bytes);
  }
  observe_memory(MemoryEventKind::shrink, region.driver_pointer, region.driver_bytes);
  if (region.upstream_holder != nullptr) {
    region.upstream_holder->release();
  } else if (moves()) {
    provider_destroy(*chunks_, device_, kind_, region.driver_pointer, region.driver_bytes, live_);
  } else {
    provider_deallocate(context_, device_, kind_, region.driver_pointer, region.driver_bytes,
                        live_);
  }
  if (region.reservation != nullptr) {
    release_user(*region.reservation);
  }
  counts_.record_release(region.driver_bytes);
  if (shared_) {
    shared_->unclaim(region.driver_bytes);
  }
}

Result<Reservation*> RegionSource::reserve(std::size_t nbytes) {
  const auto rounded = round_up(nbytes, chunks_->granularity());
  auto base = chunks_->reserve(rounded, k_pool_page_bytes);
  ISTHMUS_TRY(base);
  auto* reservation = new (std::nothrow) Reservation{static_cast<std::byte*>(*base), rounded};
  if (reservation == nullptr) {
    chunks_->release(*base, rounded);
    return Error::no_memory();
  }
  return reservation;
}

void RegionSource::release_user(Reservation& reservation) noexcept {
  if (reservation.users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  const auto owned = divides() ? reservation.filled : 0;  // by its chunks
  if (reservation.nbytes != owned) {
    chunks_->release(reservation.base + owned, reservation.nbytes - owned);
  }
  delete &reservation;
}

void RegionSource::fill(Reservation& reservation, std::size_t nbytes) noexcept {
  reservation.filled += nbytes;
  if (!divides()) {
    reservation.users.fetch_add(1, std::memory_order_relaxed);
  }
}

Result<Region> RegionSource::create(Reservation& reservation, std::size_t nbytes) {
  const auto chunk_bytes = driver_bytes_for(nbytes);
  ISTHMUS_TRY(claim(chunk_bytes));
  Undo claimed{[&] { unclaim(chunk_bytes); }};
  auto* const at = reservation.base + reservation.filled;
  ISTHMUS_TRY(provider_create(*chunks_, context_, device_, {kind_, chunk_bytes, 0}, at, live_));
  claimed.dismiss();
  counts_.record_claimed_allocation();
  observe_memory(MemoryEventKind::grow, at, chunk_bytes);
  observe_memory(MemoryEventKind::map, at, chunk_bytes);
  fill(reservation, chunk_bytes);
  Region region{at, chunk_bytes, at,
                static_cast<PoolPageTable::Index>(chunk_bytes / k_pool_page_bytes)};
  if (!divides()) {
    region.reservation = &reservation;
    region.chunk = last_chunk_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return region;
}

Result<Region> RegionSource::move(Region& region, Reservation& target) {
  auto* const at = target.base + target.filled;
  poison_.discard(region.base, region.nbytes());
  bool lost = false;
  auto moved = chunks_->move(region.base, at, region.driver_bytes, lost);
  if (lost && divides()) {  // addresses after the lost ones are still reserved
    const auto end = target.filled + region.driver_bytes;
    if (end != target.nbytes) {
      chunks_->release(target.base + end, target.nbytes - end);
    }
    target.nbytes = target.filled;
  }
  ISTHMUS_TRY(moved);
  counts_.record_move();
  observe_memory(MemoryEventKind::map, at, region.driver_bytes);
  provider_moved(kind_, region.base, at, region.driver_bytes, live_);
  fill(target, region.driver_bytes);
  auto old = region;
  region.driver_pointer = region.base = at;
  region.reservation = divides() ? nullptr : &target;
  return old;
}

void RegionSource::unmap_old(const Region& old) noexcept {
  observe_memory(MemoryEventKind::unmap, old.base, old.driver_bytes);
  chunks_->unmap_old(old.base, old.driver_bytes);
  if (old.reservation != nullptr) {
    release_user(*old.reservation);
  }
}

}  // namespace isthmus
