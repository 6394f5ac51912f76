// SPDX-License-Identifier: Apache-2.0
#include "tracking/hash_memory.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/sanitizers.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"
#include "core/stream_copy.hpp"
#include "core/undo.hpp"
#include "os/random.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

// Calls visit(number, part) for each chunk that `range` overlaps, in order. `part` is the overlap.
template <class Visit>
void visit_chunks(const ByteRange& range, const Visit& visit) {
  for (auto at = range.begin; at < range.end;) {
    const auto number = at / HashMemory::k_chunk;
    const auto end = std::min(range.end, (number + 1) * HashMemory::k_chunk);
    visit(number, ByteRange{at, end});
    at = end;
  }
}

// The same for many ranges. A long range is divided among threads; each chunk is visited by one
// thread.
template <class Visit>
void visit_chunks(const RangeSet& ranges, const Visit& visit) {
  for (const auto& range : ranges) {
    const auto first = range.begin / HashMemory::k_chunk * HashMemory::k_chunk;
    share_out(range.end - first, [&](std::size_t at, std::size_t n) {
      visit_chunks(ByteRange{std::max(range.begin, first + at), first + at + n}, visit);
    });
  }
}

// A random secret per process, so that an attacker cannot craft a change that leaves the hash
// unchanged and is missed. Forked children inherit the secret together with the hashes.
class HashSecret {
 public:
  static constexpr std::size_t k_nbytes = 192;  // the length of XXH3's own secret
  HashSecret() noexcept { os::fill_random(bytes_); }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

 private:
  alignas(64) std::array<std::byte, k_nbytes> bytes_;
};

}  // namespace

HashMemory::Hash HashMemory::hash_of(const std::byte* bytes, std::size_t nbytes) noexcept {
  static const HashSecret secret;
  const auto found = XXH3_128bits_withSecret(bytes, nbytes, secret.data(), HashSecret::k_nbytes);
  return {found.low64, found.high64};
}

bool HashMemory::is_written_in_place(const ByteRange& range) const noexcept {
  return std::ranges::any_of(in_place_writes_,
                             [&](const ByteRange& each) { return each.overlaps(range); });
}

HashMemory::Hash HashMemory::hash_chunk(std::size_t number, const std::byte* bytes) const noexcept {
  const auto range = range_of(number);
  if (!k_thread_sanitizer && !is_written_in_place(range)) {
    return hash_of(bytes, range.nbytes());
  }
  ChunkCopy copy;
  copy_unwatched(copy.data(), bytes, range.nbytes());
  return hash_copy(number, copy);
}

HashMemory::Hash HashMemory::hash_copy(std::size_t number, ChunkCopy& copy) const noexcept {
  const auto range = range_of(number);
  for (const auto& each : in_place_writes_) {
    const auto begin = std::max(each.begin, range.begin), end = std::min(each.end, range.end);
    if (begin < end) {
      std::memset(copy.data() + (begin - range.begin), 0, end - begin);
    }
  }
  return hash_of(copy.data(), range.nbytes());
}

// The memory is zeroed, so the initial hashes are those of zeros.
HashMemory::HashMemory(std::size_t nbytes)
    : TrackedMemory{TrackingMechanism::hashes, nbytes}, chunks_((nbytes + k_chunk - 1) / k_chunk) {
  static constexpr ChunkCopy k_zeros{};
  const auto chunk_hash = hash_of(k_zeros.data(), k_chunk);
  for (auto& each : chunks_) {
    each.synchronized_hash = chunk_hash;
  }
  const auto last = range_of(chunks_.size() - 1);
  chunks_.back().synchronized_hash = hash_of(k_zeros.data(), last.nbytes());
}

