#include "tracking/hash_memory.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/sanitizers.hpp"
#include "core/share_out.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

// Calls visit(number of the chunk, part of it) for each chunk that [begin, end) touches, in order.
template <class Visit>
void each_part(const byte_range& range, const Visit& visit) {
  for (auto at = range.begin; at < range.end;) {
    const auto number = at / hash_memory::k_chunk;
    const auto end = std::min(range.end, (number + 1) * hash_memory::k_chunk);
    visit(number, byte_range{at, end});
    at = end;
  }
}

// The same of many, the parts of a long range on several threads: each chunk on one.
template <class Visit>
void each_part(const range_set& ranges, const Visit& visit) {
  for (const auto& range : ranges) {
    const auto first = range.begin / hash_memory::k_chunk * hash_memory::k_chunk;
    share_out(range.end - first, [&](std::size_t at, std::size_t n) {
      each_part(byte_range{std::max(range.begin, first + at), first + at + n}, visit);
    });
  }
}

}  // namespace

hash_memory::hash hash_memory::hash_of(const std::byte* bytes, std::size_t nbytes) noexcept {
  const auto found = XXH3_128bits(bytes, nbytes);
  return {found.low64, found.high64};
}

hash_memory::hash hash_memory::hash_unwatched(const std::byte* bytes, std::size_t nbytes) noexcept {
  if constexpr (k_thread_sanitizer) {
    chunk_copy copy;
    copy_unwatched(copy.data(), bytes, nbytes);
    return hash_of(copy.data(), nbytes);
  } else {
    return hash_of(bytes, nbytes);
  }
}

// All zeros are the same at first.
hash_memory::hash_memory(std::size_t nbytes)
    : tracked_memory{means::hashes, nbytes}, chunks_((nbytes + k_chunk - 1) / k_chunk) {
  static constexpr chunk_copy k_zeros{};
  const auto whole = hash_of(k_zeros.data(), k_chunk);
  for (auto& each : chunks_) {
    each.last_same = whole;
  }
  const auto last = range_of(chunks_.size() - 1);
  chunks_.back().last_same = hash_of(k_zeros.data(), last.nbytes());
}

result<std::unique_ptr<tracked_memory>> hash_memory::create(const request& wanted) {
  auto view = os::map_pages(wanted.nbytes, os::page_size());
  ISTHMUS_TRY(view);
  undo not_made{[&] { os::unmap_pages(*view, wanted.nbytes); }};
  std::unique_ptr<hash_memory> made{new hash_memory{wanted.nbytes}};
  not_made.dismiss();
  made->view_ = static_cast<std::byte*>(*view);
  auto library = os::map_pages(wanted.nbytes, os::page_size());
  ISTHMUS_TRY(library);
  made->library_ = static_cast<std::byte*>(*library);
  return std::unique_ptr<tracked_memory>{std::move(made)};
}

hash_memory::~hash_memory() {
  for (auto* const face : {view_, library_}) {
    if (face != nullptr) {
      os::unmap_pages(face, nbytes_);
    }
  }
}

byte_range hash_memory::range_of(std::size_t number) const noexcept {
  return {number * k_chunk, std::min((number + 1) * k_chunk, nbytes_)};
}

void hash_memory::look_at(std::size_t number) noexcept {
  auto& one = chunks_[number];
  const auto range = range_of(number);
  one.looked_at = hash_unwatched(view_ + range.begin, range.nbytes());
  one.was_looked_at = true;
  one.is_written = !one.is_known || one.looked_at != one.last_same;
}

void hash_memory::take(range_set& written) {
  share_out(nbytes_, [this](std::size_t at, std::size_t n) {
    for (auto number = at / k_chunk; number * k_chunk < at + n; ++number) {
      look_at(number);
    }
  });
  range_set found;
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    if (chunks_[number].is_written) {
      found.add(range_of(number));
    }
  }
  written.add(found);
}

result<const std::byte*> hash_memory::snapshot(const range_set& ranges, writers who) {
  each_part(ranges, [&](std::size_t number, const byte_range& part) { snap(number, part, who); });
  return who == writers::none ? view_ : library_;
}

void hash_memory::snap(std::size_t number, const byte_range& part, writers who) noexcept {
  auto& one = chunks_[number];
  const auto whole = range_of(number);
  if (who == writers::none) {
    one.last_same =
        one.was_looked_at ? one.looked_at : hash_of(view_ + whole.begin, whole.nbytes());
    one.is_known = true;
  } else if (part == whole) {
    copy_unwatched(library_ + part.begin, view_ + part.begin, part.nbytes());
    one.last_same = hash_of(library_ + part.begin, part.nbytes());
    one.is_known = true;
  } else {
    snap_part(number, part);
  }
}

void hash_memory::copy_chunk(std::size_t number, chunk_copy& copy) noexcept {
  auto& one = chunks_[number];
  const auto range = range_of(number);
  copy_unwatched(copy.data(), view_ + range.begin, range.nbytes());
  one.is_known = one.is_known && hash_of(copy.data(), range.nbytes()) == one.last_same;
}

// One copy of the whole chunk tells whether it is as it was; what the rest of a changed one is like
// cannot be told, so that it counts as written.
void hash_memory::snap_part(std::size_t number, const byte_range& part) noexcept {
  chunk_copy copy;
  copy_chunk(number, copy);
  const auto first = range_of(number).begin;
  std::memcpy(library_ + part.begin, copy.data() + (part.begin - first), part.nbytes());
}

result<void> hash_memory::publish(const range_set& ranges) {
  each_part(ranges, [this](std::size_t number, const byte_range& part) { put(number, part); });
  return {};
}

void hash_memory::put(std::size_t number, const byte_range& part) noexcept {
  chunks_[number].was_looked_at = false;
  if (part == range_of(number)) {
    chunks_[number].last_same = hash_of(library_ + part.begin, part.nbytes());
    chunks_[number].is_known = true;
    copy_unwatched(view_ + part.begin, library_ + part.begin, part.nbytes());
  } else {
    publish_part(number, part);
  }
}

// The rest is the same only if the chunk was, just before.
void hash_memory::publish_part(std::size_t number, const byte_range& part) noexcept {
  auto& one = chunks_[number];
  const auto range = range_of(number);
  chunk_copy copy;
  copy_chunk(number, copy);
  if (one.is_known) {
    std::memcpy(copy.data() + (part.begin - range.begin), library_ + part.begin, part.nbytes());
    one.last_same = hash_of(copy.data(), range.nbytes());
  }
  copy_unwatched(view_ + part.begin, library_ + part.begin, part.nbytes());
}

}  // namespace isthmus::tracking
