// SPDX-License-Identifier: Apache-2.0
#include "memory/region_source.hpp"

#include <algorithm>

#include "core/order.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/provider.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_mib = std::size_t{1} << 20;
constexpr std::size_t k_usual_growth = 32 * k_mib;

// Null if there is no chunk source, if its granularity does not suit pages, or if the limit is
// below one chunk.
ChunkSource* chunks_for(Context& context, Device& device, UsmKind kind,
                        std::size_t limit_bytes) noexcept {
  auto* found = context.chunks(device, kind);
  const bool fits = found != nullptr && found->granularity() <= limit_bytes &&
                    found->granularity() % k_pool_page_bytes == 0 &&
                    (!found->divides() || found->granularity() == k_pool_page_bytes);
  return fits ? found : nullptr;
}

}  // namespace

RegionSource::RegionSource(Context& context, Device& device, UsmKind kind, const Sizes& sizes,
                           Ref<Budget> shared, Ref<MemoryResource> upstream, bool remaps,
                           LiveCounts* live) noexcept
    : context_{context},
      device_{device},
      kind_{kind},
      how_{sizes},
      shared_{std::move(shared)},
      upstream_{std::move(upstream)},
      chunks_{remaps && !upstream_.is_there() ? chunks_for(context, device, kind, sizes.limit_bytes)
                                              : nullptr},
      live_{live},
      poison_{device, kind} {}

// Separate allocations are few and large, as what is left of one cannot extend another. Chunks are
// small, in multiples of 2 MiB: huge pages, which CUDA maps and which are fast for the host.
std::size_t RegionSource::growth_for(std::size_t needed) const noexcept {
  const auto held = counts_.held_bytes();
  const auto own = moves() ? std::clamp(held / 128, 2 * k_mib, k_usual_growth) : k_usual_growth;
  const auto usual = std::max(needed, how_.growth_bytes != 0 ? how_.growth_bytes : own);
  const auto wanted = moves() && how_.growth_bytes == 0 ? round_up(usual, 2 * k_mib) : usual;
  const auto room = how_.soft_limit_bytes - std::min(held, how_.soft_limit_bytes);
  return std::clamp(wanted, needed, std::max(needed, room));
}

Result<void> RegionSource::fits(std::size_t nbytes) const {
  const auto shared = shared_ ? shared_->limit_bytes() : SIZE_MAX;
  if (nbytes <= std::min(how_.limit_bytes, shared)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "a pool of {} memory on {} holds at most {}, its {}, and cannot allocate {}",
              kind_name(kind_), device_.properties().filter,
              describe_bytes(std::min(how_.limit_bytes, shared)),
              shared < how_.limit_bytes ? "budget" : "limit", describe_bytes(nbytes));
}

// Free memory counts towards a request only where it can move.
const char* RegionSource::remedy(std::size_t needed, std::size_t free) const noexcept {
  const auto more = asked_for(needed - (moves() ? std::min(free, needed) : 0));
  const auto is_above = [more](std::size_t limit, std::size_t held) {
    return more > limit - std::min(held, limit);
  };
  if (is_above(how_.limit_bytes, counts_.held_bytes())) {
    return needed > how_.limit_bytes ? "request less or raise its limit"
                                     : "free buffers, request less or raise its limit";
  }
  if (shared_ && is_above(shared_->limit_bytes(), shared_->held_bytes())) {
    return needed > shared_->limit_bytes() ? "request less or enlarge its budget"
                                           : "free buffers, request less or enlarge its budget";
  }
  return "free buffers or request less";
}

std::size_t RegionSource::asked_for(std::size_t needed) const noexcept {
  if (moves()) {
    return round_up(needed, chunks_->granularity());
  }
  // The driver may not align to pages: then one page more is requested.
  const bool aligns = device_.properties().max_alignment >= k_pool_page_bytes;
  return round_up(needed, k_pool_page_bytes) + (aligns ? 0 : k_pool_page_bytes);
}

Result<void> RegionSource::claim(std::size_t nbytes) {
  if (!counts_.claim(nbytes, how_.limit_bytes)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "a pool of {} memory on {} would need {} more and holds {} of at most {}",
                kind_name(kind_), device_.properties().filter, describe_bytes(nbytes),
                describe_bytes(counts_.held_bytes()), describe_bytes(how_.limit_bytes));
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
    shared_->give_back(nbytes);
  }
}

Result<Region> RegionSource::take(const AllocationRequest& request) {
  Region made;
  made.driver_bytes = request.nbytes;
  if (upstream_.is_there()) {
    auto chunk = upstream_.allocate(request);
    ISTHMUS_TRY(chunk);
    made.from_driver = (*chunk)->what().base;
    made.lent = chunk->detach();
    made.since = order_from_here();
  } else {
    auto given = provider_allocate(context_, device_, request, live_);
    ISTHMUS_TRY(given);
    made.from_driver = *given;
  }
  return made;
}

