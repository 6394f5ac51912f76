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
#include "memory/oom_stages.hpp"

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
Result<bool> is_over(Queue& queue) noexcept try {
  if (queue.quiet()) {
    return true;
  }
  const bool may_wait = no_wait == 0 && !in_continuation() && !on_library_thread();
  std::vector<Ref<Event>> running;
  if (!may_wait || !queue.unfinished(running)) {
    return false;
  }
  ISTHMUS_TRY(let_end_interruptibly(running));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

Result<Ref<DebugResource>> DebugResource::create(MemoryResource& upstream, std::size_t kept_bytes) {
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
  return make_ref<DebugResource>(upstream, kept_bytes);
}

// Damaged blocks that were not freed again are returned to upstream now.
DebugResource::~DebugResource() {
  release_now(0);
  live_.visit([this](const Note& left) {
    if (left.is_damaged) {
      auto gone = left;
      static_cast<void>(give_back(gone, nullptr));
    } else {
      process_cut_areas().remove(left.area);
    }
  });
}

// Releases the freed blocks that are kept before it reports that there is no memory.
Result<std::byte*> DebugResource::take(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  auto given = Adaptor::allocate(nbytes, alignment, queue);
  if (!given && given.failure().code() == ISTHMUS_ERROR_OUT_OF_MEMORY) {
    release_now(0);
    given = Adaptor::allocate(nbytes, alignment, queue);
  }
  ISTHMUS_TRY(given);
  note_memory();
  return static_cast<std::byte*>(*given);
}

Result<void*> DebugResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const auto zone =
      std::max(k_least_zone, alignment != 0 ? alignment : device().properties().base_alignment);
  const bool is_plain = (alignment & (alignment - 1)) == 0;
  if (!is_plain || nbytes > SIZE_MAX / 2 || zone > SIZE_MAX / 8) {
    return Adaptor::allocate(nbytes, alignment, queue);  // which reports the error
  }
  auto base = take(nbytes + 2 * zone, alignment, queue);
  ISTHMUS_TRY(base);
  Undo taken{[&] { static_cast<void>(Adaptor::deallocate(*base, nbytes + 2 * zone, &queue)); }};
  auto over = is_over(queue);
  ISTHMUS_TRY(over);
  auto made = *over ? Note{*base + zone, nbytes, zone} : Note{*base, nbytes + 2 * zone, 0};
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
void DebugResource::enter(Note& made) {
  auto& areas = process_cut_areas();
  made.area =
      areas.add({made.base(), made.all_bytes(), this, CutBlock{made.start, made.nbytes, true}});
  Undo forget{[&] { areas.remove(made.area); }};
  live_.put(made.start, made);
  forget.dismiss();
}

Result<void> DebugResource::give_back(Note& gone, Queue* behind) noexcept {
  auto& areas = process_cut_areas();
  auto area = areas.take(gone.area);
  auto done = Adaptor::deallocate(gone.base(), gone.all_bytes(), behind);
  if (!done) {
    gone.area = areas.put_back(std::move(area));
  }
  return done;
}

Result<void> DebugResource::deallocate(void* pointer, std::size_t, Queue*) noexcept {
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
  Result<void> done = damage_of_live(block);
  if (!done) {
    tell(done.failure());
    noted.mapped().is_damaged = true;
  } else if (block.zone == 0) {
    done = give_back(noted.mapped(), nullptr);
  } else {
    process_cut_areas().end_block(block.area);
    fill(block.start, k_freed, block.nbytes);
    keep(std::move(noted));
    release_now(most_kept_);
  }
  if (!done) {
    live_.put_back(std::move(noted));
  }
  return done;
}

Error DebugResource::damage_of_live(const Note& note) noexcept {
  const auto* found = first_other(note.base(), k_zone, note.zone);
  if (found == nullptr) {
    found = first_other(note.start + note.nbytes, k_zone, note.zone);
  }
  return found == nullptr ? Error{}
                          : written_to(note, found, "outside of it, so the block is not freed");
}

Error DebugResource::damage_of_freed(const Note& note) noexcept {
  const auto* found = first_other(note.start, k_freed, note.nbytes);
  return found == nullptr ? damage_of_live(note) : written_to(note, found, "after it was freed");
}

Error DebugResource::written_to(const Note& note, const std::byte* at, const char* text) noexcept {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "something wrote to offset {} of the block of {} bytes at {}, {}", at - note.start,
              note.nbytes, static_cast<void*>(note.start), text);
}

void DebugResource::tell(const Error& error) noexcept {
  std::fprintf(stderr, "isthmus: %s\n", error.message());
  const std::lock_guard hold{lock_};
  if (!found_) {
    found_ = error;
  }
}

// Enters it in `freed_` before the list: a thread that finds it in the list takes it out of
// `freed_`.
void DebugResource::keep(PointerTable<Note>::Entry freed) noexcept {
  auto& last = freed.mapped();
  freed_.put_back(std::move(freed));
  const std::lock_guard hold{lock_};
  (newest_ == nullptr ? oldest_ : newest_->next) = &last;
  newest_ = &last;
  kept_ += last.all_bytes();
}

DebugResource::Note* DebugResource::take_oldest(std::size_t max) noexcept {
  const std::lock_guard hold{lock_};
  auto* const first = kept_ > max ? oldest_ : nullptr;
  if (first != nullptr) {
    oldest_ = first->next;
    newest_ = oldest_ == nullptr ? nullptr : newest_;
    kept_ -= first->all_bytes();
  }
  return first;
}

std::size_t DebugResource::release_now(std::size_t max) noexcept {
  std::size_t nbytes = 0;
  while (auto* const oldest = take_oldest(max)) {
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

std::size_t DebugResource::trim(std::size_t keep) noexcept {
  release_now(0);
  return Adaptor::trim(keep);
}

Result<void> DebugResource::verify() {
  Error now;
  const auto look_with = [&now](Error (*damage)(const Note&) noexcept) {
    return [&now, damage](const Note& note) {
      if (!now) {
        now = damage(note);
      }
    };
  };
  live_.visit(look_with(&damage_of_live));
  freed_.visit(look_with(&damage_of_freed));
  {
    const std::lock_guard hold{lock_};
    now = found_ ? found_ : now;
  }
  return now ? Result<void>{std::move(now)} : Adaptor::verify();
}

}  // namespace isthmus
