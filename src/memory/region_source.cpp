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
chunk_source* chunks_for(context& home, device& where, usm_kind kind,
                         std::size_t limit_bytes) noexcept {
  auto* found = home.chunks(where, kind);
  const bool fits = found != nullptr && found->granularity() <= limit_bytes &&
                    found->granularity() % k_grain_bytes == 0 &&
                    (!found->divides() || found->granularity() == k_grain_bytes);
  return fits ? found : nullptr;
}

}  // namespace

region_source::region_source(context& home, device& where, usm_kind kind, const sizes& how,
                             ref<budget> shared, ref<memory_resource> upstream, bool remaps,
                             live_counts* live) noexcept
    : home_{home},
      where_{where},
      kind_{kind},
      how_{how},
      shared_{std::move(shared)},
      upstream_{std::move(upstream)},
      chunks_{remaps && !upstream_.is_there() ? chunks_for(home, where, kind, how.limit_bytes)
                                              : nullptr},
      live_{live},
      poison_{where, kind} {}

// Separate allocations are few and large, as what is left of one cannot extend another. Chunks are
// small, in multiples of 2 MiB: huge pages, which CUDA maps and which are fast for the host.
std::size_t region_source::growth_for(std::size_t needed) const noexcept {
  const auto held = counts_.held_bytes();
  const auto own = moves() ? std::clamp(held / 128, 2 * k_mib, k_usual_growth) : k_usual_growth;
  const auto usual = std::max(needed, how_.growth_bytes != 0 ? how_.growth_bytes : own);
  const auto wanted = moves() && how_.growth_bytes == 0 ? round_up(usual, 2 * k_mib) : usual;
  const auto room = how_.soft_limit_bytes - std::min(held, how_.soft_limit_bytes);
  return std::clamp(wanted, needed, std::max(needed, room));
}

result<void> region_source::fits(std::size_t nbytes) const {
  const auto shared = shared_ ? shared_->limit_bytes() : SIZE_MAX;
  if (nbytes <= std::min(how_.limit_bytes, shared)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "a pool of {} memory on {} holds at most {}, its {}, and cannot allocate {}",
              kind_name(kind_), where_.properties().filter,
              describe_bytes(std::min(how_.limit_bytes, shared)),
              shared < how_.limit_bytes ? "budget" : "limit", describe_bytes(nbytes));
}

// Free memory counts towards a request only where it can move.
const char* region_source::remedy(std::size_t needed, std::size_t free) const noexcept {
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

std::size_t region_source::asked_for(std::size_t needed) const noexcept {
  if (moves()) {
    return round_up(needed, chunks_->granularity());
  }
  // The driver may not align to pages: then one page more is requested.
  const bool aligns = where_.properties().max_alignment >= k_grain_bytes;
  return round_up(needed, k_grain_bytes) + (aligns ? 0 : k_grain_bytes);
}

result<void> region_source::claim(std::size_t nbytes) {
  if (!counts_.claim(nbytes, how_.limit_bytes)) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "a pool of {} memory on {} would need {} more and holds {} of at most {}",
                kind_name(kind_), where_.properties().filter, describe_bytes(nbytes),
                describe_bytes(counts_.held_bytes()), describe_bytes(how_.limit_bytes));
  }
  if (shared_ && !shared_->claim(nbytes)) {
    counts_.unclaim(nbytes);
    return shared_->refusal(where_, kind_, nbytes);
  }
  return {};
}

void region_source::unclaim(std::size_t nbytes) noexcept {
  counts_.unclaim(nbytes);
  if (shared_) {
    shared_->give_back(nbytes);
  }
}

result<region> region_source::take(const allocation_request& request) {
  region made;
  made.driver_bytes = request.nbytes;
  if (upstream_.is_there()) {
    auto chunk = upstream_.allocate(request);
    ISTHMUS_TRY(chunk);
    made.from_driver = (*chunk)->what().base;
    made.lent = chunk->detach();
    made.since = order_from_here();
  } else {
    auto given = provider_allocate(home_, where_, request, live_);
    ISTHMUS_TRY(given);
    made.from_driver = *given;
  }
  return made;
}

