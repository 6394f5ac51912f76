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

// Calls visit(chunk number, part of the chunk) for each chunk that `range` touches, in order.
template <class Visit>
void each_part(const ByteRange& range, const Visit& visit) {
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
void each_part(const RangeSet& ranges, const Visit& visit) {
  for (const auto& range : ranges) {
    const auto first = range.begin / HashMemory::k_chunk * HashMemory::k_chunk;
    share_out(range.end - first, [&](std::size_t at, std::size_t n) {
      each_part(ByteRange{std::max(range.begin, first + at), first + at + n}, visit);
    });
  }
}

// Secret of this process, so that no data can be crafted in which a change keeps the hash and is
// missed. Children by fork() keep it, because they inherit the hashes.
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
  return std::ranges::any_of(in_place_,
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
  for (const auto& each : in_place_) {
    const auto begin = std::max(each.begin, range.begin), end = std::min(each.end, range.end);
    if (begin < end) {
      std::memset(copy.data() + (begin - range.begin), 0, end - begin);
    }
  }
  return hash_of(copy.data(), range.nbytes());
}

// The memory is zeroed, so the initial hashes are those of zeros.
HashMemory::HashMemory(std::size_t nbytes)
    : TrackedMemory{Means::hashes, nbytes}, chunks_((nbytes + k_chunk - 1) / k_chunk) {
  static constexpr ChunkCopy k_zeros{};
  const auto whole = hash_of(k_zeros.data(), k_chunk);
  for (auto& each : chunks_) {
    each.last_same = whole;
  }
  const auto last = range_of(chunks_.size() - 1);
  chunks_.back().last_same = hash_of(k_zeros.data(), last.nbytes());
}

Result<std::unique_ptr<TrackedMemory>> HashMemory::create(const Request& wanted) {
  auto view = os::map_pages(wanted.nbytes, os::page_size());
  ISTHMUS_TRY(view);
  Undo not_made{[&] { os::unmap_pages(*view, wanted.nbytes); }};
  std::unique_ptr<HashMemory> made{new HashMemory{wanted.nbytes}};
  not_made.dismiss();
  made->view_ = static_cast<std::byte*>(*view);
  auto library = os::map_pages(wanted.nbytes, os::page_size());
  ISTHMUS_TRY(library);
  made->library_ = static_cast<std::byte*>(*library);
  return std::unique_ptr<TrackedMemory>{std::move(made)};
}

HashMemory::~HashMemory() {
  for (auto* const face : {view_, library_}) {
    if (face != nullptr) {
      os::unmap_pages(face, nbytes_);
    }
  }
}

ByteRange HashMemory::range_of(std::size_t number) const noexcept {
  return {number * k_chunk, std::min((number + 1) * k_chunk, nbytes_)};
}

void HashMemory::is_same(std::size_t number, const Hash& now) noexcept {
  chunks_[number].last_same = now;
  chunks_[number].last = Same::by_hash;
}

void HashMemory::look_at(std::size_t number) noexcept {
  auto& one = chunks_[number];
  one.looked_at = hash_chunk(number, view_ + range_of(number).begin);
  one.was_looked_at = true;
  if (one.last == Same::as_it_is) {
    is_same(number, one.looked_at);
  }
  one.is_written = one.last == Same::unknown || one.looked_at != one.last_same;
}

// Uses a copy that stays in the core's cache, so that memory is read and written once.
void HashMemory::look_and_snap(std::size_t number) noexcept {
  auto& one = chunks_[number];
  const auto range = range_of(number);
  ChunkCopy copy;
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  const auto now = hash_copy(number, copy);
  one.is_written = one.last == Same::unknown || (one.last == Same::by_hash && now != one.last_same);
  if (one.is_written) {
    stream_copy(library_ + range.begin, copy.data(), range.nbytes());
  }
  one.was_looked_at = false;
  is_same(number, now);
}

void HashMemory::look_and_keep(std::size_t number) noexcept {
  look_at(number);
  is_same(number, chunks_[number].looked_at);
}

void HashMemory::add_found(const ByteRange& range, RangeSet& written) const {
  RangeSet found;
  each_part(range, [&](std::size_t number, const ByteRange& part) {
    if (chunks_[number].is_written) {
      found.add(part);
    }
  });
  written.add(found);
}

// 16 MiB take 0.3 ms to copy (H100), so the cost of starting another copy is negligible.
std::size_t HashMemory::least_part() const noexcept {
  return std::size_t{nbytes_ < k_large_bytes ? 1U : 16U} << 20;
}

void HashMemory::take(RangeSet& written) {
  const ByteRange all{0, nbytes_};
  each_part(RangeSet{all}, [this](std::size_t number, const ByteRange&) { look_at(number); });
  add_found(all, written);
}

// Passes the completed ranges to the visitor of `take_in_parts`.
class HashMemory::PartsDone {
 public:
  PartsDone(const HashMemory& memory, const std::byte* source, const PartVisitor& each) noexcept
      : of_{memory}, from_{source}, each_{each} {}

  // Reports that [0, upto) has been scanned. Returns whether to continue.
  bool tell(std::size_t upto) noexcept try {
    const bool is_part = upto == of_.nbytes() || upto - told_ >= of_.least_part();
    if (outcome_ && is_part && upto != told_) {
      const ByteRange part{told_, upto};
      RangeSet found;
      of_.add_found(part, found);
      told_ = upto;
      outcome_ = each_(part, std::move(found), from_);
    }
    return static_cast<bool>(outcome_);
  } catch (const std::bad_alloc&) {
    outcome_ = Error::no_memory();
    return false;
  } catch (...) {
    outcome_ =
        fail(ISTHMUS_ERROR_INTERNAL, "an exception while the written bytes were being processed");
    return false;
  }
  [[nodiscard]] Result<void>& outcome() noexcept { return outcome_; }
  [[nodiscard]] std::size_t told() const noexcept { return told_; }

 private:
  const HashMemory& of_;
  const std::byte* from_;
  const PartVisitor& each_;
  std::size_t told_ = 0;
  Result<void> outcome_;
};

// On failure, chunks past the last reported range may already be recorded as synchronized although
// they were not reported. They become unknown, so that they count as written.
Result<void> HashMemory::take_in_parts(Writers writers, const PartVisitor& each) {
  const bool stays = writers == Writers::none;
  PartsDone done{*this, stays ? view_ : library_, each};
  share_out_in_order(
      nbytes_,
      [&](std::size_t at, std::size_t n) {
        each_part(ByteRange{at, at + n}, [&](std::size_t number, const ByteRange&) {
          stays ? look_and_keep(number) : look_and_snap(number);
        });
      },
      [&](std::size_t upto) { return done.tell(upto); });
  if (!done.outcome()) {
    for (auto number = (done.told() + k_chunk - 1) / k_chunk; number < chunks_.size(); ++number) {
      chunks_[number].last = Same::unknown;
    }
  }
  return std::move(done.outcome());
}

void HashMemory::expect_writers() {
  if (all_hashed_) {
    return;
  }
  RangeSet as_they_are;
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    if (chunks_[number].last == Same::as_it_is) {
      as_they_are.add(range_of(number));
    }
  }
  each_part(as_they_are, [this](std::size_t number, const ByteRange& whole) {
    is_same(number, hash_chunk(number, view_ + whole.begin));
  });
  all_hashed_ = true;
}