Result<Region> RegionSource::allocate(std::size_t nbytes) {
  const auto whole = round_up(nbytes, k_pool_page_bytes);
  const auto asked = asked_for(nbytes);
  ISTHMUS_TRY(claim(asked));
  Undo claimed{[&] { unclaim(asked); }};
  auto made = take({kind_, asked, asked == whole ? k_pool_page_bytes : 0});
  ISTHMUS_TRY(made);
  claimed.dismiss();
  counts_.took_claimed();
  auto* const begin = static_cast<std::byte*>(made->from_driver);
  made->base = begin + (round_up(address(begin), k_pool_page_bytes) - address(begin));
  made->count = static_cast<PoolPageTable::Index>(whole / k_pool_page_bytes);
  return made;
}

Region RegionSource::cut(Region& whole, PoolPageTable::Index count) noexcept {
  auto front = whole;
  front.count = count;
  front.driver_bytes = front.nbytes();
  whole.first += count;
  whole.count -= count;
  whole.base += front.driver_bytes;
  whole.from_driver = whole.base;
  whole.driver_bytes -= front.driver_bytes;
  provider_divided(kind_, {front.base, front.driver_bytes}, {whole.base, whole.driver_bytes},
                   live_);
  return front;
}

void RegionSource::give_back(const Region& gone) noexcept {
  if (os::drivers_are_gone()) {
    return;
  }
  poison_.forget(gone.base, gone.nbytes());
  if (gone.lent != nullptr) {
    gone.lent->release();
  } else if (moves()) {
    provider_destroy(*chunks_, device_, kind_, gone.from_driver, gone.driver_bytes, live_);
  } else {
    provider_deallocate(context_, device_, kind_, gone.from_driver, gone.driver_bytes, live_);
  }
  if (gone.in != nullptr) {
    release_now(*gone.in);
  }
  counts_.gave_back(gone.driver_bytes);
  if (shared_) {
    shared_->give_back(gone.driver_bytes);
  }
}

Result<Reservation*> RegionSource::reserve(std::size_t nbytes) {
  const auto whole = round_up(nbytes, chunks_->granularity());
  auto base = chunks_->reserve(whole, k_pool_page_bytes);
  ISTHMUS_TRY(base);
  auto* made = new (std::nothrow) Reservation{static_cast<std::byte*>(*base), whole};
  if (made == nullptr) {
    chunks_->release(*base, whole);
    return Error::no_memory();
  }
  return made;
}

void RegionSource::release_now(Reservation& reservation) noexcept {
  if (reservation.users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  const auto owned = divides() ? reservation.filled : 0;  // by its chunks
  if (reservation.nbytes != owned) {
    chunks_->release(reservation.base + owned, reservation.nbytes - owned);
  }
  delete &reservation;
}

void RegionSource::fill(Reservation& in, std::size_t nbytes) noexcept {
  in.filled += nbytes;
  if (!divides()) {
    in.users.fetch_add(1, std::memory_order_relaxed);
  }
}

Result<Region> RegionSource::create(Reservation& in, std::size_t nbytes) {
  const auto whole = asked_for(nbytes);
  ISTHMUS_TRY(claim(whole));
  Undo claimed{[&] { unclaim(whole); }};
  auto* const at = in.base + in.filled;
  ISTHMUS_TRY(provider_create(*chunks_, context_, device_, {kind_, whole, 0}, at, live_));
  claimed.dismiss();
  counts_.took_claimed();
  fill(in, whole);
  Region made{at, whole, at, static_cast<PoolPageTable::Index>(whole / k_pool_page_bytes)};
  if (!divides()) {
    made.in = &in;
    made.chunk = last_chunk_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return made;
}

Result<Region> RegionSource::move(Region& which, Reservation& target) {
  auto* const at = target.base + target.filled;
  poison_.forget(which.base, which.nbytes());
  bool lost = false;
  auto moved = chunks_->move(which.base, at, which.driver_bytes, lost);
  if (lost && divides()) {  // addresses after the lost ones are still ours
    const auto behind = target.filled + which.driver_bytes;
    if (behind != target.nbytes) {
      chunks_->release(target.base + behind, target.nbytes - behind);
    }
    target.nbytes = target.filled;
  }
  ISTHMUS_TRY(moved);
  counts_.moved();
  provider_moved(kind_, which.base, at, which.driver_bytes, live_);
  fill(target, which.driver_bytes);
  auto old = which;
  which.from_driver = which.base = at;
  which.in = divides() ? nullptr : &target;
  return old;
}

void RegionSource::leave(const Region& old) noexcept {
  chunks_->leave(old.base, old.driver_bytes);
  if (old.in != nullptr) {
    release_now(*old.in);
  }
}

}  // namespace isthmus
