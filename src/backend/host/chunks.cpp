#include "backend/host/chunks.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>

#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::host {
namespace {

// What a failed move lost of reserved addresses: others may have it, so that it is never unmapped.
class lost_addresses {
 public:
  void add(const void* at, std::size_t nbytes) noexcept try {
    const std::lock_guard hold{lock_};
    ranges_[address(at)] = nbytes;
  } catch (const std::bad_alloc&) {
    forgot_some_ = true;
  }
  // Calls unmap(first, bytes) for what is left of a reservation, and forgets the rest.
  template <class Unmap>
  void unmap_around(void* base, std::size_t nbytes, Unmap&& unmap) {
    auto* first = static_cast<std::byte*>(base);
    const auto* const end = first + nbytes;
    const std::lock_guard hold{lock_};
    if (forgot_some_) {
      return;  // address space is lost, and nobody's memory
    }
    auto at = ranges_.lower_bound(address(base));
    while (at != ranges_.end() && at->first < address(end)) {
      const auto skipped = at->first - address(first);
      if (skipped != 0) {
        unmap(first, skipped);
      }
      first += skipped + at->second;
      at = ranges_.erase(at);
    }
    if (first != end) {
      unmap(first, static_cast<std::size_t>(end - first));
    }
  }

 private:
  std::mutex lock_;
  std::map<std::uintptr_t, std::size_t> ranges_;
  std::atomic<bool> forgot_some_{false};
};

class page_chunks final : public chunk_source {
 public:
  // No page size that Linux has is more than this.
  [[nodiscard]] std::size_t granularity() const noexcept override { return std::size_t{64} << 10; }
  [[nodiscard]] bool divides() const noexcept override { return true; }

  // At a boundary of huge pages from their size on.
  result<void*> reserve(std::size_t nbytes, std::size_t alignment) override {
    constexpr auto k_huge_page = std::size_t{2} << 20;
    const auto least = nbytes >= k_huge_page ? k_huge_page : granularity();
    return os::reserve_addresses(nbytes, std::max(alignment, least));
  }
  void release(void* base, std::size_t nbytes) noexcept override {
    lost_.unmap_around(base, nbytes, os::unmap_pages);
  }

  result<void> create(void* at, std::size_t nbytes) override {
    ISTHMUS_TRY(os::commit_pages(at, nbytes));
    os::prefer_huge_pages(at, nbytes);
    return {};
  }
  result<void> move(void* from, void* to, std::size_t nbytes) override {
    bool to_lost = false;
    auto moved = os::move_pages(from, to, nbytes, to_lost);
    if (to_lost) {
      lost_.add(to, nbytes);
    }
    return moved;
  }
  void destroy(void* at, std::size_t nbytes) noexcept override { os::decommit_pages(at, nbytes); }

 private:
  lost_addresses lost_;
};

bool try_once(chunk_source& source) {
  const auto nbytes = source.granularity();
  auto range = source.reserve(2 * nbytes, 1);
  if (!range) {
    return false;
  }
  auto* const from = static_cast<std::byte*>(*range);
  const bool moved = source.create(from, nbytes) && source.move(from, from + nbytes, nbytes);
  source.release(from, 2 * nbytes);
  return moved;
}

}  // namespace

chunk_source* movable_chunks() noexcept {
  static auto* const only = new page_chunks;  // never destroyed: exits find it
  static const bool works = try_once(*only);
  return works ? only : nullptr;
}

}  // namespace isthmus::host
