// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/mapped_chunks.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <numeric>

#include "core/lock_guard.hpp"

namespace isthmus::sim {

bool MappedChunks::add(std::size_t offset, std::size_t nbytes) noexcept try {
  const LockGuard hold{lock_};
  return chunks_.emplace(offset, nbytes).second;
} catch (const std::bad_alloc&) {
  return false;
}

bool MappedChunks::remove(std::size_t offset, std::size_t nbytes) noexcept {
  const LockGuard hold{lock_};
  const auto found = chunks_.find(offset);
  if (found == chunks_.end() || found->second != nbytes) {
    return false;
  }
  chunks_.erase(found);
  return true;
}

bool MappedChunks::cover(std::size_t offset, std::size_t nbytes) const noexcept {
  const LockGuard hold{lock_};
  auto it = chunks_.upper_bound(offset);
  if (it == chunks_.begin()) {
    return false;
  }
  --it;
  const auto end = offset + nbytes;
  for (auto covered_end = it->first + it->second; covered_end < end;
       covered_end = it->first + it->second) {
    ++it;
    if (it == chunks_.end() || it->first != covered_end) {
      return false;
    }
  }
  return offset < it->first + it->second || nbytes == 0;
}

MappedChunks::Range MappedChunks::contiguous_range_at(std::size_t offset) const noexcept {
  const LockGuard hold{lock_};
  auto first = chunks_.upper_bound(offset);
  if (first == chunks_.begin() || offset >= std::prev(first)->first + std::prev(first)->second) {
    return {};
  }
  auto next = first--;
  while (first != chunks_.begin() &&
         std::prev(first)->first + std::prev(first)->second == first->first) {
    --first;
  }
  auto end = std::prev(next)->first + std::prev(next)->second;
  for (; next != chunks_.end() && next->first == end; ++next) {
    end += next->second;
  }
  return {first->first, end - first->first};
}

std::size_t MappedChunks::total_bytes() const noexcept {
  const LockGuard hold{lock_};
  return std::accumulate(chunks_.begin(), chunks_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& each) { return sum + each.second; });
}

void MappedChunks::begin_use(std::size_t offset, std::size_t nbytes) {
  const LockGuard hold{lock_};
  uses_.push_back({offset, nbytes});
}

void MappedChunks::end_use(std::size_t offset, std::size_t nbytes) noexcept {
  const LockGuard hold{lock_};
  uses_.erase(std::find(uses_.begin(), uses_.end(), Range{offset, nbytes}));
}

bool MappedChunks::in_use(std::size_t offset, std::size_t nbytes) const noexcept {
  const LockGuard hold{lock_};
  return std::any_of(uses_.begin(), uses_.end(), [&](const Range& each) {
    return each.offset < offset + nbytes && offset < each.offset + each.nbytes;
  });
}

}  // namespace isthmus::sim
