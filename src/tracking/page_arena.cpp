// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_arena.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "core/lock_guard.hpp"
#include "core/sanitizers.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

constexpr std::size_t k_segment = std::size_t{64} << 20;
constexpr std::size_t k_gib = std::size_t{1} << 30;
// Sizes of the address space to try; the largest that the process can reserve is used.
// ThreadSanitizer leaves little space between its own mappings.
constexpr std::array k_sizes = {k_thread_sanitizer ? 256 * k_gib : 4096 * k_gib,
                                1024 * k_gib,
                                256 * k_gib,
                                64 * k_gib,
                                16 * k_gib,
                                4 * k_gib};

// Whether the arena's file belongs to the parent process, so that this process must not change it.
bool is_owned_by_parent() noexcept { return os::is_forked_child(); }

Result<PageMappings> reserve_both(std::size_t nbytes) {
  auto view = os::reserve_addresses(nbytes, k_huge_page);
  ISTHMUS_TRY(view);
  auto library = os::reserve_addresses(nbytes, k_huge_page);
  if (!library) {
    os::unmap_pages(*view, nbytes);
    return library.take_error();
  }
  return PageMappings{advance(*view, 0), advance(*library, 0), nbytes};
}

}  // namespace

PageArena::PageArena(os::WrittenPages& written_pages, os::SharedFile file, const PageMappings& all,
                     FreeRanges large) noexcept
    : written_pages_{written_pages}, file_{std::move(file)}, all_{all}, large_{std::move(large)} {}

Result<PageArena*> PageArena::open() {
  auto written_pages = os::WrittenPages::only();
  ISTHMUS_TRY(written_pages);
  Error last;
  for (const auto nbytes : k_sizes) {
    FreeRanges large{{0, nbytes}};  // before the file, since it may throw std::bad_alloc
    auto file = os::SharedFile::open(nbytes);
    auto all = file ? reserve_both(nbytes) : Result<PageMappings>{file.take_error()};
    if (all) {
      static NeverDestroyed<PageArena> arena{**written_pages, std::move(*file), *all,
                                             std::move(large)};
      watch_forks(*arena);
      return &*arena;
    }
    last = all.take_error();
  }
  return last;
}

Result<PageArena*> PageArena::instance() {
  if (is_owned_by_parent()) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "written pages are not tracked in a forked child: the kernel reports only the parent's");
  }
  static auto opened = open();
  return opened;
}

Result<PageMappings> PageArena::allocate(std::size_t nbytes) {
  const auto rounded = whole_pages(nbytes);
  Result<std::size_t> offset = rounded < k_huge_page ? std::size_t{0} : map_large(rounded);
  if (rounded < k_huge_page) {
    auto found = allocate_small(rounded);
    if (!found) {
      ISTHMUS_TRY(add_segment());
      found = allocate_small(rounded);
    }
    if (!found) {
      return Error::no_memory();
    }
    offset = *found;
  }
  ISTHMUS_TRY(offset);
  return PageMappings{all_.view + *offset, all_.library + *offset, rounded};
}

std::optional<std::size_t> PageArena::allocate_small(std::size_t nbytes) noexcept {
  const LockGuard lock{lock_};
  return small_.allocate(nbytes);
}

Result<void> PageArena::add_segment() {
  auto offset = map_large(k_segment);
  ISTHMUS_TRY(offset);
  auto* const view = all_.view + *offset;
  os::avoid_huge_pages(view, k_segment);
  if (!written_pages_.watch(view, k_segment)) {
    free_large(*offset, k_segment);
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the kernel refused to watch more pages");
  }
  const LockGuard lock{lock_};
  small_.release({*offset, *offset + k_segment});
  return {};
}

Result<std::size_t> PageArena::map_large(std::size_t nbytes) {
  std::optional<std::size_t> offset;
  {
    const LockGuard lock{lock_};
    offset = large_.allocate(round_up(nbytes, k_huge_page));
  }
  if (!offset) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no address space is left for {} of watched memory",
                describe_bytes(nbytes));
  }
  auto mapped = map_both(*offset, nbytes);
  if (!mapped) {
    free_large(*offset, nbytes);
    return mapped.take_error();
  }
  return *offset;
}

Result<void> PageArena::map_both(std::size_t offset, std::size_t nbytes) {
  ISTHMUS_TRY(file_.map(all_.view + offset, offset, nbytes));
  ISTHMUS_TRY(file_.map(all_.library + offset, offset, nbytes));
  return {};
}

