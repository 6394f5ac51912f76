#pragma once
// Counts of what is live, the most that was, and all so far, in bytes and allocations.
//
// The first thread that counts owns one half of the counts, and writes it without atomic
// read-modify-write operations: two plain additions for an allocation and two for a free, some
// 2 ns together while nobody else allocates, as he then looks at his own half alone. All other
// threads share the other half, with two such operations each.
//
// Counts are exact. An allocation looks at what is live, in both halves, for a new peak. A store of
// the owner's may stay unseen for a moment by a thread that allocates at the same time, and the
// other way round; so what reduces or reads the counts looks as well, and no level that can be told
// from another order of events is missed. None is made up: a free is counted before its memory can
// be anybody else's, and entries are read before exits, with acquire.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace isthmus {

namespace detail {
// Its address is the thread's, and later that of a thread which has its stack.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit char thread_mark;
}  // namespace detail

class usage_counter {
 public:
  struct level {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  struct counts {
    level current, peak, total;
  };

  // Once the memory was given.
  void add(std::size_t nbytes) noexcept {
    if (is_alone()) [[likely]] {
      const auto bytes = owners_bytes_.enter(nbytes);
      const auto allocations = owners_count_.enter(1);
      if (bytes > bytes_.peak.load(k_relaxed) || allocations > count_.peak.load(k_relaxed))
          [[unlikely]] {
        note_peaks();
      }
      return;
    }
    const bool mine = is_mine() || claim();
    bytes_.enter(nbytes, mine);
    count_.enter(1, mine);
  }
  // Before it goes back.
  void remove(std::size_t nbytes) noexcept { leave(nbytes, 1); }
  // It did not go back.
  void restore(std::size_t nbytes) noexcept { leave(0 - std::uint64_t{nbytes}, 0 - k_one); }

  [[nodiscard]] counts read() noexcept;
  // The peaks become what is live, the totals 0.
  void reset() noexcept;

 private:
  static constexpr std::uint64_t k_one = 1;
  using number = std::atomic<std::uint64_t>;

  static constexpr auto k_relaxed = std::memory_order_relaxed;
  static constexpr auto k_acquire = std::memory_order_acquire;

  // Pre: no other thread writes it.
  static std::uint64_t raise(number& own, std::uint64_t amount) noexcept {
    const auto now = own.load(k_relaxed) + amount;
    own.store(now, std::memory_order_release);
    return now;
  }
  struct flow {
    number in{0}, out{0};

    // What came in more than went out. Pre: no other thread writes it.
    std::uint64_t enter(std::uint64_t amount) noexcept {
      return raise(in, amount) - out.load(k_relaxed);
    }
  };
  struct quantity {
    flow& owners;
    flow others{};
    number peak{0};
    number forgotten{0};  // of what came in, by the last reset

    // What was freed here and allocated elsewhere counts for no less than nothing.
    [[nodiscard]] std::uint64_t current() const noexcept {
      const auto in = all_in();
      const auto out = owners.out.load(k_acquire) + others.out.load(k_acquire);
      return in > out ? in - out : 0;
    }
    [[nodiscard]] std::uint64_t all_in() const noexcept {
      return owners.in.load(k_acquire) + others.in.load(k_acquire);
    }
    void note_peak() noexcept {
      const auto now = current();
      auto most = peak.load(k_relaxed);
      while (now > most && !peak.compare_exchange_weak(most, now, k_relaxed)) [[unlikely]] {
      }
    }
    void enter(std::uint64_t amount, bool mine) noexcept {
      count(owners.in, others.in, amount, mine);
      note_peak();
    }
    void reset() noexcept;
  };

  static void count(number& owners, number& others, std::uint64_t amount, bool mine) noexcept {
    if (mine) [[likely]] {
      raise(owners, amount);
    } else {
      others.fetch_add(amount, std::memory_order_acq_rel);
    }
  }
  void leave(std::uint64_t nbytes, std::uint64_t allocations) noexcept {
    if (is_alone()) [[likely]] {
      raise(owners_bytes_.out, nbytes);
      raise(owners_count_.out, allocations);
      return;
    }
    const bool mine = is_mine();
    note_peaks();
    count(owners_bytes_.out, bytes_.others.out, nbytes, mine);
    count(owners_count_.out, count_.others.out, allocations, mine);
  }
  void note_peaks() noexcept {
    bytes_.note_peak();
    count_.note_peak();
  }
  // The owner, and nobody else has allocated: then there is no more than he allocated and did not
  // free, and less where others did.
  [[nodiscard]] bool is_alone() const noexcept {
    return alone_.load(k_relaxed) == &detail::thread_mark;
  }
  [[nodiscard]] bool is_mine() const noexcept {
    return owner_.load(k_relaxed) == &detail::thread_mark;
  }
  // Whether the owner's half is this thread's from here on.
  [[nodiscard]] bool claim() noexcept;

  // What the owner writes lies apart from what others do, and from what they only read.
  static constexpr char k_several = 0;
  alignas(64) std::atomic<const char*> alone_{nullptr};  // k_several: others were about to allocate
  std::atomic<const char*> owner_{nullptr};
  flow owners_bytes_;
  flow owners_count_;
  alignas(64) quantity bytes_{owners_bytes_};
  quantity count_{owners_count_};
};

}  // namespace isthmus