Result<const std::byte*> HashMemory::snapshot(const RangeSet& ranges, Writers writers) {
  if (writers == Writers::none) {
    all_hashed_ = false;
    for (const auto& range : ranges) {
      each_part(range, [this](std::size_t number, const ByteRange&) {
        auto& one = chunks_[number];
        one.last_same = one.looked_at;
        one.last = one.was_looked_at ? Same::by_hash : Same::as_it_is;
      });
    }
    return view_;
  }
  each_part(ranges, [this](std::size_t number, const ByteRange& part) { snap(number, part); });
  return library_;
}

void HashMemory::snap(std::size_t number, const ByteRange& part) noexcept {
  if (part == range_of(number)) {
    copy_unwatched(library_ + part.begin, view_ + part.begin, part.nbytes());
    is_same(number, hash_chunk(number, library_ + part.begin));
  } else {
    snap_part(number, part);
  }
}

void HashMemory::copy_chunk(std::size_t number, ChunkCopy& copy) noexcept {
  auto& one = chunks_[number];
  const auto range = range_of(number);
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  const auto now = hash_copy(number, copy);
  if (one.last == Same::as_it_is) {
    is_same(number, now);
  } else if (now != one.last_same) {
    one.last = Same::unknown;
  }
}

// One copy of the complete chunk shows whether the chunk changed. If it did, the hash cannot show
// which part did, so the rest of the chunk counts as written.
void HashMemory::snap_part(std::size_t number, const ByteRange& part) noexcept {
  ChunkCopy copy;
  copy_chunk(number, copy);
  const auto first = range_of(number).begin;
  std::memcpy(library_ + part.begin, copy.data() + (part.begin - first), part.nbytes());
}

