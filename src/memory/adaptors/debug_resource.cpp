// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/debug_resource.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "memory/pressure.hpp"

namespace isthmus {
namespace {

// Odd values, which occur in no address and in few counts.
constexpr std::byte k_zone{0xFB};
constexpr std::byte k_never_written{0xCB};
constexpr std::byte k_freed{0xDB};

void fill(std::byte* at, std::byte with, std::size_t count) noexcept {
  std::memset(at, std::to_integer<int>(with), count);
}

// The first byte that differs from `than`; null if there is none.
const std::byte* first_other(const std::byte* at, std::byte than, std::size_t count) noexcept {
  const auto* end = at + count;
  const auto* found = std::find_if(at, end, [than](std::byte each) { return each != than; });
  return found == end ? nullptr : found;
}

// Whether nothing on the queue uses memory freed on it earlier; waits for it where that is allowed.
// CALLBACK if the thread's interrupt function ended the wait.
result<bool> is_over(queue& on) noexcept try {
  if (on.quiet()) {
    return true;
  }
  const bool may_wait = no_wait == 0 && !in_continuation() && !on_library_thread();
  std::vector<ref<event>> running;
  if (!may_wait || !on.unfinished(running)) {
    return false;
  }
  ISTHMUS_TRY(let_end_interruptibly(running));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

result<ref<debug_resource>> debug_resource::create(memory_resource& upstream,
                                                   std::size_t kept_bytes) {
  if ((upstream.kinds() & set_of(ISTHMUS_KIND_DEVICE)) != 0) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "a debug resource inspects its blocks, and the host cannot access device memory: "
                "put it over a resource of shared or host memory");
  }
  if (upstream.may_take_back()) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "a debug resource inspects blocks after they were freed, and a monotonic upstream "
                "may release them earlier: put the monotonic resource over the debug resource");
  }
  return make_ref<debug_resource>(upstream, kept_bytes);
}

// Damaged blocks that were not freed again are returned to upstream now.
debug_resource::~debug_resource() {
  let_go(0);
  live_.visit([this](const note& left) {
    if (left.is_damaged) {
      auto gone = left;
      static_cast<void>(give_back(gone, nullptr));
    } else {
      process_cut_areas().remove(left.area);
    }
  });
}

// Releases the freed blocks that are kept before it reports that there is no memory.
result<std::byte*> debug_resource::take(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto given = adaptor::allocate(nbytes, alignment, on);
  if (!given && given.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    let_go(0);
    given = adaptor::allocate(nbytes, alignment, on);
  }
  ISTHMUS_TRY(given);
  note_memory();
  return static_cast<std::byte*>(*given);
}

result<void*> debug_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  const auto zone =
      std::max(k_least_zone, alignment != 0 ? alignment : where().properties().base_alignment);
  const bool is_plain = (alignment & (alignment - 1)) == 0;
  if (!is_plain || nbytes > SIZE_MAX / 2 || zone > SIZE_MAX / 8) {
    return adaptor::allocate(nbytes, alignment, on);  // which reports the error
  }
  auto base = take(nbytes + 2 * zone, alignment, on);
  ISTHMUS_TRY(base);
  undo taken{[&] { static_cast<void>(adaptor::deallocate(*base, nbytes + 2 * zone, &on)); }};
  auto over = is_over(on);
  ISTHMUS_TRY(over);
  auto made = *over ? note{*base + zone, nbytes, zone} : note{*base, nbytes + 2 * zone, 0};
  if (made.zone != 0) {  // before the note can be found
    fill(made.base(), k_zone, zone);
    fill(made.start, k_never_written, nbytes);
    fill(made.start + nbytes, k_zone, zone);
  }
  enter(made);
  taken.dismiss();
  return static_cast<void*>(made.start);
}

// Throws std::bad_alloc, without effect.
void debug_resource::enter(note& made) {
  auto& areas = process_cut_areas();
  made.area =
      areas.add({made.base(), made.all_bytes(), this, cut_block{made.start, made.nbytes, true}});
  undo forget{[&] { areas.remove(made.area); }};
  live_.put(made.start, made);
  forget.dismiss();
}

