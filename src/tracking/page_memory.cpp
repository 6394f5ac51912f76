// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_memory.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "os/available_memory.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

// The kernel collapses a range into a huge page only if at least one of its pages is present.
void make_huge(std::byte* at, std::size_t nbytes) noexcept {
  for (std::size_t next = 0; next < nbytes; next += k_huge_page) {
    if (!os::populate_shared(at + next, os::page_size())) {
      return;
    }
  }
  os::collapse_pages(at, nbytes);
}

// The kernel zeroes the pages during this call, so large ranges are divided among several threads.
void make_huge_in_parallel(std::byte* at, std::size_t nbytes) noexcept {
  constexpr std::size_t k_max_helpers = 7, k_min_bytes_per_thread = std::size_t{32} << 20;
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  const auto threads =
      std::min({processors, k_max_helpers + 1, 1 + nbytes / k_min_bytes_per_thread});
  const auto share = round_up(nbytes / threads + 1, k_huge_page);
  std::array<std::thread, k_max_helpers> helpers;
  auto started = share;
  try {
    for (auto next = helpers.begin(); started < nbytes; ++next, started += share) {
      *next = start_thread(
          [part = at + started, n = std::min(share, nbytes - started)] { make_huge(part, n); });
    }
  } catch (...) {  // no thread could be started
    make_huge(at + started, nbytes - started);
  }
  make_huge(at, std::min(share, nbytes));
  for (auto& helper : helpers) {
    if (helper.joinable()) {
      helper.join();
    }
  }
}

// All pages are faulted in immediately, and pages that cannot be backed invoke the OOM killer, so
// the request is checked first.
Result<void> check_available_memory(std::size_t nbytes) {
  if (nbytes < k_min_huge_bytes) {
    return {};
  }
  if (const auto remaining = os::process_memory_bounds().available(nbytes);
      remaining.bytes < nbytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of host memory for a unified buffer: {} leaves only {}. To do: "
                "free host memory, or request less",
                describe_bytes(nbytes), remaining.bound, describe_bytes(remaining.bytes));
  }
  return {};
}

}  // namespace

PageMemory::PageMemory(PageArena& arena, const PageMappings& pages, const Request& request)
    : TrackedMemory{TrackingMechanism::pages, request.nbytes},
      arena_{arena},
      pages_{pages, request},
      is_whole_(pages.huge_pages()) {
  view_ = pages.view;
  library_ = pages.library;
}

Result<std::unique_ptr<TrackedMemory>> PageMemory::create(const Request& request) {
  ISTHMUS_TRY(check_available_memory(whole_pages(request.nbytes)));
  auto arena = PageArena::instance();
  ISTHMUS_TRY(arena);
  auto pages = (*arena)->allocate(request.nbytes);
  ISTHMUS_TRY(pages);
  Undo release_pages{[&] { (*arena)->deallocate(*pages); }};
  std::unique_ptr<PageMemory> tracked{new PageMemory{**arena, *pages, request}};
  release_pages.dismiss();
  ISTHMUS_TRY(tracked->fault_in());
  ISTHMUS_TRY((*arena)->add(tracked->pages_));
  if (tracked->pages_.begins_small()) {
    os::map_present_pages(tracked->view_, pages->nbytes);
  }
  return std::unique_ptr<TrackedMemory>{std::move(tracked)};
}

PageMemory::~PageMemory() {
  arena_.remove(pages_);
  arena_.deallocate(pages_.mappings());
}

// Faults in all pages: a page that cannot be backed causes an error here, but would terminate the
// process on a later access.
Result<void> PageMemory::fault_in() const {
  if (const auto& mappings = pages_.mappings(); mappings.huge_pages() != 0) {
    make_huge_in_parallel(view_, mappings.nbytes);
  }
  return os::populate_shared(view_, pages_.mappings().nbytes);
}

void PageMemory::take(RangeSet& written) {
  if (os::is_forked_child()) {
    written.add(ByteRange{0, nbytes_});
    return;
  }
  const PageArena::Taking request{&pages_, &written};
  arena_.take({&request, 1});
  note_reported(written);
}

void PageMemory::take_all(std::span<const Taking> requests) {
  ISTHMUS_EXPECTS(!requests.empty() && !os::is_forked_child());
  std::vector<PageArena::Taking> scanned;
  scanned.reserve(requests.size());
  for (const auto& [memory, written] : requests) {
    scanned.push_back({&static_cast<PageMemory*>(memory)->pages_, written});
  }
  static_cast<PageMemory*>(requests.front().memory)->arena_.take(scanned);
  for (const auto& [memory, written] : requests) {
    static_cast<PageMemory*>(memory)->note_reported(*written);
  }
}

void PageMemory::note_reported(const RangeSet& written) noexcept {
  for (const auto& range : written) {
    set_whole(range, true);
  }
}

void PageMemory::set_whole(const ByteRange& range, bool value) noexcept {
  const auto end = range.end == nbytes_ ? is_whole_.size() : range.end / k_huge_page;
  const auto last = std::min(end, is_whole_.size());
  for (auto chunk = (range.begin + k_huge_page - 1) / k_huge_page; chunk < last; ++chunk) {
    is_whole_[chunk] = value;
  }
}

std::size_t PageMemory::granule_of(const RangeSet& ranges) const noexcept {
  for (const auto& range : ranges) {
    const auto last = std::min((range.end + k_huge_page - 1) / k_huge_page, is_whole_.size());
    for (auto chunk = range.begin / k_huge_page; chunk < last; ++chunk) {
      if (is_whole_[chunk]) {
        return pages_.granule();
      }
    }
  }
  return os::page_size();
}

// Both mappings refer to the same memory, except in a forked child, which has a separate copy of
// each.
Result<const std::byte*> PageMemory::snapshot(const RangeSet& ranges, Writers /*writers*/) {
  for (const auto& range : ranges) {
    set_whole(range, false);
  }
  pages_.note_copied(ranges);
  if (os::is_forked_child()) {
    for (const auto& each : ranges) {
      copy_unwatched(library_ + each.begin, view_ + each.begin, each.nbytes());
    }
  }
  return library_;
}

Result<void> PageMemory::publish(const RangeSet& ranges, Writers /*writers*/) {
  if (os::is_forked_child()) {
    for (const auto& each : ranges) {
      copy_unwatched(view_ + each.begin, library_ + each.begin, each.nbytes());
    }
  }
  pages_.note_library_writes(ranges);
  return {};
}

void PageMemory::refine(const ByteRange& range) {
  if (!os::is_forked_child() && range.begin < range.end) {
    arena_.refine(pages_, range);
  }
}

void PageMemory::coarsen(const RangeSet& needed) {
  if (!os::is_forked_child()) {
    arena_.coarsen(pages_, needed);
  }
}

}  // namespace isthmus::tracking
