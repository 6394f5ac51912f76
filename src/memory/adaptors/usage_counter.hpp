#pragma once
// Counts of what is live, the most that was, and all so far, in bytes and allocations.
//
// Each thread counts in a slot of its own, by plain additions: two for an allocation and two for a
// free, some 2 ns together, however many threads there are. Counts are exact all the same. A slot
// that is open has a bound, how much more may have come in through it than went out, and the bounds
// of all slots together are never above the peak. So whoever stays within his need look at nobody.
// Who does not takes the lock: the peak's remainder may have room for him, and else he closes all
// slots, adds up what is live, raises the peak if it is above, and opens his own; others' open when
// they come by. While the peak rises each allocation takes the lock; for some time after slots were
// closed twice in short order all counting does.
//
// A thread first counts and then looks at its bound, in that order by the compiler alone. Who
// closes slots fences all threads of the process in between (os/process_fence.hpp): each count is
// seen by him, or the closed bound by the thread that counts, which then waits for the lock. Where
// the kernel has no such fence no slot opens. What is counted and waits for the lock is not
// allocated or freed yet, so that it is right to have seen it, or not. And no peak is made up: a
// free is counted before its memory can be anybody else's.

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

  // Once the memory was given.
  void add(std::size_t nbytes) noexcept {
    if (const auto left = try_add(nbytes); left != rest::nothing) [[unlikely]] {
      finish_add(nbytes, left);
    }
  }
  // Before it goes back.
  void remove(std::size_t nbytes) noexcept {
    if (const auto left = try_remove(nbytes); left != rest::nothing) [[unlikely]] {
      finish_remove(nbytes, left);
    }
  }
  // The same in two steps, for callers whose warm path makes no call. The second is told what the
  // first left: between the two another thread may have made this one's slot.
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
  // It did not go back.
  void restore(std::size_t nbytes) noexcept;

  [[nodiscard]] counts read() noexcept;
  // What is live may be below 0, as two's complement: where more was removed than added.
  [[nodiscard]] counts read_signed() noexcept;
  // The peaks become what is live, the totals 0.
  void reset() noexcept;

 private:
  using number = std::atomic<std::uint64_t>;
  using difference = std::int64_t;
  static constexpr auto k_closed = std::numeric_limits<difference>::min();

  static constexpr auto k_relaxed = std::memory_order_relaxed;
  static constexpr auto k_acquire = std::memory_order_acquire;

  // Bytes or allocations through one slot.
  struct flow {
    number in{0}, out{0};                    // written by the slot's thread
    std::atomic<difference> most{k_closed};  // in less out; written under the lock, as all below
    difference bound = 0;                    // `most` while open; what was live when it closed

    // Pre: no other thread writes it.
    static std::uint64_t raise(number& own, std::uint64_t amount) noexcept {
      const auto now = own.load(k_relaxed) + amount;
      own.store(now, std::memory_order_release);
      return now;
    }
    [[nodiscard]] bool is_within(std::uint64_t now_in) const noexcept {
      return static_cast<difference>(now_in - out.load(k_relaxed)) <= most.load(k_relaxed);
    }
    // Entries before exits, so that none is made up.
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
  // Lines are fetched in pairs, and slots side by side are those of two threads.
  struct alignas(128) slot_of_more : slot {};

  // Of bytes or allocations, all slots together; under the lock.
  struct sum {
    std::uint64_t peak = 0;
    difference spare = 0;         // the peak, less the bounds of all slots
    std::uint64_t forgotten = 0;  // of what came in, by the last reset

    void take_in(flow& of) noexcept;
    void raise_peak() noexcept;
    void open(flow& of, difference share) noexcept;
    // Pre: all slots are closed.
    [[nodiscard]] difference live() const noexcept;
    void reset(std::uint64_t all_in) noexcept;
  };

  // This thread's; null if it has none, or none yet.
  [[nodiscard]] slot* own_slot() noexcept {
    const auto mine = thread_number();
    if (mine == firsts_.load(k_relaxed)) [[likely]] {
      return &first_;
    }
    auto* more = more_.load(k_acquire);
    return more != nullptr && mine - 1 < k_more ? &more[mine - 1] : nullptr;
  }

  // Under the lock, as all below.
  [[nodiscard]] slot& own_or_others() noexcept;
  // So that this thread has a slot, if it can.
  void claim() noexcept;
  void make_more() noexcept;
  [[nodiscard]] slot& slot_of(std::uint32_t thread) noexcept;
  // What was counted in this thread's slot is within the peak, raised if need be.
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

  slot first_;   // of the first thread that counted, and then of those that have its number
  slot others_;  // of threads without one, under the lock
  std::atomic<std::uint32_t> firsts_{k_nobody};
  std::atomic<slot_of_more*> more_{nullptr};  // made when a second thread counts
  std::mutex lock_;
  sum bytes_, count_;
  bool lacks_slots_ = false;       // a thread frees that has none: a free makes none
  std::uint64_t open_ = 0;         // a bit for each thread whose slot is
  std::uint64_t claimed_ = 0;      // or was
  std::uint64_t closed_at_ = 0;    // allocations in all
  std::uint32_t keep_closed_ = 0;  // for so many calls more
};

}  // namespace isthmus