result<void> debug_resource::give_back(note& gone, queue* behind) noexcept {
  auto& areas = process_cut_areas();
  auto area = areas.take(gone.area);
  auto done = adaptor::deallocate(gone.base(), gone.all_bytes(), behind);
  if (!done) {
    gone.area = areas.put_back(std::move(area));
  }
  return done;
}

result<void> debug_resource::deallocate(void* pointer, std::size_t, queue*) noexcept {
  auto noted = live_.take(pointer);
  if (noted.empty()) {
    return freed_.has(pointer)
               ? fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} was freed before", pointer)
               : fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                      "{} is not a block of this resource, or lies inside one: free the pointer "
                      "that was allocated",
                      pointer);
  }
  const auto block = noted.mapped();
  result<void> done = damage_of_live(block);
  if (!done) {
    tell(done.failure());
    noted.mapped().is_damaged = true;
  } else if (block.zone == 0) {
    done = give_back(noted.mapped(), nullptr);
  } else {
    process_cut_areas().end_block(block.area);
    fill(block.start, k_freed, block.nbytes);
    keep(std::move(noted));
    let_go(most_kept_);
  }
  if (!done) {
    live_.put_back(std::move(noted));
  }
  return done;
}

error debug_resource::damage_of_live(const note& of) noexcept {
  const auto* found = first_other(of.base(), k_zone, of.zone);
  if (found == nullptr) {
    found = first_other(of.start + of.nbytes, k_zone, of.zone);
  }
  return found == nullptr ? error{}
                          : written_to(of, found, "outside of it, so the block is not freed");
}

error debug_resource::damage_of_freed(const note& of) noexcept {
  const auto* found = first_other(of.start, k_freed, of.nbytes);
  return found == nullptr ? damage_of_live(of) : written_to(of, found, "after it was freed");
}

error debug_resource::written_to(const note& of, const std::byte* at, const char* how) noexcept {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "something wrote to offset {} of the block of {} bytes at {}, {}", at - of.start,
              of.nbytes, static_cast<void*>(of.start), how);
}

void debug_resource::tell(const error& what) noexcept {
  std::fprintf(stderr, "isthmus: %s\n", what.message());
  const std::lock_guard hold{lock_};
  if (!found_) {
    found_ = what;
  }
}

// Enters it in `freed_` before the list: a thread that finds it in the list takes it out of
// `freed_`.
void debug_resource::keep(pointer_table<note>::entry freed) noexcept {
  auto& last = freed.mapped();
  freed_.put_back(std::move(freed));
  const std::lock_guard hold{lock_};
  (newest_ == nullptr ? oldest_ : newest_->next) = &last;
  newest_ = &last;
  kept_ += last.all_bytes();
}

debug_resource::note* debug_resource::take_oldest(std::size_t most) noexcept {
  const std::lock_guard hold{lock_};
  auto* const first = kept_ > most ? oldest_ : nullptr;
  if (first != nullptr) {
    oldest_ = first->next;
    newest_ = oldest_ == nullptr ? nullptr : newest_;
    kept_ -= first->all_bytes();
  }
  return first;
}

std::size_t debug_resource::let_go(std::size_t most) noexcept {
  std::size_t nbytes = 0;
  while (auto* const oldest = take_oldest(most)) {
    auto gone = freed_.take(oldest->start);
    auto& block = gone.mapped();
    if (const auto bad = damage_of_freed(block)) {
      tell(bad);
    }
    if (give_back(block, nullptr)) {
      nbytes += block.all_bytes();
    } else {
      process_cut_areas().remove(block.area);
    }
  }
  return nbytes;
}

std::size_t debug_resource::trim(std::size_t keep) noexcept {
  let_go(0);
  return adaptor::trim(keep);
}

result<void> debug_resource::verify() {
  error now;
  const auto look_with = [&now](error (*damage)(const note&) noexcept) {
    return [&now, damage](const note& of) {
      if (!now) {
        now = damage(of);
      }
    };
  };
  live_.visit(look_with(&damage_of_live));
  freed_.visit(look_with(&damage_of_freed));
  {
    const std::lock_guard hold{lock_};
    now = found_ ? found_ : now;
  }
  return now ? result<void>{std::move(now)} : adaptor::verify();
}

}  // namespace isthmus
