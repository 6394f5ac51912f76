#include "transfer/spinning_crew.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "backend/library_threads.hpp"
#include "core/never_destroyed.hpp"

namespace isthmus {
namespace {

constexpr std::size_t k_most_helpers = 7;
constexpr std::size_t k_least_piece = std::size_t{16} << 10;
constexpr std::size_t k_most_piece = std::size_t{64} << 10;
constexpr std::size_t k_pieces = 16;

constexpr std::uint64_t k_first_copy = std::uint64_t{1} << 32;

std::uint32_t pieces_of(std::uint64_t left) noexcept { return static_cast<std::uint32_t>(left); }

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

std::size_t helpers_for(const os::processor_set& allowed) {
  static const auto limit = os::processor_limit("");
  return spinning_crew::helpers_beside(std::min(limit, allowed.count()));
}

// A look at the processors takes as long as a small copy.
constexpr std::chrono::milliseconds k_between_starts{1};

}  // namespace

spinning_crew& spinning_crew::only() {
  static never_destroyed<spinning_crew> crew{&helpers_for};
  return *crew;
}

std::size_t spinning_crew::helpers_beside(std::size_t processors) noexcept {
  const auto third = processors / 3;
  return third < 2 ? 0 : std::min(third, k_most_helpers);
}

void spinning_crew::copy(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept {
  if (nbytes < k_least_bytes || is_busy_.exchange(true, std::memory_order_acquire)) {
    std::memcpy(to, from, nbytes);
    return;
  }
  const auto now = os::clock::now();
  if (now - last_ < k_lull && now >= may_start_at_) {
    may_start_at_ = now + k_between_starts;
    start_helpers();
  }
  if (helpers() == 0) {
    std::memcpy(to, from, nbytes);
  } else {
    share_out(to, from, nbytes);
  }
  last_ = os::clock::now();
  is_busy_.store(false, std::memory_order_release);
}

void spinning_crew::share_out(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept {
  const auto piece = std::clamp(nbytes / k_pieces, k_least_piece, k_most_piece);
  const auto pieces = static_cast<std::uint32_t>((nbytes + piece - 1) / piece);
  to_.store(to, std::memory_order_relaxed);
  from_.store(from, std::memory_order_relaxed);
  nbytes_.store(nbytes, std::memory_order_relaxed);
  piece_bytes_.store(piece, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const auto before = left_.load(std::memory_order_relaxed);
  left_.store(before + k_first_copy + pieces, std::memory_order_release);
  while (take_piece()) {
  }
  // Who has one may have lost its processor.
  for (int spins = 0; done_.load(std::memory_order_acquire) != pieces; ++spins) {
    if (spins < 1000) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
}

// False where none is left.
bool spinning_crew::take_piece() noexcept {
  auto left = left_.load(std::memory_order_acquire);
  while (pieces_of(left) != 0) {
    const auto piece = piece_bytes_.load(std::memory_order_relaxed);
    const auto nbytes = nbytes_.load(std::memory_order_relaxed);
    auto* const to = to_.load(std::memory_order_relaxed);
    const auto* const from = from_.load(std::memory_order_relaxed);
    if (left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      const auto begin = (pieces_of(left) - 1) * piece;
      std::memcpy(to + begin, from + begin, std::min(piece, nbytes - begin));
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
  }
  return false;
}

// Pre: `is_busy_` is ours. Where there is no memory for more, there are fewer.
void spinning_crew::start_helpers() noexcept try {
  const auto places = os::processors_of_thread();
  const auto wanted = most_(places);
  while (helpers() < wanted) {
    std::function<void()> work = [this, places] { help(places); };
    const std::function<void(error)> refuse = [this](const error&) {
      helpers_.fetch_sub(1, std::memory_order_release);
    };
    helpers_.fetch_add(1, std::memory_order_relaxed);
    run_on_library_thread(std::move(work), refuse);
  }
} catch (const std::bad_alloc&) {
}

void spinning_crew::help(const os::processor_set& places) noexcept {
  const os::bound_thread here{places};
  auto seen = left_.load(std::memory_order_relaxed);
  auto since = os::clock::now();
  for (auto now = since; now - since < k_lull; now = os::clock::now()) {
    static_cast<void>(take_piece());
    if (const auto left = left_.load(std::memory_order_relaxed); left != seen) {
      seen = left;
      since = now;
    }
    relax();
  }
  helpers_.fetch_sub(1, std::memory_order_release);
}

}  // namespace isthmus