Result<void> HashMemory::publish(const RangeSet& ranges, Writers writers) {
  all_hashed_ = all_hashed_ && writers == Writers::some;
  each_part(ranges, [&](std::size_t number, const ByteRange& part) { put(number, part, writers); });
  return {};
}

void HashMemory::put(std::size_t number, const ByteRange& part, Writers writers) noexcept {
  auto& one = chunks_[number];
  one.was_looked_at = false;
  if (writers == Writers::none) {
    one.last = Same::as_it_is;
  } else if (part == range_of(number)) {
    is_same(number, hash_chunk(number, library_ + part.begin));
  } else {
    learn_part(number, part);
  }
  copy_unwatched(view_ + part.begin, library_ + part.begin, part.nbytes());
}

// The rest of the chunk is unchanged only if the complete chunk was, immediately before.
void HashMemory::learn_part(std::size_t number, const ByteRange& part) noexcept {
  const auto range = range_of(number);
  ChunkCopy copy;
  copy_chunk(number, copy);
  if (chunks_[number].last == Same::by_hash) {
    std::memcpy(copy.data() + (part.begin - range.begin), library_ + part.begin, part.nbytes());
    is_same(number, hash_copy(number, copy));
  }
}

// Without other writers the rest of the chunks that the write touches stays synchronized, whatever
// their state was.
Result<std::byte*> HashMemory::begin_write(const ByteRange& range, bool keeps, Writers writers) {
  if (writers == Writers::some) {
    return TrackedMemory::begin_write(range, keeps, writers);
  }
  in_place_.push_back(range);
  leave_as_they_are(range);
  return view_ + range.begin;
}

void HashMemory::leave_as_they_are(const ByteRange& range) noexcept {
  all_hashed_ = false;
  each_part(range, [this](std::size_t number, const ByteRange&) {
    chunks_[number].last = Same::as_it_is;
    chunks_[number].was_looked_at = false;
  });
}

// If there are other writers by now, `expect_writers` has hashed these chunks with zeros in place
// of the write. They now get the hashes of their complete contents.
Result<void> HashMemory::end_write(const ByteRange& range, const RangeSet& written,
                                   const std::byte* begun, Writers writers) {
  if (begun != view_ + range.begin) {
    return TrackedMemory::end_write(range, written, begun, writers);
  }
  const auto last = std::find(in_place_.rbegin(), in_place_.rend(), range);
  in_place_.erase(std::prev(last.base()));
  if (writers == Writers::none) {
    leave_as_they_are(range);
    return {};
  }
  each_part(written,
            [this](std::size_t number, const ByteRange& part) { end_in_place(number, part); });
  return {};
}

void HashMemory::end_in_place(std::size_t number, const ByteRange& part) noexcept {
  auto& one = chunks_[number];
  const auto whole = range_of(number);
  ChunkCopy copy;
  copy_unwatched(copy.data(), view_ + whole.begin, whole.nbytes());
  const auto now = hash_copy(number, copy);
  std::memset(copy.data() + (part.begin - whole.begin), 0, part.nbytes());
  one.was_looked_at = false;
  if (one.last == Same::by_hash && hash_copy(number, copy) == one.last_same) {
    is_same(number, now);
  } else {
    one.last = Same::unknown;
  }
}

}  // namespace isthmus::tracking
