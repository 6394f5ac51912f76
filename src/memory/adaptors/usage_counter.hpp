// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of what is live, its peak, and the total so far, in bytes and allocations. Thread-safe.
//
// Each thread counts in its own slot by plain additions: two for an allocation and two for a free,
// some 2 ns together, however many threads there are. Counts are exact nevertheless. An open slot
// has a bound on how much more may have come in through it than went out, and the bounds of all
// slots together never exceed the peak. So a thread that stays within its bound need not look at
// other threads. A thread that exceeds it takes the lock. If what the peak leaves suffices, the
// thread gets a new bound. Otherwise it closes all slots, adds up what is live, raises the peak if
// that is above it, and opens its own slot; other slots open when their threads next take the lock.
// While the peak rises each allocation takes the lock; after slots were closed twice in short
// order, all counting does for some time.
//
// A thread first counts and then reads its bound; only the compiler is kept from changing that
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

class usage_counter {
 public:
  struct level {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  struct counts {
    level current, peak, total;
  };

  usage_counter() = default;
  usage_counter(const usage_counter&) = delete;
  usage_counter& operator=(const usage_counter&) = delete;
  ~usage_counter();

  // Call after the memory was allocated.
  void add(std::size_t nbytes) noexcept {
    if (const auto left = try_add(nbytes); left != rest::nothing) [[unlikely]] {
      finish_add(nbytes, left);
    }
  }
  // Call before the memory is returned.
  void remove(std::size_t nbytes) noexcept {
    if (const auto left = try_remove(nbytes); left != rest::nothing) [[unlikely]] {
      finish_remove(nbytes, left);
    }
  }
  // The same in two steps, for callers whose warm path makes no call. The second step takes the
  // result of the first, since another thread may create this one's slot between the two.
  enum class rest : std::uint8_t { nothing, but_bound, all };
  [[nodiscard]] rest try_add(std::size_t nbytes) noexcept {
    auto* own = own_slot();
    return own == nullptr ? rest::all : own->enter(nbytes) ? rest::nothing : rest::but_bound;
  }
  [[nodiscard]] rest try_remove(std::size_t nbytes) noexcept {
    auto* own = own_slot();
    return own == nullptr ? rest::all : own->leave(nbytes) ? rest::nothing : rest::but_bound;
  }
  void finish_add(std::size_t nbytes, rest left) noexcept;
  void finish_remove(std::size_t nbytes, rest left) noexcept;
  // Undoes `remove`: the memory was not returned.
  void restore(std::size_t nbytes) noexcept;

  [[nodiscard]] counts read() noexcept;
  // What is live may be below 0, as two's complement, if more was removed than added.
  [[nodiscard]] counts read_signed() noexcept;
  // The peaks become what is live, the totals 0.
  void reset() noexcept;

 private:
  using number = std::atomic<std::uint64_t>;
  using difference = std::int64_t;
  static constexpr auto k_closed = std::numeric_limits<difference>::min();

  static constexpr auto k_relaxed = std::memory_order_relaxed;
  static constexpr auto k_acquire = std::memory_order_acquire;

  // Bytes or allocations that were counted in one slot.
  struct flow {
    number in{0}, out{0};  // written by the slot's thread
    // Maximum of `in` less `out`; written under the lock, as all below.
    std::atomic<difference> most{k_closed};
    difference bound = 0;  // `most` while open; else what was live at its closing

    // Pre: no other thread writes it.
    static std::uint64_t raise(number& own, std::uint64_t amount) noexcept {
      const auto now = own.load(k_relaxed) + amount;
      own.store(now, std::memory_order_release);
      return now;
    }
    [[nodiscard]] bool is_within(std::uint64_t now_in) const noexcept {
      return static_cast<difference>(now_in - out.load(k_relaxed)) <= most.load(k_relaxed);
    }
    // Loads `in` before `out`, so that the result is never too large.
    [[nodiscard]] difference live() const noexcept {
      const auto entries = in.load(k_acquire);
      return static_cast<difference>(entries - out.load(k_acquire));
    }
  };

  struct alignas(64) slot {
    flow bytes, count;

    // By the slot's thread. False: take the lock.
    [[nodiscard]] bool enter(std::uint64_t nbytes) noexcept {
      const auto now_bytes = flow::raise(bytes.in, nbytes);
      const auto now_count = flow::raise(count.in, 1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return bytes.is_within(now_bytes) && count.is_within(now_count);
    }
    [[nodiscard]] bool leave(std::uint64_t nbytes) noexcept {
      flow::raise(bytes.out, nbytes);
      flow::raise(count.out, 1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return count.most.load(k_relaxed) != k_closed;
    }
    void close() noexcept {
      bytes.most.store(k_closed, k_relaxed);
      count.most.store(k_closed, k_relaxed);
    }
  };
  // Cache lines are fetched in pairs, and adjacent slots are those of two threads.
  struct alignas(128) slot_of_more : slot {};

  // Of bytes or allocations, all slots together; guarded by the lock.
  struct sum {
    std::uint64_t peak = 0;
    difference spare = 0;         // the peak less the bounds of all slots
    std::uint64_t forgotten = 0;  // the total at the last reset

    void take_in(flow& of) noexcept;
    void raise_peak() noexcept;
    void open(flow& of, difference share) noexcept;
    // Pre: all slots are closed.
    [[nodiscard]] difference live() const noexcept;
    void reset(std::uint64_t all_in) noexcept;
  };

  // The slot of this thread; null if it has none, or none yet.
  [[nodiscard]] slot* own_slot() noexcept {
    const auto mine = thread_number();
    if (mine == firsts_.load(k_relaxed)) [[likely]] {
      return &first_;
    }
    auto* more = more_.load(k_acquire);
    return more != nullptr && mine - 1 < k_more ? &more[mine - 1] : nullptr;
  }

  // Pre, here and below: the lock is held.
  [[nodiscard]] slot& own_or_others() noexcept;
  // Gives this thread a slot, if possible.
  void claim() noexcept;
  void make_more() noexcept;
  [[nodiscard]] slot& slot_of(std::uint32_t thread) noexcept;
  // Brings what was counted in this thread's slot within the peak, which rises if necessary.
  void settle(slot& own) noexcept;
  void take_in(slot& own) noexcept;
  void open(slot& own) noexcept;
  void close_all() noexcept;
  [[nodiscard]] std::uint64_t all_in(flow slot::*of) noexcept;
  [[nodiscard]] counts read_from(difference least) noexcept;
  template <class Body>
  auto locked(Body&& body) noexcept;

  static constexpr std::uint32_t k_nobody = ~std::uint32_t{0};
  static constexpr std::size_t k_more = k_thread_numbers - 1;  // slot i is that of thread i + 1

  // Of the first thread that counted, and then of threads that have its number.
  slot first_;
  slot others_;  // of threads without one, under the lock
  std::atomic<std::uint32_t> firsts_{k_nobody};
  std::atomic<slot_of_more*> more_{nullptr};  // made when a second thread counts
  std::mutex lock_;
  sum bytes_, count_;
  bool lacks_slots_ = false;       // a thread without a slot freed: a free makes none
  std::uint64_t open_ = 0;         // a bit per thread with an open slot
  std::uint64_t claimed_ = 0;      // a bit per thread whose slot was used
  std::uint64_t closed_at_ = 0;    // total allocations at the last closing
  std::uint32_t keep_closed_ = 0;  // for so many more calls
};

}  // namespace isthmus
