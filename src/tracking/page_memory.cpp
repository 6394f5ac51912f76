// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_memory.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "core/sizes.hpp"
#include "core/threads.hpp"
#include "core/undo.hpp"
#include "os/available_memory.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/page_support.hpp"
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

std::size_t whole_chunks(const Request& request) noexcept {
  return request.granularity == Granularity::automatic ? request.nbytes / k_huge_page : 0;
}

// All pages are faulted in immediately, and pages that cannot be backed invoke the OOM killer, so
// the request is checked first.
Result<void> check_available_memory(std::size_t nbytes) {
  if (nbytes < k_huge_page) {
    return {};
  }
  if (const auto remaining = os::process_memory_bounds().available(nbytes);
      remaining.bytes < nbytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{} requested, but {} leaves only {}",
                describe_bytes(nbytes), remaining.bound, describe_bytes(remaining.bytes));
  }
  return {};
}

}  // namespace

PageMemory::PageMemory(PageArena& arena, const PageArena::Mappings& pages, const Request& request)
    : TrackedMemory{TrackingMechanism::pages, request.nbytes},
      arena_{arena},
      pages_{pages},
      granularity_{request.granularity},
      refinement_{whole_chunks(request), copies_of_dense_writes()} {
  view_ = pages.view;
  library_ = pages.library;
}

Result<std::unique_ptr<TrackedMemory>> PageMemory::create(const Request& request) {
  ISTHMUS_TRY(check_available_memory(request.nbytes));
  auto arena = PageArena::instance();
  ISTHMUS_TRY(arena);
  auto pages = (*arena)->allocate(request.nbytes);
  ISTHMUS_TRY(pages);
  Undo release_pages{[&] { (*arena)->deallocate(*pages); }};
  std::unique_ptr<PageMemory> tracked{new PageMemory{**arena, *pages, request}};
  release_pages.dismiss();
  ISTHMUS_TRY(tracked->fault_in());
  ISTHMUS_TRY((*arena)->add(*tracked));
  if (request.granularity == Granularity::page) {
    os::map_present_pages(tracked->view_, pages->nbytes);
  }
  return std::unique_ptr<TrackedMemory>{std::move(tracked)};
}

PageMemory::~PageMemory() {
  arena_.remove(*this);
  arena_.deallocate(pages_);
}

// Faults in all pages: a page that cannot be backed causes an error here, but would terminate the
// process on a later access.
Result<void> PageMemory::fault_in() const {
  if (const auto huge = nbytes_ / k_huge_page * k_huge_page; huge != 0) {
    make_huge_in_parallel(view_, huge);
  }
  return os::populate_shared(view_, pages_.nbytes);
}

Result<void> PageMemory::begin(os::WrittenPages& written_pages) const {
  const auto huge = nbytes_ / k_huge_page * k_huge_page;
  const bool is_watched = huge != 0 ? written_pages.watch(view_, pages_.nbytes)
                                    : written_pages.scan(view_, pages_.nbytes, [](void*, void*) {});
  if (!is_watched ||
      (granularity_ == Granularity::page && huge != 0 && !written_pages.split(view_, huge))) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the kernel refused to watch {} of memory for writes",
                describe_bytes(nbytes_));
  }
  return {};
}

// Reported runs are separated by at least one unwritten page, so there are at most half as many
// runs as pages, rounded up.
void PageMemory::reserve_records() {
  collect(recorded_);
  const auto max_runs = pages_.nbytes / os::page_size() / 2 + 1;
  recorded_.reserve(std::min(os::WrittenPages::k_max_runs, max_runs));
}

void PageMemory::record(const std::byte* source, const std::byte* destination) noexcept {
  const auto begin = source > view_ ? static_cast<std::size_t>(source - view_) : 0;
  const auto end = std::min(static_cast<std::size_t>(destination - view_), nbytes_);
  if (!all_found_ && begin < end) {
    recorded_.push_back({begin, end});
  }
}

void PageMemory::collect(std::vector<ByteRange>& records) {
  RangeSet merged;
  for (const auto& each : records) {
    merged.add(each);
  }
  if (!merged.empty()) {
    found_.add(merged);
  }
  records.clear();
}

std::size_t PageMemory::granule() const noexcept {
  return granularity_ == Granularity::automatic && nbytes_ >= k_huge_page ? k_huge_page
                                                                          : os::page_size();
}

void PageMemory::take(RangeSet& written) {
  if (os::is_forked_child()) {
    written.add(ByteRange{0, nbytes_});
    return;
  }
  const Taking request{this, &written};
  arena_.take({&request, 1});
}

void PageMemory::take_all(std::span<const Taking> requests) {
  static_cast<PageMemory*>(requests.front().memory)->arena_.take(requests);
}

