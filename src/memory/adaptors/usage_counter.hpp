// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of what is live, its peak, and the total so far, in bytes and allocations. Thread-safe.
//
// Each thread counts in its own slot by plain additions: two for an allocation and two for a free,
// some 2 ns together, however many threads there are. Counts are exact nevertheless. An open slot
// has a bound on how much more may be allocated than freed through it, and the bounds of all slots
// together never exceed the peak. So a thread that stays within its bound need not read the counts
// of other threads. A thread that exceeds it takes the lock. If what the peak leaves suffices, the
// thread gets a new bound. Otherwise it closes all slots, adds up what is live, raises the peak if
// that is above it, and opens its own slot; other slots open when their threads next take the lock.
// While the peak rises each allocation takes the lock; after slots were closed twice in short
// order, all counting does for some time.
//
// A thread first counts and then reads its bound; only the compiler is prevented from changing that
// order. A thread that closes slots therefore fences all threads of the process before it reads
// their counts (os/process_fence.hpp): either it sees a count, or the thread that counts sees the
// closed bound and then waits for the lock. Where the kernel has no such fence no slot opens. What
// is counted but waits for the lock is not allocated or freed yet, so it is right both to include
// it and not to. And the peak is never overstated: a free is counted before its memory can be
// allocated again.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "core/thread_number.hpp"

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

  // Call after the memory was allocated.
  void add(std::size_t nbytes) noexcept {
    if (const auto rest = try_add(nbytes); rest != Rest::none) [[unlikely]] {
      finish_add(nbytes, rest);
    }
  }
  // Call before the memory is returned.
  void remove(std::size_t nbytes) noexcept {
    if (const auto rest = try_remove(nbytes); rest != Rest::none) [[unlikely]] {
      finish_remove(nbytes, rest);
    }
  }
  // The same in two steps, for callers whose fast path makes no call. The second step takes the
  // result of the first, since another thread may create this one's slot between the two.
  enum class Rest : std::uint8_t { none, bound_check, all };
  [[nodiscard]] Rest try_add(std::size_t nbytes) noexcept {
    auto* own = own_slot();
    return own == nullptr ? Rest::all : own->enter(nbytes) ? Rest::none : Rest::bound_check;
  }
  [[nodiscard]] Rest try_remove(std::size_t nbytes) noexcept {
    auto* own = own_slot();
    return own == nullptr ? Rest::all : own->leave(nbytes) ? Rest::none : Rest::bound_check;
  }
  void finish_add(std::size_t nbytes, Rest rest) noexcept;
  void finish_remove(std::size_t nbytes, Rest rest) noexcept;
  // Undoes `remove`: the memory was not returned.
  void restore(std::size_t nbytes) noexcept;

  [[nodiscard]] Counts read() noexcept;
  // What is live may be below 0, as two's complement, if more was removed than added.
  [[nodiscard]] Counts read_signed() noexcept;
  // The peaks become what is live, the totals 0.
  void reset() noexcept;

 private:
  using Number = std::atomic<std::uint64_t>;
  using Difference = std::int64_t;
  static constexpr auto k_closed = std::numeric_limits<Difference>::min();

  static constexpr auto k_relaxed = std::memory_order_relaxed;
  static constexpr auto k_acquire = std::memory_order_acquire;

  // Bytes or allocations that were counted in one slot.
  struct Flow {
    Number in{0}, out{0};  // written by the slot's thread
    // Maximum of `in` less `out`; written under the lock, as all below.
    std::atomic<Difference> limit{k_closed};
    Difference bound = 0;  // `limit` while open; else what was live at its closing

    // Pre: no other thread writes it.
    static std::uint64_t raise(Number& own, std::uint64_t amount) noexcept {
      const auto sum = own.load(k_relaxed) + amount;
      own.store(sum, std::memory_order_release);
      return sum;
    }
    [[nodiscard]] bool is_within(std::uint64_t entered) const noexcept {
      return static_cast<Difference>(entered - out.load(k_relaxed)) <= limit.load(k_relaxed);
    }
    // Loads `in` before `out`, so that the result is never too large.
    [[nodiscard]] Difference live() const noexcept {
      const auto entries = in.load(k_acquire);
      return static_cast<Difference>(entries - out.load(k_acquire));
    }
  };

  struct alignas(64) Slot {
    Flow bytes, count;

    // Called by the slot's thread. False: take the lock.
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
  // Cache lines are fetched in pairs, and adjacent slots are those of two threads.
  struct alignas(128) PaddedSlot : Slot {};

  // Of bytes or allocations, all slots together; guarded by the lock.
  struct Sum {
    std::uint64_t peak = 0;
    Difference slack = 0;          // the peak less the bounds of all slots
    std::uint64_t base_total = 0;  // the total at the last reset

    void collect(Flow& flow) noexcept;
    void raise_peak() noexcept;
    void open(Flow& flow, Difference share) noexcept;
    // Pre: all slots are closed.
    [[nodiscard]] Difference live() const noexcept;
    void reset(std::uint64_t all_in) noexcept;
  };

  // The slot of this thread; null if it has none, or none yet.
  [[nodiscard]] Slot* own_slot() noexcept {
    const auto thread = thread_number();
    if (thread == first_thread_.load(k_relaxed)) [[likely]] {
      return &first_;
    }
    auto* extra = extra_slots_.load(k_acquire);
    return extra != nullptr && thread - 1 < k_extra_slots ? &extra[thread - 1] : nullptr;
  }

  // Pre, here and below: the lock is held.
  [[nodiscard]] Slot& own_or_shared() noexcept;
  // Gives this thread a slot, if possible.
  void claim() noexcept;
  void allocate_slots() noexcept;
  [[nodiscard]] Slot& slot_of(std::uint32_t thread) noexcept;
  // Brings what was counted in this thread's slot within the peak, which rises if necessary.
  void rebalance(Slot& own) noexcept;
  void collect(Slot& own) noexcept;
  void open(Slot& own) noexcept;
  void close_all() noexcept;
  [[nodiscard]] std::uint64_t all_in(Flow Slot::*value) noexcept;
  [[nodiscard]] Counts read_clamped(Difference min) noexcept;
  template <class Body>
  auto locked(Body&& body) noexcept;

  static constexpr std::uint32_t k_no_thread = ~std::uint32_t{0};
  static constexpr std::size_t k_extra_slots =
      k_thread_numbers - 1;  // slot i is that of thread i + 1

  // Of the first thread that counted, and then of threads that have its number.
  Slot first_;
  Slot shared_;  // of threads without one, under the lock
  std::atomic<std::uint32_t> first_thread_{k_no_thread};
  std::atomic<PaddedSlot*> extra_slots_{nullptr};  // allocated when a second thread counts
  std::mutex lock_;
  Sum bytes_, count_;
  bool needs_slots_ = false;        // a thread without a slot freed: a free allocates none
  std::uint64_t open_ = 0;          // a bit per thread with an open slot
  std::uint64_t claimed_ = 0;       // a bit per thread whose slot was used
  std::uint64_t closed_at_ = 0;     // total allocations at the last closing
  std::uint32_t closed_calls_ = 0;  // for so many more calls
};

}  // namespace isthmus
