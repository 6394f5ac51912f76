// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts live memory, its peak and the total so far, each in bytes and in allocations. Thread-safe.
//
// Each thread counts in its own entry by plain additions: two for an allocation and two for a free,
// about 2 ns together, for any number of threads. The counts are exact nevertheless. An open entry
// has a bound: the maximum by which allocations through it may exceed frees. The bounds of all
// entries together never exceed the peak. So a thread that stays within its bound need not read the
// counts of other threads. A thread that exceeds its bound takes the lock. If the peak leaves
// enough beyond the bounds, the thread gets a new bound. Otherwise it closes all entries, adds up
// the live counts, raises the peak if their sum is above it, and opens its own entry. Other entries
// are opened when their threads next take the lock. While the peak rises, each allocation takes the
// lock. After entries were closed twice in a short time, all counting takes the lock for some time.
//
// A thread first counts and then reads its bound; only a compiler fence enforces that order. A
// thread that closes entries therefore fences all threads of the process before it reads their
// counts (os/process_fence.hpp). Then either it sees a count, or the counting thread sees the
// closed bound and waits for the lock. Where the kernel has no such fence, no entry is opened. An
// operation that was counted and waits for the lock is still in progress, so a total may include it
// or not. The peak is never overstated, since a free is counted before its memory can be allocated
// again.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/mutex.hpp"
#include "core/thread_number.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class UsageCounter {
 public:
  struct Level {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  struct Counts {
    Level current, peak, total;
  };

  UsageCounter() = default;
  UsageCounter(const UsageCounter&) = delete;
  UsageCounter& operator=(const UsageCounter&) = delete;
  ~UsageCounter();

  // Counts an allocation. Call after the memory was allocated.
  void add(std::size_t nbytes) noexcept {
    if (const auto rest = try_add(nbytes); rest != Rest::none) [[unlikely]] {
      finish_add(nbytes, rest);
    }
  }
  // Counts a free. Call before the memory is returned.
  void remove(std::size_t nbytes) noexcept {
    if (const auto rest = try_remove(nbytes); rest != Rest::none) [[unlikely]] {
      finish_remove(nbytes, rest);
    }
  }
  // As `add` and `remove`, in two steps, for callers whose fast path makes no call. The second step
  // takes the result of the first, since another thread may create this thread's entry between the
  // two.
  enum class Rest : std::uint8_t { none, bound_check, all };
  [[nodiscard]] Rest try_add(std::size_t nbytes) noexcept {
    auto* own = own_entry();
    return own == nullptr ? Rest::all : own->enter(nbytes) ? Rest::none : Rest::bound_check;
  }
  [[nodiscard]] Rest try_remove(std::size_t nbytes) noexcept {
    auto* own = own_entry();
    return own == nullptr ? Rest::all : own->leave(nbytes) ? Rest::none : Rest::bound_check;
  }
  void finish_add(std::size_t nbytes, Rest rest) noexcept;
  void finish_remove(std::size_t nbytes, Rest rest) noexcept;
  // Undoes `remove`: the memory was not returned.
  void restore(std::size_t nbytes) noexcept;

  [[nodiscard]] Counts read() noexcept;
  // As `read`, but the live counts are negative, in two's complement, if more was removed than
  // added.
  [[nodiscard]] Counts read_signed() noexcept;
  // Sets the peaks to the live counts, and the totals to 0.
  void reset() noexcept;

 private:
  using Number = std::atomic<std::uint64_t>;
  using Difference = std::int64_t;
  static constexpr auto k_closed = std::numeric_limits<Difference>::min();

  static constexpr auto k_relaxed = std::memory_order_relaxed;
  static constexpr auto k_acquire = std::memory_order_acquire;

  // Bytes or allocations that were counted in one entry.
  struct Flow {
    Number in{0}, out{0};  // written by the entry's thread
    // The maximum of `in` less `out`. Written under the lock, like `bound`.
    std::atomic<Difference> limit{k_closed};
    Difference bound = 0;  // `limit` while open; else the live count when it was closed

    // No other thread writes `number`.
    static std::uint64_t raise(Number& number, std::uint64_t amount) noexcept {
      const auto sum = number.load(k_relaxed) + amount;
      number.store(sum, std::memory_order_release);
      return sum;
    }
    [[nodiscard]] bool is_within(std::uint64_t entered) const noexcept {
      return static_cast<Difference>(entered - out.load(k_relaxed)) <= limit.load(k_relaxed);
    }
    // Loads `in` before `out`, so that the result is never too large.
    [[nodiscard]] Difference live() const noexcept {
      const auto entered = in.load(k_acquire);
      return static_cast<Difference>(entered - out.load(k_acquire));
    }
  };

  struct alignas(64) Entry {
    Flow bytes, count;

    // Called by the entry's thread. If false, the caller must take the lock.
    [[nodiscard]] bool enter(std::uint64_t nbytes) noexcept {
      const auto entered_bytes = Flow::raise(bytes.in, nbytes);
      const auto entered_count = Flow::raise(count.in, 1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return bytes.is_within(entered_bytes) && count.is_within(entered_count);
    }
    [[nodiscard]] bool leave(std::uint64_t nbytes) noexcept {
      Flow::raise(bytes.out, nbytes);
      Flow::raise(count.out, 1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return count.limit.load(k_relaxed) != k_closed;
    }
    void close() noexcept {
      bytes.limit.store(k_closed, k_relaxed);
      count.limit.store(k_closed, k_relaxed);
    }
  };
  // Padded to two cache lines, since these are fetched together and adjacent entries belong to
  // different threads.
  struct alignas(128) PaddedEntry : Entry {};

  // The sum of all entries, in bytes or in allocations.
  struct Sum {
    std::uint64_t peak = 0;
    Difference slack = 0;          // the peak less the bounds of all entries
    std::uint64_t base_total = 0;  // the total at the last reset

    void collect(Flow& flow) noexcept;
    void raise_peak() noexcept;
    void open(Flow& flow, Difference share) noexcept;
    // Exact while all entries are closed.
    [[nodiscard]] Difference live() const noexcept;
    void reset(std::uint64_t all_in) noexcept;
  };

  // The calling thread's entry; null if it has none yet, or cannot have one.
  [[nodiscard]] Entry* own_entry() noexcept {
    const auto thread = thread_number();
    if (thread == first_thread_.load(k_relaxed)) [[likely]] {
      return &first_;
    }
    auto* extra = extra_entries_.load(k_acquire);
    return extra != nullptr && thread - 1 < k_extra_entries ? &extra[thread - 1] : nullptr;
  }

  [[nodiscard]] Entry& own_or_shared() noexcept ISTHMUS_REQUIRES(lock_);
  // Assigns an entry to the calling thread, if possible.
  void claim() noexcept ISTHMUS_REQUIRES(lock_);
  void allocate_entries() noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Entry& entry_of(std::uint32_t thread) noexcept ISTHMUS_REQUIRES(lock_);
  // Includes the counts of this thread's entry in the sums, raises the peak if necessary, and
  // reopens the entry.
  void rebalance(Entry& own) noexcept ISTHMUS_REQUIRES(lock_);
  void collect(Entry& own) noexcept ISTHMUS_REQUIRES(lock_);
  void open(Entry& own) noexcept ISTHMUS_REQUIRES(lock_);
  void close_all() noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] std::uint64_t all_in(Flow Entry::*value) noexcept ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Counts read_clamped(Difference min) noexcept;

  static constexpr std::uint32_t k_no_thread = ~std::uint32_t{0};
  static constexpr std::size_t k_extra_entries =
      k_thread_numbers - 1;  // entry i is that of thread i + 1

  // The entry of the first thread that counted, and later of threads that reuse its number.
  Entry first_;
  Entry shared_ ISTHMUS_GUARDED_BY(lock_);  // for threads without one
  std::atomic<std::uint32_t> first_thread_{k_no_thread};
  std::atomic<PaddedEntry*> extra_entries_{nullptr};  // allocated when a second thread counts
  Mutex lock_;
  Sum bytes_ ISTHMUS_GUARDED_BY(lock_);
  Sum count_ ISTHMUS_GUARDED_BY(lock_);
  // A thread without an entry has freed: a free allocates none.
  bool needs_entries_ ISTHMUS_GUARDED_BY(lock_) = false;
  std::uint64_t open_ ISTHMUS_GUARDED_BY(lock_) = 0;       // a bit per thread with an open entry
  std::uint64_t claimed_ ISTHMUS_GUARDED_BY(lock_) = 0;    // a bit per thread that used its entry
  std::uint64_t closed_at_ ISTHMUS_GUARDED_BY(lock_) = 0;  // total allocations at the last closing
  // Entries stay closed for this many calls.
  std::uint32_t closed_calls_ ISTHMUS_GUARDED_BY(lock_) = 0;
};

}  // namespace isthmus