// A huge page that is split or merged is already completely in `found_`. The caller copies these
// bytes after this call, so no write that happens during the change is lost.
void PageMemory::take_locked(os::WrittenPages& written_pages, RangeSet& written) {
  collect(recorded_);
  if (all_found_) {
    found_ = {{0, nbytes_}};
    all_found_ = false;
  }
  change(written_pages, refinement_.evaluate(found_));
  collect(unevaluated_);
  written.add(found_);
  found_.clear();
}

void PageMemory::change(os::WrittenPages& written_pages, const Refinement::Changes& changes) {
  for (const auto each : changes.merge) {
    auto* const at = view_ + each * k_huge_page;
    found_.add(ByteRange{each * k_huge_page, (each + 1) * k_huge_page});
    // A failure is ignored: the next scan then reports too many pages, never too few.
    if (written_pages.merge(at, k_huge_page)) {
      static_cast<void>(written_pages.scan(at, k_huge_page, [](void*, void*) {}));
    }
  }
  for (const auto each : changes.split) {
    if (!written_pages.split(view_ + each * k_huge_page, k_huge_page)) {
      refinement_.keep_small(each);
    }
  }
}

// Both mappings refer to the same memory, except in a forked child, which has a separate copy of
// each.
Result<const std::byte*> PageMemory::snapshot(const RangeSet& ranges, Writers /*writers*/) {
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
  return {};
}

void PageMemory::refine(const ByteRange& range) {
  if (!os::is_forked_child() && range.begin < range.end) {
    arena_.refine(*this, range);
  }
}

void PageMemory::refine_locked(os::WrittenPages& written_pages, const ByteRange& range) {
  const auto first = range.begin / k_huge_page, last = (range.end - 1) / k_huge_page;
  const auto is_partly_covered = [&](std::size_t chunk) {
    return !range.covers({chunk * k_huge_page, (chunk + 1) * k_huge_page});
  };
  for (const auto chunk : {first, last}) {
    if (refinement_.is_whole(chunk) && is_partly_covered(chunk)) {
      change_unwritten(written_pages, chunk, [&](std::byte* at) {
        refinement_.request_small(chunk);
        if (!written_pages.split(at, k_huge_page)) {
          refinement_.keep_small(chunk);
        }
      });
    }
  }
}

void PageMemory::coarsen(const RangeSet& needed) {
  if (!os::is_forked_child()) {
    arena_.coarsen(*this, needed);
  }
}

void PageMemory::coarsen_locked(os::WrittenPages& written_pages, const RangeSet& needed) {
  for (const auto chunk : refinement_.release_small_except(needed)) {
    try {
      change_unwritten(written_pages, chunk, [&](std::byte* at) {
        if (written_pages.merge(at, k_huge_page)) {
          static_cast<void>(written_pages.scan(at, k_huge_page, [](void*, void*) {}));
        }
      });
    } catch (const std::bad_alloc&) {
      refinement_.request_small(chunk);
    }
  }
}

// A change of the page size discards the kernel's records of writes since the preceding scan. So
// the chunk is compared with a copy made before that scan. All memory is allocated first: if this
// fails nothing has changed, and no unwritten page counts as written.
template <class Change>
void PageMemory::change_unwritten(os::WrittenPages& written_pages, std::size_t chunk,
                                  Change change) {
  const auto first = chunk * k_huge_page;
  const auto max_runs = k_huge_page / os::page_size() / 2 + 1;
  const auto before = std::make_unique_for_overwrite<std::byte[]>(k_huge_page);
  unevaluated_.reserve(unevaluated_.size() + 2 * max_runs);
  copy_unwatched(before.get(), library_ + first, k_huge_page);
  const bool is_reported =
      written_pages.scan(view_ + first, k_huge_page, [this](void* source, void* destination) {
        unevaluated_.push_back(
            {static_cast<std::size_t>(static_cast<std::byte*>(source) - view_),
             static_cast<std::size_t>(static_cast<std::byte*>(destination) - view_)});
      });
  if (!is_reported) {
    unevaluated_.push_back({first, first + k_huge_page});
  }
  change(view_ + first);
  record_differences(first, before.get());
}

// Pre: `unevaluated_` has sufficient capacity.
void PageMemory::record_differences(std::size_t first, const std::byte* before) noexcept {
  const auto page = os::page_size();
  for (std::size_t at = 0; at < k_huge_page; at += page) {
    if (same_unwatched(before + at, library_ + first + at, page)) {
      continue;
    }
    const auto begin = first + at;
    if (!unevaluated_.empty() && unevaluated_.back().end == begin) {
      unevaluated_.back().end += page;
    } else {
      unevaluated_.push_back({begin, begin + page});
    }
  }
}

}  // namespace isthmus::tracking