Result<std::unique_ptr<TrackedMemory>> HashMemory::create(const Request& request) {
  auto view = os::map_pages(request.nbytes, os::page_size());
  ISTHMUS_TRY(view);
  Undo unmap_view{[&] { os::unmap_pages(*view, request.nbytes); }};
  std::unique_ptr<HashMemory> tracked{new HashMemory{request.nbytes}};
  unmap_view.dismiss();
  tracked->view_ = static_cast<std::byte*>(*view);
  auto library = os::map_pages(request.nbytes, os::page_size());
  ISTHMUS_TRY(library);
  tracked->library_ = static_cast<std::byte*>(*library);
  return std::unique_ptr<TrackedMemory>{std::move(tracked)};
}

HashMemory::~HashMemory() {
  for (auto* const mapping : {view_, library_}) {
    if (mapping != nullptr) {
      os::unmap_pages(mapping, nbytes_);
    }
  }
}

ByteRange HashMemory::range_of(std::size_t number) const noexcept {
  return {number * k_chunk, std::min((number + 1) * k_chunk, nbytes_)};
}

void HashMemory::mark_synchronized(std::size_t number, const Hash& hash) noexcept {
  chunks_[number].synchronized_hash = hash;
  chunks_[number].sync_state = SyncState::by_hash;
}

void HashMemory::scan(std::size_t number) noexcept {
  auto& chunk = chunks_[number];
  chunk.scanned_hash = hash_chunk(number, view_ + range_of(number).begin);
  chunk.is_scanned = true;
  if (chunk.sync_state == SyncState::unhashed) {
    mark_synchronized(number, chunk.scanned_hash);
  }
  chunk.is_written =
      chunk.sync_state == SyncState::unknown || chunk.scanned_hash != chunk.synchronized_hash;
}

// Works on a copy that fits into the core's cache, so that main memory is read and written only
// once.
void HashMemory::scan_and_snapshot(std::size_t number) noexcept {
  auto& chunk = chunks_[number];
  const auto range = range_of(number);
  ChunkCopy copy;
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  const auto hash = hash_copy(number, copy);
  chunk.is_written = chunk.sync_state == SyncState::unknown ||
                     (chunk.sync_state == SyncState::by_hash && hash != chunk.synchronized_hash);
  if (chunk.is_written) {
    stream_copy(library_ + range.begin, copy.data(), range.nbytes());
  }
  chunk.is_scanned = false;
  mark_synchronized(number, hash);
}

void HashMemory::scan_in_place(std::size_t number) noexcept {
  scan(number);
  mark_synchronized(number, chunks_[number].scanned_hash);
}

void HashMemory::add_written(const ByteRange& range, RangeSet& written) const {
  RangeSet found;
  visit_chunks(range, [&](std::size_t number, const ByteRange& part) {
    if (chunks_[number].is_written) {
      found.add(part);
    }
  });
  written.add(found);
}

// Copying 16 MiB takes 0.3 ms (H100), so the cost of starting another copy is negligible.
std::size_t HashMemory::min_part_bytes() const noexcept {
  return std::size_t{nbytes_ < k_large_bytes ? 1U : 16U} << 20;
}

void HashMemory::take(RangeSet& written) {
  const ByteRange all{0, nbytes_};
  visit_chunks(RangeSet{all}, [this](std::size_t number, const ByteRange&) { scan(number); });
  add_written(all, written);
}

// Passes scanned sub-ranges to the visitor of `take_in_parts`.
class HashMemory::PartReporter {
 public:
  PartReporter(const HashMemory& memory, const std::byte* source,
               const PartVisitor& visitor) noexcept
      : memory_{memory}, source_{source}, visitor_{visitor} {}

