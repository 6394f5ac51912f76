// SPDX-License-Identifier: Apache-2.0
#include "tracking/watched_pages.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "os/shared_file.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/page_support.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

// The bytes of the memory that are tracked by huge pages or small ones, whichever is cheaper.
std::size_t refined_bytes(const PageMappings& mappings, const Request& request) noexcept {
  return request.granularity == Granularity::automatic && mappings.huge_pages() != 0
             ? request.nbytes
             : 0;
}

}  // namespace

std::size_t whole_pages(std::size_t nbytes) noexcept {
  return round_up(nbytes, nbytes < k_min_huge_bytes ? os::page_size() : k_huge_page);
}

WatchedPages::WatchedPages(const PageMappings& mappings, const Request& request)
    : mappings_{mappings},
      nbytes_{request.nbytes},
      granularity_{request.granularity},
      costs_{small_fault_time(), request.copied_by},
      refinement_{refined_bytes(mappings, request), costs_},
      samples_{request.copied_by == CopiedBy::nothing ? 0 : refined_bytes(mappings, request)} {
  unmapped_.reserve(mappings.huge_pages());
}

bool WatchedPages::begins_small() const noexcept {
  return granularity_ == Granularity::page || refinement_.begins_small();
}

Result<void> WatchedPages::begin(os::WrittenPages& written_pages) {
  const bool is_huge = mappings_.huge_pages() != 0;
  bool is_watched = is_huge
                        ? written_pages.watch(mappings_.view, mappings_.nbytes)
                        : written_pages.scan(mappings_.view, mappings_.nbytes, [](void*, void*) {});
  if (is_watched && is_huge && begins_small() &&
      !written_pages.split(mappings_.view, mappings_.nbytes)) {
    is_watched = granularity_ == Granularity::automatic;
    refinement_.keep_all();
  }
  if (!is_watched) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the kernel refused to watch {} of memory for writes",
                describe_bytes(nbytes_));
  }
  return {};
}

// Reported runs are separated by at least one unwritten page, so there are at most half as many
// runs as pages, rounded up.
void WatchedPages::reserve_records() {
  collect(recorded_);
  const auto max_runs = mappings_.nbytes / os::page_size() / 2 + 1;
  recorded_.reserve(std::min(os::WrittenPages::k_max_runs, max_runs));
}

void WatchedPages::record(const std::byte* source, const std::byte* destination) noexcept {
  const auto begin =
      source > mappings_.view ? static_cast<std::size_t>(source - mappings_.view) : 0;
  const auto end = std::min(static_cast<std::size_t>(destination - mappings_.view), nbytes_);
  if (!all_found_ && begin < end) {
    ISTHMUS_EXPECTS(recorded_.size() < recorded_.capacity());
    recorded_.push_back({begin, end});
  }
}

void WatchedPages::collect(std::vector<ByteRange>& records) {
  RangeSet merged;
  for (const auto& each : records) {
    merged.add(each);
  }
  if (!merged.empty()) {
    found_.add(merged);
  }
  records.clear();
}

std::size_t WatchedPages::granule() const noexcept {
  return granularity_ == Granularity::automatic && mappings_.huge_pages() != 0 ? k_huge_page
                                                                               : os::page_size();
}

ByteRange WatchedPages::chunk_range(std::size_t chunk) const noexcept {
  return {chunk * k_huge_page, std::min((chunk + 1) * k_huge_page, nbytes_)};
}

// A huge page that is split or merged is already completely in `found_`. The caller copies these
// bytes after this call, so no write that happens during the change is lost.
void WatchedPages::take(os::WrittenPages& written_pages, RangeSet& written) {
  collect(recorded_);
  if (all_found_) {
    found_ = {{0, nbytes_}};
    all_found_ = false;
  }
  change(written_pages, refinement_.evaluate(found_, [this](std::size_t chunk) {
    return samples_.take(chunk, mappings_.library);
  }));
  map_some_unmapped();
  collect(unevaluated_);
  written.add(found_);
  found_.clear();
}

void WatchedPages::change(os::WrittenPages& written_pages, const Refinement::Changes& changes) {
  const bool can_merge = find_all(changes.merge);
  for (const auto each : changes.merge) {
    if (can_merge) {
      merge(written_pages, each);
    } else {
      refinement_.keep_small(each);  // as the kernel does
    }
  }
  for (const auto each : changes.split) {
    split(written_pages, each);
  }
}

