// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_arena.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/sanitizers.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/page_memory.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

constexpr std::size_t k_segment = std::size_t{64} << 20;
constexpr std::size_t k_gib = std::size_t{1} << 30;
// Address space to reserve: the largest size that the process can have. ThreadSanitizer leaves
// little space between its own mappings.
constexpr std::array k_sizes = {k_thread_sanitizer ? 256 * k_gib : 4096 * k_gib,
                                1024 * k_gib,
                                256 * k_gib,
                                64 * k_gib,
                                16 * k_gib,
                                4 * k_gib};

// Whether the arena's file is the parent's, so that this process must not change it.
bool is_parents() noexcept { return os::is_forked_child(); }

Result<PageArena::Room> reserve_both(std::size_t nbytes) {
  auto view = os::reserve_addresses(nbytes, k_huge_page);
  ISTHMUS_TRY(view);
  auto library = os::reserve_addresses(nbytes, k_huge_page);
  if (!library) {
    os::unmap_pages(*view, nbytes);
    return library.take_error();
  }
  return PageArena::Room{advance(*view, 0), advance(*library, 0), nbytes};
}

}  // namespace

PageArena::PageArena(os::WrittenPages& kernel, os::SharedFile file, const Room& all,
                     FreeRanges large) noexcept
    : kernel_{kernel}, file_{std::move(file)}, all_{all}, large_{std::move(large)} {}

Result<PageArena*> PageArena::open() {
  auto kernel = os::WrittenPages::only();
  ISTHMUS_TRY(kernel);
  Error last;
  for (const auto nbytes : k_sizes) {
    FreeRanges large{{0, nbytes}};  // allocates, so it comes before the file
    auto file = os::SharedFile::open(nbytes);
    auto all = file ? reserve_both(nbytes) : Result<Room>{file.take_error()};
    if (all) {
      static NeverDestroyed<PageArena> made{**kernel, std::move(*file), *all, std::move(large)};
      watch_forks(*made);
      return &*made;
    }
    last = all.take_error();
  }
  return last;
}

Result<PageArena*> PageArena::only() {
  if (is_parents()) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the kernel does not report written pages: after a fork");
  }
  static auto opened = open();
  return opened;
}

Result<PageArena::Room> PageArena::allocate(std::size_t nbytes) {
  const auto whole = round_up(nbytes, os::page_size());
  Result<std::size_t> offset = whole < k_huge_page ? std::size_t{0} : map_large(whole);
  if (whole < k_huge_page) {
    auto found = take_small(whole);
    if (!found) {
      ISTHMUS_TRY(add_segment());
      found = take_small(whole);
    }
    if (!found) {
      return Error::no_memory();
    }
    offset = *found;
  }
  ISTHMUS_TRY(offset);
  return Room{all_.view + *offset, all_.library + *offset, whole};
}

std::optional<std::size_t> PageArena::take_small(std::size_t nbytes) noexcept {
  const std::lock_guard lock{lock_};
  return small_.take(nbytes);
}

Result<void> PageArena::add_segment() {
  auto offset = map_large(k_segment);
  ISTHMUS_TRY(offset);
  auto* const view = all_.view + *offset;
  os::avoid_huge_pages(view, k_segment);
  if (!kernel_.watch(view, k_segment)) {
    give_large(*offset, k_segment);
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the kernel refused to watch more pages");
  }
  const std::lock_guard lock{lock_};
  small_.give({*offset, *offset + k_segment});
  return {};
}

Result<std::size_t> PageArena::map_large(std::size_t nbytes) {
  std::optional<std::size_t> offset;
  {
    const std::lock_guard lock{lock_};
    offset = large_.take(round_up(nbytes, k_huge_page));
  }
  if (!offset) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no address space is left for {} of watched memory",
                describe_bytes(nbytes));
  }
  auto mapped = map_both(*offset, nbytes);
  if (!mapped) {
    give_large(*offset, nbytes);
    return mapped.take_error();
  }
  return *offset;
}

Result<void> PageArena::map_both(std::size_t offset, std::size_t nbytes) {
  ISTHMUS_TRY(file_.map(all_.view + offset, offset, nbytes));
  ISTHMUS_TRY(file_.map(all_.library + offset, offset, nbytes));
  return {};
}