  // Notes that [0, scanned_end) has been scanned, and passes the new part to the visitor if it is
  // large enough. Returns whether to continue.
  bool report(std::size_t scanned_end) noexcept try {
    const bool is_part =
        scanned_end == memory_.nbytes() || scanned_end - reported_ >= memory_.min_part_bytes();
    if (outcome_ && is_part && scanned_end != reported_) {
      const ByteRange part{reported_, scanned_end};
      RangeSet found;
      memory_.add_written(part, found);
      reported_ = scanned_end;
      outcome_ = visitor_(part, std::move(found), source_);
    }
    return static_cast<bool>(outcome_);
  } catch (const std::bad_alloc&) {
    outcome_ = Error::no_memory();
    return false;
  } catch (...) {
    outcome_ = fail(ISTHMUS_ERROR_INTERNAL,
                    "an exception was thrown while written bytes were being processed");
    return false;
  }
  [[nodiscard]] Result<void>& outcome() noexcept { return outcome_; }
  [[nodiscard]] std::size_t reported() const noexcept { return reported_; }

 private:
  const HashMemory& memory_;
  const std::byte* source_;
  const PartVisitor& visitor_;
  std::size_t reported_ = 0;
  Result<void> outcome_;
};

// On failure, chunks after the last reported sub-range may already be recorded as synchronized.
// Their state becomes `unknown`, so that they count as written.
Result<void> HashMemory::take_in_parts(Writers writers, const PartVisitor& visitor) {
  const bool is_stable = writers == Writers::none;
  PartReporter reporter{*this, is_stable ? view_ : library_, visitor};
  share_out_in_order(
      nbytes_,
      [&](std::size_t at, std::size_t n) {
        visit_chunks(ByteRange{at, at + n}, [&](std::size_t number, const ByteRange&) {
          is_stable ? scan_in_place(number) : scan_and_snapshot(number);
        });
      },
      [&](std::size_t scanned_end) { return reporter.report(scanned_end); });
  if (!reporter.outcome()) {
    for (auto number = (reporter.reported() + k_chunk - 1) / k_chunk; number < chunks_.size();
         ++number) {
      chunks_[number].sync_state = SyncState::unknown;
    }
  }
  return std::move(reporter.outcome());
}

void HashMemory::expect_writers() {
  if (all_hashed_) {
    return;
  }
  RangeSet unhashed;
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    if (chunks_[number].sync_state == SyncState::unhashed) {
      unhashed.add(range_of(number));
    }
  }
  visit_chunks(unhashed, [this](std::size_t number, const ByteRange& range) {
    mark_synchronized(number, hash_chunk(number, view_ + range.begin));
  });
  all_hashed_ = true;
}

Result<const std::byte*> HashMemory::snapshot(const RangeSet& ranges, Writers writers) {
  if (writers == Writers::none) {
    all_hashed_ = false;
    for (const auto& range : ranges) {
      visit_chunks(range, [this](std::size_t number, const ByteRange&) {
        auto& chunk = chunks_[number];
        chunk.synchronized_hash = chunk.scanned_hash;
        chunk.sync_state = chunk.is_scanned ? SyncState::by_hash : SyncState::unhashed;
      });
    }
    return view_;
  }
  visit_chunks(ranges,
               [this](std::size_t number, const ByteRange& part) { snapshot_chunk(number, part); });
  return library_;
}

void HashMemory::snapshot_chunk(std::size_t number, const ByteRange& part) noexcept {
  if (part == range_of(number)) {
    copy_unwatched(library_ + part.begin, view_ + part.begin, part.nbytes());
    mark_synchronized(number, hash_chunk(number, library_ + part.begin));
  } else {
    snapshot_part(number, part);
  }
}

void HashMemory::copy_chunk(std::size_t number, ChunkCopy& copy) noexcept {
  auto& chunk = chunks_[number];
  const auto range = range_of(number);
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  const auto hash = hash_copy(number, copy);
  if (chunk.sync_state == SyncState::unhashed) {
    mark_synchronized(number, hash);
  } else if (hash != chunk.synchronized_hash) {
    chunk.sync_state = SyncState::unknown;
  }
}