// Unmaps the addresses before clearing the file, so that a use after free faults instead of reading
// another buffer's bytes. A range that could not be cleared is not reused.
void PageArena::free_large(std::size_t offset, std::size_t nbytes) noexcept {
  os::decommit_pages(all_.view + offset, nbytes);
  os::decommit_pages(all_.library + offset, nbytes);
  if (!is_owned_by_parent() && !file_.clear(offset, nbytes)) {
    return;
  }
  const LockGuard lock{lock_};
  large_.release({offset, offset + round_up(nbytes, k_huge_page)});
}

void PageArena::deallocate(const PageMappings& unused) noexcept {
  const auto offset = static_cast<std::size_t>(unused.view - all_.view);
  if (unused.nbytes >= k_huge_page) {
    free_large(offset, unused.nbytes);
    return;
  }
  if (is_owned_by_parent()) {
    return;  // a forked child must not change the file and does not allocate from the arena
  }
  if (!file_.clear(offset, unused.nbytes)) {
    return;
  }
  const LockGuard lock{lock_};
  small_.release({offset, offset + unused.nbytes});
}

Result<void> PageArena::add(WatchedPages& live) {
  const LockGuard lock{lock_};
  const auto at = live_.emplace(live.mappings().view, &live).first;
  Undo undo_insertion{[&] {
    lock_.assert_held();
    live_.erase(at);
  }};
  ISTHMUS_TRY(live.begin(written_pages_));
  undo_insertion.dismiss();
  return {};
}

void PageArena::remove(const WatchedPages& live) noexcept {
  const LockGuard lock{lock_};
  live_.erase(live.mappings().view);
}

void PageArena::take(std::span<const Taking> requests) {
  const LockGuard lock{lock_};
  auto* begin = all_.view + all_.nbytes;
  auto* end = all_.view;
  for (const auto& request : requests) {
    const auto& mappings = request.pages->mappings();
    begin = std::min(begin, mappings.view);
    end = std::max(end, mappings.view + mappings.nbytes);
  }
  if (begin < end) {
    scan(begin, end);
  }
  for (const auto& request : requests) {
    request.pages->take(written_pages_, *request.written);
  }
}

// Throws std::bad_alloc before a step of the scan if its result cannot be stored; the pages of that
// step then still count as written.
void PageArena::scan(std::byte* begin, std::byte* end) {
  const auto visit_live = [this](void* source, void* destination, const auto& visit) {
    lock_.assert_held();
    auto each = live_.upper_bound(static_cast<std::byte*>(source));
    for (each = each == live_.begin() ? each : std::prev(each);
         each != live_.end() && each->first < destination; ++each) {
      visit(*each->second);
    }
  };
  const auto record_pages = [&](void* origin, void* target) {
    visit_live(origin, target, [&](WatchedPages& each) {
      each.record(static_cast<std::byte*>(origin), static_cast<std::byte*>(target));
    });
  };
  const auto prepare = [&] {
    visit_live(begin, end, [](WatchedPages& each) { each.reserve_records(); });
  };
  const auto nbytes = static_cast<std::size_t>(end - begin);
  if (!written_pages_.scan(begin, nbytes, std::cref(record_pages), std::cref(prepare))) {
    visit_live(begin, end, [](WatchedPages& each) { each.record_all(); });
  }
}

void PageArena::refine(WatchedPages& live, const ByteRange& range) {
  const LockGuard lock{lock_};
  live.refine(written_pages_, range);
}

void PageArena::coarsen(WatchedPages& live, const RangeSet& needed) {
  const LockGuard lock{lock_};
  live.coarsen(written_pages_, needed);
}

// In a child of a forked child these mappings are private copies already.
void PageArena::make_private() noexcept {
  if (os::forks() > 1) {
    return;
  }
  large_.visit_allocated(all_.nbytes, [this](const ByteRange& allocated) {
    file_.map_privately(all_.view + allocated.begin, allocated.begin, allocated.nbytes());
    file_.map_privately(all_.library + allocated.begin, allocated.begin, allocated.nbytes());
  });
}

void PageArena::watch_forks(PageArena& created) noexcept {
  static PageArena* arena = &created;
  os::watch_forks();  // first, so that the child's handler can detect the fork
  pthread_atfork([]() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { arena->lock_.lock(); },
                 []() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { arena->lock_.unlock(); },
                 []() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {
                   arena->make_private();
                   arena->lock_.unlock();
                 });
}

}  // namespace isthmus::tracking