// Unmaps the addresses first: a use after free faults instead of reading another buffer's bytes. A
// range that could not be cleared is not reused.
void PageArena::give_large(std::size_t offset, std::size_t nbytes) noexcept {
  os::decommit_pages(all_.view + offset, nbytes);
  os::decommit_pages(all_.library + offset, nbytes);
  if (!is_parents() && !file_.clear(offset, nbytes)) {
    return;
  }
  const std::lock_guard lock{lock_};
  large_.give({offset, offset + round_up(nbytes, k_huge_page)});
}

void PageArena::give_back(const Room& unused) noexcept {
  const auto offset = static_cast<std::size_t>(unused.view - all_.view);
  if (unused.nbytes >= k_huge_page) {
    give_large(offset, unused.nbytes);
    return;
  }
  if (is_parents()) {
    return;  // the file is the parent's, and a child allocates nothing here
  }
  if (!file_.clear(offset, unused.nbytes)) {
    return;
  }
  const std::lock_guard lock{lock_};
  small_.give({offset, offset + unused.nbytes});
}

Result<void> PageArena::add(PageMemory& live) {
  const auto& pages = live.pages();
  const std::lock_guard lock{lock_};
  const auto at = live_.emplace(pages.view, &live).first;
  Undo not_added{[&] { live_.erase(at); }};
  ISTHMUS_TRY(live.begin(kernel_));
  not_added.dismiss();
  return {};
}

void PageArena::remove(const PageMemory& gone) noexcept {
  const std::lock_guard lock{lock_};
  live_.erase(gone.pages().view);
}

void PageArena::take(std::span<const TrackedMemory::Taking> each) {
  const std::lock_guard lock{lock_};
  auto* begin = all_.view + all_.nbytes;
  auto* end = all_.view;
  for (const auto& [from, written] : each) {
    const auto& pages = static_cast<PageMemory*>(from)->pages();
    begin = std::min(begin, pages.view);
    end = std::max(end, pages.view + pages.nbytes);
  }
  if (begin < end) {
    look(begin, end);
  }
  for (const auto& [from, written] : each) {
    static_cast<PageMemory*>(from)->hand_over(kernel_, *written);
  }
}

// Throws std::bad_alloc before a step for whose result there is no memory: the pages of that step
// still count as written.
void PageArena::look(std::byte* begin, std::byte* end) {
  const auto each_in = [this](void* source, void* destination, const auto& visit) {
    auto each = live_.upper_bound(static_cast<std::byte*>(source));
    for (each = each == live_.begin() ? each : std::prev(each);
         each != live_.end() && each->first < destination; ++each) {
      visit(*each->second);
    }
  };
  const auto note = [&](void* origin, void* target) {
    each_in(origin, target, [&](PageMemory& each) {
      each.note(static_cast<std::byte*>(origin), static_cast<std::byte*>(target));
    });
  };
  const auto prepare = [&] {
    each_in(begin, end, [](PageMemory& each) { each.make_room_for_notes(); });
  };
  const auto nbytes = static_cast<std::size_t>(end - begin);
  if (!kernel_.take(begin, nbytes, std::cref(note), std::cref(prepare))) {
    each_in(begin, end, [](PageMemory& each) { each.note_all(); });
  }
}

void PageArena::refine(PageMemory& memory, const ByteRange& range) {
  const std::lock_guard lock{lock_};
  memory.refine_locked(kernel_, range);
}

void PageArena::coarsen(PageMemory& memory, const RangeSet& still) {
  const std::lock_guard lock{lock_};
  memory.coarsen_locked(kernel_, still);
}

// In a grandchild these mappings are private copies already.
void PageArena::make_private() noexcept {
  if (os::forks() > 1) {
    return;
  }
  large_.each_taken(all_.nbytes, [this](const ByteRange& taken) {
    file_.map_privately(all_.view + taken.begin, taken.begin, taken.nbytes());
    file_.map_privately(all_.library + taken.begin, taken.begin, taken.nbytes());
  });
}

void PageArena::watch_forks(PageArena& only) noexcept {
  static PageArena* arena = &only;
  os::watch_forks();  // first, so that the child's handler can detect the fork
  pthread_atfork([] { arena->lock_.lock(); }, [] { arena->lock_.unlock(); },
                 [] {
                   arena->make_private();
                   arena->lock_.unlock();
                 });
}

}  // namespace isthmus::tracking