// Copies the complete chunk to detect whether it changed. The hash cannot show which part changed,
// so if it did the rest of the chunk counts as written.
void HashMemory::snapshot_part(std::size_t number, const ByteRange& part) noexcept {
  ChunkCopy copy;
  copy_chunk(number, copy);
  const auto first = range_of(number).begin;
  std::memcpy(library_ + part.begin, copy.data() + (part.begin - first), part.nbytes());
}

Result<void> HashMemory::publish(const RangeSet& ranges, Writers writers) {
  all_hashed_ = all_hashed_ && writers == Writers::some;
  visit_chunks(ranges, [&](std::size_t number, const ByteRange& part) {
    publish_chunk(number, part, writers);
  });
  return {};
}

void HashMemory::publish_chunk(std::size_t number, const ByteRange& part,
                               Writers writers) noexcept {
  auto& chunk = chunks_[number];
  chunk.is_scanned = false;
  if (writers == Writers::none) {
    chunk.sync_state = SyncState::unhashed;
  } else if (part == range_of(number)) {
    mark_synchronized(number, hash_chunk(number, library_ + part.begin));
  } else {
    hash_with_part(number, part);
  }
  copy_unwatched(view_ + part.begin, library_ + part.begin, part.nbytes());
}

// The hash is computed only if the complete chunk is unchanged at this moment; otherwise the rest
// of the chunk counts as written.
void HashMemory::hash_with_part(std::size_t number, const ByteRange& part) noexcept {
  const auto range = range_of(number);
  ChunkCopy copy;
  copy_chunk(number, copy);
  if (chunks_[number].sync_state == SyncState::by_hash) {
    std::memcpy(copy.data() + (part.begin - range.begin), library_ + part.begin, part.nbytes());
    mark_synchronized(number, hash_copy(number, copy));
  }
}

// Without other writers the view is written directly. The chunks that the write overlaps become
// `unhashed` and thus count as synchronized, whatever their state was.
Result<std::byte*> HashMemory::begin_write(const ByteRange& range, bool keep_contents,
                                           Writers writers) {
  if (writers == Writers::some) {
    return TrackedMemory::begin_write(range, keep_contents, writers);
  }
  in_place_writes_.push_back(range);
  mark_unhashed(range);
  return view_ + range.begin;
}

void HashMemory::mark_unhashed(const ByteRange& range) noexcept {
  all_hashed_ = false;
  visit_chunks(range, [this](std::size_t number, const ByteRange&) {
    chunks_[number].sync_state = SyncState::unhashed;
    chunks_[number].is_scanned = false;
  });
}

// If there are other writers by now, `expect_writers` has hashed these chunks with zeros in place
// of the written range. Replaces these hashes by those of the complete contents.
Result<void> HashMemory::end_write(const ByteRange& range, const RangeSet& written,
                                   const std::byte* begin_address, Writers writers) {
  if (begin_address != view_ + range.begin) {
    return TrackedMemory::end_write(range, written, begin_address, writers);
  }
  const auto last = std::find(in_place_writes_.rbegin(), in_place_writes_.rend(), range);
  in_place_writes_.erase(std::prev(last.base()));
  if (writers == Writers::none) {
    mark_unhashed(range);
    return {};
  }
  visit_chunks(written, [this](std::size_t number, const ByteRange& part) {
    end_write_in_place(number, part);
  });
  return {};
}

void HashMemory::end_write_in_place(std::size_t number, const ByteRange& part) noexcept {
  auto& chunk = chunks_[number];
  const auto range = range_of(number);
  ChunkCopy copy;
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  const auto hash = hash_copy(number, copy);
  std::memset(copy.data() + (part.begin - range.begin), 0, part.nbytes());
  chunk.is_scanned = false;
  if (chunk.sync_state == SyncState::by_hash &&
      hash_copy(number, copy) == chunk.synchronized_hash) {
    mark_synchronized(number, hash);
  } else {
    chunk.sync_state = SyncState::unknown;
  }
}

}  // namespace isthmus::tracking
