// SPDX-License-Identifier: Apache-2.0
#include "memory/base/result_memory.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"
#include "core/undo.hpp"
#include "os/available_memory.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

// Below this size the C library's own cache keeps pages warm.
constexpr std::size_t k_min_cached_bytes = std::size_t{64} << 10;

// A share of physical memory within bounds: enough for several results, also of large jobs, and
// small compared with the memory of the machine.
std::size_t max_cached_bytes() {
  constexpr std::size_t k_share = 16;
  return std::clamp(os::physical_memory().total / k_share, std::size_t{64} << 20,
                    std::size_t{2} << 30);
}

// Large blocks: those allocated (`allocated_`) and those cached (`cached_`), the most recently
// freed last. Thread-safe; never destroyed.
class ResultCache {
 public:
  Result<void*> allocate(std::size_t nbytes) {
    if (nbytes > SIZE_MAX / 2) {
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "a result of {} exceeds the address space",
                  describe_bytes(nbytes));
    }
    const auto rounded = round_up(nbytes, os::page_size());
    if (void* cached = take_cached(rounded)) {
      return cached;
    }
    if (max_cached_.load(std::memory_order_relaxed) == 0) {
      max_cached_.store(max_cached_bytes(), std::memory_order_relaxed);
    }
    auto fresh = os::map_pages(rounded, os::page_size());
    ISTHMUS_TRY(fresh);
    Undo unmapped{[&] { os::unmap_pages(*fresh, rounded); }};
    const LockGuard hold{lock_};
    allocated_.emplace(*fresh, Block{*fresh, rounded, true});
    unmapped.dismiss();
    untouched_.fetch_add(1, std::memory_order_relaxed);
    return fresh;
  }

  bool take_untouched(const void* start) noexcept {
    if (untouched_.load(std::memory_order_relaxed) == 0) {
      return false;
    }
    const LockGuard hold{lock_};
    const auto found = allocated_.find(start);
    if (found == allocated_.end() || !found->second.untouched) {
      return false;
    }
    found->second.untouched = false;
    untouched_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] std::size_t cached_bytes() noexcept {
    const LockGuard hold{lock_};
    return cached_bytes_;
  }

  void lock() ISTHMUS_ACQUIRE(lock_) { lock_.lock(); }
  void unlock() ISTHMUS_RELEASE(lock_) { lock_.unlock(); }

  // False if `pointer` is not one of these blocks.
  bool free(void* pointer) noexcept {
    std::vector<Block> dropped;
    {
      const LockGuard hold{lock_};
      const auto found = allocated_.find(pointer);
      if (found == allocated_.end()) {
        return false;
      }
      cache(found->second, dropped);
      allocated_.erase(found);
    }
    for (const auto& each : dropped) {
      untouched_.fetch_sub(each.untouched ? 1 : 0, std::memory_order_relaxed);
      os::unmap_pages(each.start, each.nbytes);
    }
    return true;
  }

 private:
  struct Block {
    void* start;
    std::size_t nbytes;
    bool untouched;  // the library has not copied to it yet
  };

  // The smallest cached block that is large enough and at most about twice as large.
  void* take_cached(std::size_t nbytes) {
    const LockGuard hold{lock_};
    auto best = cached_.end();
    for (auto each = cached_.begin(); each != cached_.end(); ++each) {
      const bool fits = each->nbytes >= nbytes && each->nbytes / 2 <= nbytes;
      if (fits && (best == cached_.end() || each->nbytes < best->nbytes)) {
        best = each;
      }
    }
    if (best == cached_.end()) {
      return nullptr;
    }
    allocated_.emplace(best->start, *best);
    void* start = best->start;
    cached_bytes_ -= best->nbytes;
    cached_.erase(best);
    return start;
  }

  // Drops the oldest blocks beyond the byte limit; drops `freed` itself if there is no memory for
  // the list.
  void cache(Block freed, std::vector<Block>& dropped) noexcept ISTHMUS_REQUIRES(lock_) try {
    dropped.reserve(cached_.size() + 1);
    cached_.push_back(freed);
    cached_bytes_ += freed.nbytes;
    while (cached_bytes_ > max_cached_.load(std::memory_order_relaxed)) {
      cached_bytes_ -= cached_.front().nbytes;
      dropped.push_back(cached_.front());
      cached_.erase(cached_.begin());
    }
  } catch (const std::bad_alloc&) {
    untouched_.fetch_sub(freed.untouched ? 1 : 0, std::memory_order_relaxed);
    os::unmap_pages(freed.start, freed.nbytes);
  }

  Mutex lock_;
  std::unordered_map<const void*, Block> allocated_ ISTHMUS_GUARDED_BY(lock_);
  std::vector<Block> cached_ ISTHMUS_GUARDED_BY(lock_);
  std::size_t cached_bytes_ ISTHMUS_GUARDED_BY(lock_) = 0;
  std::atomic<std::size_t> max_cached_{0};  // 0: not determined yet
  std::atomic<std::size_t> untouched_{0};   // blocks, allocated and cached
};

// Constructed when the library is loaded, so that no fork can happen during its construction. A
// fork waits for the lock, so that the child's copy is consistent and usable.
ResultCache& process_results = *new ResultCache;
[[maybe_unused]] const int has_fork_handlers =
    pthread_atfork([]() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { process_results.lock(); },
                   []() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { process_results.unlock(); },
                   []() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS { process_results.unlock(); });

}  // namespace

Result<void*> allocate_result(std::size_t nbytes) {
  if (nbytes == 0) {
    return static_cast<void*>(nullptr);
  }
  if (nbytes >= k_min_cached_bytes) {
    return process_results.allocate(nbytes);
  }
  void* small = std::malloc(nbytes);
  if (small == nullptr) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the host cannot allocate {} for a result",
                describe_bytes(nbytes));
  }
  return small;
}

bool take_untouched_result(const void* start) noexcept {
  return process_results.take_untouched(start);
}

std::size_t cached_result_bytes() noexcept { return process_results.cached_bytes(); }

void free_result(void* pointer) noexcept {
  // Small blocks come from malloc and may be page-aligned by chance: the cache knows its own
  // blocks.
  if (pointer != nullptr &&
      (address(pointer) % os::page_size() != 0 || !process_results.free(pointer))) {
    std::free(pointer);
  }
}

}  // namespace isthmus
