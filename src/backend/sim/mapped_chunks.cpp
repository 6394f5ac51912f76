#include "backend/sim/mapped_chunks.hpp"

#include <algorithm>
#include <new>
#include <numeric>

namespace isthmus::sim {

bool mapped_chunks::add(std::size_t offset, std::size_t nbytes) noexcept try {
  const std::lock_guard hold{lock_};
  return chunks_.emplace(offset, nbytes).second;
} catch (const std::bad_alloc&) {
  return false;
}

bool mapped_chunks::remove(std::size_t offset, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  const auto at = chunks_.find(offset);
  if (at == chunks_.end() || at->second != nbytes) {
    return false;
  }
  chunks_.erase(at);
  return true;
}

bool mapped_chunks::cover(std::size_t offset, std::size_t nbytes) const noexcept {
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

std::size_t mapped_chunks::total_bytes() const noexcept {
  const std::lock_guard hold{lock_};
  return std::accumulate(chunks_.begin(), chunks_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& each) { return sum + each.second; });
}

void mapped_chunks::begin_use(std::size_t offset, std::size_t nbytes) {
  const std::lock_guard hold{lock_};
  uses_.push_back({offset, nbytes});
}

void mapped_chunks::end_use(std::size_t offset, std::size_t nbytes) noexcept {
  const std::lock_guard hold{lock_};
  uses_.erase(std::find(uses_.begin(), uses_.end(), part{offset, nbytes}));
}

bool mapped_chunks::in_use(std::size_t offset, std::size_t nbytes) const noexcept {
  const std::lock_guard hold{lock_};
  return std::any_of(uses_.begin(), uses_.end(), [&](const part& each) {
    return each.offset < offset + nbytes && offset < each.offset + each.nbytes;
  });
}

}  // namespace isthmus::sim