result<region> region_source::allocate(std::size_t nbytes) {
  const auto whole = round_up(nbytes, k_grain_bytes);
  const auto asked = asked_for(nbytes);
  ISTHMUS_TRY(claim(asked));
  undo claimed{[&] { unclaim(asked); }};
  auto made = take({kind_, asked, asked == whole ? k_grain_bytes : 0});
  ISTHMUS_TRY(made);
  claimed.dismiss();
  counts_.took_claimed();
  auto* const begin = static_cast<std::byte*>(made->from_driver);
  made->base = begin + (round_up(address(begin), k_grain_bytes) - address(begin));
  made->count = static_cast<grain_table::index>(whole / k_grain_bytes);
  return made;
}

region region_source::cut(region& whole, grain_table::index count) noexcept {
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

void region_source::give_back(const region& gone) noexcept {
  if (os::drivers_are_gone()) {
    return;
  }
  poison_.forget(gone.base, gone.nbytes());
  if (gone.lent != nullptr) {
    gone.lent->release();
  } else if (moves()) {
    provider_destroy(*chunks_, where_, kind_, gone.from_driver, gone.driver_bytes, live_);
  } else {
    provider_deallocate(home_, where_, kind_, gone.from_driver, gone.driver_bytes, live_);
  }
  if (gone.in != nullptr) {
    let_go(*gone.in);
  }
  counts_.gave_back(gone.driver_bytes);
  if (shared_) {
    shared_->give_back(gone.driver_bytes);
  }
}

result<reservation*> region_source::reserve(std::size_t nbytes) {
  const auto whole = round_up(nbytes, chunks_->granularity());
  auto base = chunks_->reserve(whole, k_grain_bytes);
  ISTHMUS_TRY(base);
  auto* made = new (std::nothrow) reservation{static_cast<std::byte*>(*base), whole};
  if (made == nullptr) {
    chunks_->release(*base, whole);
    return error::no_memory();
  }
  return made;
}

void region_source::let_go(reservation& of) noexcept {
  if (of.users.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  const auto owned = divides() ? of.filled : 0;  // by its chunks
  if (of.nbytes != owned) {
    chunks_->release(of.base + owned, of.nbytes - owned);
  }
  delete &of;
}

void region_source::fill(reservation& in, std::size_t nbytes) noexcept {
  in.filled += nbytes;
  if (!divides()) {
    in.users.fetch_add(1, std::memory_order_relaxed);
  }
}

result<region> region_source::create(reservation& in, std::size_t nbytes) {
  const auto whole = asked_for(nbytes);
  ISTHMUS_TRY(claim(whole));
  undo claimed{[&] { unclaim(whole); }};
  auto* const at = in.base + in.filled;
  ISTHMUS_TRY(provider_create(*chunks_, home_, where_, {kind_, whole, 0}, at, live_));
  claimed.dismiss();
  counts_.took_claimed();
  fill(in, whole);
  region made{at, whole, at, static_cast<grain_table::index>(whole / k_grain_bytes)};
  if (!divides()) {
    made.in = &in;
    made.chunk = last_chunk_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return made;
}

result<region> region_source::move(region& which, reservation& to) {
  auto* const at = to.base + to.filled;
  poison_.forget(which.base, which.nbytes());
  bool lost = false;
  auto moved = chunks_->move(which.base, at, which.driver_bytes, lost);
  if (lost && divides()) {  // addresses after the lost ones are still ours
    const auto behind = to.filled + which.driver_bytes;
    if (behind != to.nbytes) {
      chunks_->release(to.base + behind, to.nbytes - behind);
    }
    to.nbytes = to.filled;
  }
  ISTHMUS_TRY(moved);
  counts_.moved();
  provider_moved(kind_, which.base, at, which.driver_bytes, live_);
  fill(to, which.driver_bytes);
  auto old = which;
  which.from_driver = which.base = at;
  which.in = divides() ? nullptr : &to;
  return old;
}

void region_source::leave(const region& old) noexcept {
  chunks_->leave(old.base, old.driver_bytes);
  if (old.in != nullptr) {
    let_go(*old.in);
  }
}

}  // namespace isthmus
