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

result<page_arena::room> reserve_both(std::size_t nbytes) {
  auto view = os::reserve_addresses(nbytes, k_huge_page);
  ISTHMUS_TRY(view);
  auto library = os::reserve_addresses(nbytes, k_huge_page);
  if (!library) {
    os::unmap_pages(*view, nbytes);
    return library.take_error();
  }
  return page_arena::room{advance(*view, 0), advance(*library, 0), nbytes};
}

}  // namespace

page_arena::page_arena(os::written_pages& kernel, os::shared_file file, const room& all,
                       free_ranges large) noexcept
    : kernel_{kernel}, file_{std::move(file)}, all_{all}, large_{std::move(large)} {}

result<page_arena*> page_arena::open() {
  auto kernel = os::written_pages::only();
  ISTHMUS_TRY(kernel);
  error last;
  for (const auto nbytes : k_sizes) {
    free_ranges large{{0, nbytes}};  // allocates, so it comes before the file
    auto file = os::shared_file::open(nbytes);
    auto all = file ? reserve_both(nbytes) : result<room>{file.take_error()};
    if (all) {
      static never_destroyed<page_arena> made{**kernel, std::move(*file), *all, std::move(large)};
      watch_forks(*made);
      return &*made;
    }
    last = all.take_error();
  }
  return last;
}

result<page_arena*> page_arena::only() {
  if (is_parents()) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "the kernel does not report written pages: after a fork");
  }
  static auto opened = open();
  return opened;
}

result<page_arena::room> page_arena::allocate(std::size_t nbytes) {
  const auto whole = round_up(nbytes, os::page_size());
  result<std::size_t> offset = whole < k_huge_page ? std::size_t{0} : map_large(whole);
  if (whole < k_huge_page) {
    auto found = take_small(whole);
    if (!found) {
      ISTHMUS_TRY(add_segment());
      found = take_small(whole);
    }
    if (!found) {
      return error::no_memory();
    }
    offset = *found;
  }
  ISTHMUS_TRY(offset);
  return room{all_.view + *offset, all_.library + *offset, whole};
}

std::optional<std::size_t> page_arena::take_small(std::size_t nbytes) noexcept {
  const std::lock_guard lock{lock_};
  return small_.take(nbytes);
}

result<void> page_arena::add_segment() {
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

result<std::size_t> page_arena::map_large(std::size_t nbytes) {
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

result<void> page_arena::map_both(std::size_t offset, std::size_t nbytes) {
  ISTHMUS_TRY(file_.map(all_.view + offset, offset, nbytes));
  ISTHMUS_TRY(file_.map(all_.library + offset, offset, nbytes));
  return {};
}

// Unmaps the addresses first: a use after free faults instead of reading another buffer's bytes. A
// range that could not be cleared is not reused.
void page_arena::give_large(std::size_t offset, std::size_t nbytes) noexcept {
  os::decommit_pages(all_.view + offset, nbytes);
  os::decommit_pages(all_.library + offset, nbytes);
  if (!is_parents() && !file_.clear(offset, nbytes)) {
    return;
  }
  const std::lock_guard lock{lock_};
  large_.give({offset, offset + round_up(nbytes, k_huge_page)});
}

void page_arena::give_back(const room& unused) noexcept {
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

result<void> page_arena::add(page_memory& live) {
  const auto& pages = live.pages();
  const std::lock_guard lock{lock_};
  const auto at = live_.emplace(pages.view, &live).first;
  undo not_added{[&] { live_.erase(at); }};
  ISTHMUS_TRY(live.begin(kernel_));
  not_added.dismiss();
  return {};
}

void page_arena::remove(const page_memory& gone) noexcept {
  const std::lock_guard lock{lock_};
  live_.erase(gone.pages().view);
}

void page_arena::take(std::span<const tracked_memory::taking> each) {
  const std::lock_guard lock{lock_};
  auto* begin = all_.view + all_.nbytes;
  auto* end = all_.view;
  for (const auto& [from, written] : each) {
    const auto& pages = static_cast<page_memory*>(from)->pages();
    begin = std::min(begin, pages.view);
    end = std::max(end, pages.view + pages.nbytes);
  }
  if (begin < end) {
    look(begin, end);
  }
  for (const auto& [from, written] : each) {
    static_cast<page_memory*>(from)->hand_over(kernel_, *written);
  }
}

// Throws std::bad_alloc before a step for whose result there is no memory: the pages of that step
// still count as written.
void page_arena::look(std::byte* begin, std::byte* end) {
  const auto each_in = [this](void* from, void* to, const auto& visit) {
    auto each = live_.upper_bound(static_cast<std::byte*>(from));
    for (each = each == live_.begin() ? each : std::prev(each);
         each != live_.end() && each->first < to; ++each) {
      visit(*each->second);
    }
  };
  const auto note = [&](void* from, void* to) {
    each_in(from, to, [&](page_memory& each) {
      each.note(static_cast<std::byte*>(from), static_cast<std::byte*>(to));
    });
  };
  const auto prepare = [&] {
    each_in(begin, end, [](page_memory& each) { each.make_room_for_notes(); });
  };
  const auto nbytes = static_cast<std::size_t>(end - begin);
  if (!kernel_.take(begin, nbytes, std::cref(note), std::cref(prepare))) {
    each_in(begin, end, [](page_memory& each) { each.note_all(); });
  }
}

void page_arena::refine(page_memory& memory, const byte_range& range) {
  const std::lock_guard lock{lock_};
  memory.refine_locked(kernel_, range);
}

void page_arena::coarsen(page_memory& memory, const range_set& still) {
  const std::lock_guard lock{lock_};
  memory.coarsen_locked(kernel_, still);
}

// In a grandchild these mappings are private copies already.
void page_arena::make_private() noexcept {
  if (os::forks() > 1) {
    return;
  }
  large_.each_taken(all_.nbytes, [this](const byte_range& taken) {
    file_.map_privately(all_.view + taken.begin, taken.begin, taken.nbytes());
    file_.map_privately(all_.library + taken.begin, taken.begin, taken.nbytes());
  });
}

void page_arena::watch_forks(page_arena& only) noexcept {
  static page_arena* arena = &only;
  os::watch_forks();  // first, so that the child's handler can detect the fork
  pthread_atfork([] { arena->lock_.lock(); }, [] { arena->lock_.unlock(); },
                 [] {
                   arena->make_private();
                   arena->lock_.unlock();
                 });
}

}  // namespace isthmus::tracking