// Adds chunks to what the scans found; false if there is no memory for that.
bool WatchedPages::find_all(const std::vector<std::size_t>& chunks) noexcept try {
  RangeSet all;
  for (const auto each : chunks) {
    all.add(chunk_range(each));
  }
  found_.add(all);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// A failure is ignored: the next scan then reports too many pages, never too few.
void WatchedPages::merge(os::WrittenPages& written_pages, std::size_t chunk) noexcept {
  auto* const at = mappings_.view + chunk * k_huge_page;
  if (written_pages.merge(at, k_huge_page)) {
    static_cast<void>(written_pages.scan(at, k_huge_page, [](void*, void*) {}));
  }
}

void WatchedPages::split(os::WrittenPages& written_pages, std::size_t chunk) noexcept {
  if (written_pages.split(mappings_.view + chunk * k_huge_page, k_huge_page)) {
    ISTHMUS_EXPECTS(unmapped_.size() < unmapped_.capacity());
    unmapped_.push_back(chunk);
  } else {
    refinement_.keep_small(chunk);
  }
}

void WatchedPages::forget_merged() noexcept {
  std::erase_if(unmapped_, [this](std::size_t chunk) { return refinement_.is_whole(chunk); });
}

void WatchedPages::map_some_unmapped() noexcept {
  forget_merged();
  for (auto rest = costs_.max_mapped(mappings_.huge_pages()); rest != 0 && !unmapped_.empty();
       --rest) {
    os::map_present_pages(mappings_.view + unmapped_.back() * k_huge_page, k_huge_page);
    unmapped_.pop_back();
  }
}

void WatchedPages::note_copied(const RangeSet& ranges) noexcept {
  for (const auto& range : ranges) {
    refinement_.note_copied(range);
  }
}

void WatchedPages::note_library_writes(const RangeSet& ranges) noexcept {
  for (const auto& range : ranges) {
    samples_.refresh(range, mappings_.library);
  }
}

void WatchedPages::refine(os::WrittenPages& written_pages, const ByteRange& range) {
  ISTHMUS_EXPECTS(range.begin < range.end, range.begin, range.end);
  const auto first = range.begin / k_huge_page, last = (range.end - 1) / k_huge_page;
  const auto is_partly_covered = [&](std::size_t chunk) {
    return !range.covers(chunk_range(chunk));
  };
  for (const auto chunk : {first, last}) {
    if (!is_partly_covered(chunk)) {
      continue;
    }
    if (!refinement_.is_whole(chunk)) {
      refinement_.request_small(chunk);  // it remains small
    } else {
      change_unwritten(written_pages, chunk, [&] {
        refinement_.request_small(chunk);
        split(written_pages, chunk);
      });
    }
  }
}

void WatchedPages::coarsen(os::WrittenPages& written_pages, const RangeSet& needed) {
  const auto& merged = refinement_.release_small_except(needed);
  forget_merged();
  for (const auto chunk : merged) {
    try {
      change_unwritten(written_pages, chunk, [&] { merge(written_pages, chunk); });
    } catch (const std::bad_alloc&) {
      refinement_.request_small(chunk);
    }
  }
}

// A change of the page size discards the kernel's records of writes since the preceding scan. So
// the chunk is compared with a copy made before that scan. All memory is allocated first: if this
// fails nothing has changed, and no unwritten page counts as written. What earlier scans found in
// the chunk was found by pages of the former size, so it is not evaluated either.
template <class Change>
void WatchedPages::change_unwritten(os::WrittenPages& written_pages, std::size_t chunk,
                                    Change change) {
  const auto first = chunk * k_huge_page;
  const auto max_runs = k_huge_page / os::page_size() / 2 + 1;
  const auto before = std::make_unique_for_overwrite<std::byte[]>(k_huge_page);
  collect(recorded_);
  const auto earlier = found_.common({chunk_range(chunk)});
  const auto without_earlier = found_.prepare_remove(earlier);
  unevaluated_.reserve(unevaluated_.size() + earlier.size() + 2 * max_runs);
  found_.apply(without_earlier);
  for (const auto& each : earlier) {
    add_unevaluated(each);
  }
  copy_unwatched(before.get(), mappings_.library + first, k_huge_page);
  const bool is_reported = written_pages.scan(
      mappings_.view + first, k_huge_page, [this](void* source, void* destination) {
        const auto begin = static_cast<std::byte*>(source) - mappings_.view;
        const auto end = static_cast<std::byte*>(destination) - mappings_.view;
        add_unevaluated({static_cast<std::size_t>(begin), static_cast<std::size_t>(end)});
      });
  if (!is_reported) {
    add_unevaluated(chunk_range(chunk));
  }
  change();
  record_differences(first, before.get());
}

void WatchedPages::record_differences(std::size_t first, const std::byte* before) noexcept {
  const auto page = os::page_size();
  for (std::size_t at = 0; at < k_huge_page; at += page) {
    if (!same_unwatched(before + at, mappings_.library + first + at, page)) {
      add_unevaluated({first + at, first + at + page});
    }
  }
}

// Pages of the last huge page may lie beyond the memory. The caller has reserved capacity for every
// second page.
void WatchedPages::add_unevaluated(const ByteRange& range) noexcept {
  const ByteRange clipped{range.begin, std::min(range.end, nbytes_)};
  if (clipped.begin >= clipped.end) {
    return;
  }
  if (!unevaluated_.empty() && unevaluated_.back().end == clipped.begin) {
    unevaluated_.back().end = clipped.end;
  } else {
    ISTHMUS_EXPECTS(unevaluated_.size() < unevaluated_.capacity());
    unevaluated_.push_back(clipped);
  }
}

}  // namespace isthmus::tracking
