// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/mapped_chunks.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <numeric>

namespace isthmus::sim {

bool MappedChunks::add(std::size_t offset, std::size_t nbytes) noexcept try {
  const std::lock_guard hold{lock_};
  return chunks_.emplace(offset, nbytes).second;
} catch (const std::bad_alloc&) {
  return false;
}

bool MappedChunks::remove(std::size_t offset, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  const auto at = chunks_.find(offset);
  if (at == chunks_.end() || at->second != nbytes) {
    return false;
  }
  chunks_.erase(at);
  return true;
}

bool MappedChunks::cover(std::size_t offset, std::size_t nbytes) const noexcept {
  const std::lock_guard hold{lock_};
  auto at = chunks_.upper_bound(offset);
  if (at == chunks_.begin()) {
    return false;
  }
  --at;
  const auto end = offset + nbytes;
  for (auto behind = at->first + at->second; behind < end; behind = at->first + at->second) {
    ++at;
    if (at == chunks_.end() || at->first != behind) {
      return false;
    }
  }
  return offset < at->first + at->second || nbytes == 0;
}

MappedChunks::Part MappedChunks::stretch_at(std::size_t offset) const noexcept {
  const std::lock_guard hold{lock_};
  auto first = chunks_.upper_bound(offset);
  if (first == chunks_.begin() || offset >= std::prev(first)->first + std::prev(first)->second) {
    return {};
  }
  auto behind = first--;
  while (first != chunks_.begin() &&
         std::prev(first)->first + std::prev(first)->second == first->first) {
    --first;
  }
  auto end = std::prev(behind)->first + std::prev(behind)->second;
  for (; behind != chunks_.end() && behind->first == end; ++behind) {
    end += behind->second;
  }
  return {first->first, end - first->first};
}

std::size_t MappedChunks::total_bytes() const noexcept {
  const std::lock_guard hold{lock_};
  return std::accumulate(chunks_.begin(), chunks_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& each) { return sum + each.second; });
}

void MappedChunks::begin_use(std::size_t offset, std::size_t nbytes) {
  const std::lock_guard hold{lock_};
  uses_.push_back({offset, nbytes});
}

void MappedChunks::end_use(std::size_t offset, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  uses_.erase(std::find(uses_.begin(), uses_.end(), Part{offset, nbytes}));
}

bool MappedChunks::in_use(std::size_t offset, std::size_t nbytes) const noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(uses_.begin(), uses_.end(), [&](const Part& each) {
    return each.offset < offset + nbytes && offset < each.offset + each.nbytes;
  });
}

}  // namespace isthmus::sim
