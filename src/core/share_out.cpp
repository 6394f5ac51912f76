#include "core/share_out.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/threads.hpp"

namespace isthmus {
namespace {

// Memory's bandwidth is used up by then.
constexpr std::size_t k_most_threads = 8;
// What a thread takes at a time, so that one that is held up delays the end by little.
constexpr std::size_t k_piece = std::size_t{1} << 20;
constexpr std::size_t k_pieces_worth_a_thread = 8;

std::size_t threads_for(std::size_t nbytes) noexcept {
  const std::size_t processors = std::thread::hardware_concurrency();  // 0: not known
  const auto worth = nbytes / (k_pieces_worth_a_thread * k_piece);
  return std::max<std::size_t>(1, std::min({processors, k_most_threads, worth}));
}

}  // namespace

void share_out(std::size_t nbytes, void (*work)(void* context, std::size_t at, std::size_t n),
               void* context) noexcept {
  std::atomic<std::size_t> taken{0};
  const auto take_pieces = [&taken, nbytes, work, context]() noexcept {
    for (;;) {
      const auto at = taken.fetch_add(1, std::memory_order_relaxed) * k_piece;
      if (at >= nbytes) {
        return;
      }
      work(context, at, std::min(k_piece, nbytes - at));
    }
  };
  std::array<std::thread, k_most_threads - 1> others;
  try {
    const auto wanted = threads_for(nbytes) - 1;
    std::generate_n(others.begin(), wanted, [&] { return start_thread(take_pieces); });
  } catch (...) {  // no thread or no memory for one: those there are take all pieces
  }
  take_pieces();
  for (auto& other : others) {
    if (other.joinable()) {
      other.join();
    }
  }
}

}  // namespace isthmus
