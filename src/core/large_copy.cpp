#include "core/large_copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/sizes.hpp"
#include "core/threads.hpp"

// Sanitizers do not see streaming stores.
#if defined(__SSE2__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define ISTHMUS_STREAMS 1
#else
#define ISTHMUS_STREAMS 0
#endif

namespace isthmus {
namespace {

// Memory's bandwidth is used up by then.
constexpr std::size_t k_most_threads = 8;
// What a thread takes at a time, so that one that is held up delays the end by little.
constexpr std::size_t k_chunk = std::size_t{1} << 20;
constexpr std::size_t k_chunks_worth_a_thread = 8;

#if ISTHMUS_STREAMS

constexpr std::size_t k_cache_line = 64;

void stream_line(std::byte* to, const std::byte* from) noexcept {
  auto* const target = reinterpret_cast<__m128i*>(to);
  const auto* const parts = reinterpret_cast<const __m128i*>(from);
  const auto a = _mm_loadu_si128(parts);
  const auto b = _mm_loadu_si128(parts + 1);
  const auto c = _mm_loadu_si128(parts + 2);
  const auto d = _mm_loadu_si128(parts + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

// Writes past the caches: glibc's memcpy does so from a size on that it takes from what the
// processor says of its caches, which under a hypervisor is often far too large.
void copy_chunk(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept {
  const auto past = address(to) % k_cache_line;
  const auto head = std::min(nbytes, past == 0 ? 0 : k_cache_line - past);
  const auto lines = (nbytes - head) / k_cache_line * k_cache_line;
  std::memcpy(to, from, head);
  for (std::size_t at = head; at < head + lines; at += k_cache_line) {
    stream_line(to + at, from + at);
  }
  std::memcpy(to + head + lines, from + head + lines, nbytes - head - lines);
  _mm_sfence();  // streamed bytes are ordered by this alone, not by what ends the thread
}

#else

void copy_chunk(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept {
  std::memcpy(to, from, nbytes);
}

#endif

std::size_t threads_for(std::size_t nbytes) noexcept {
  const std::size_t processors = std::thread::hardware_concurrency();  // 0: not known
  const auto worth = nbytes / (k_chunks_worth_a_thread * k_chunk);
  return std::max<std::size_t>(1, std::min({processors, k_most_threads, worth}));
}

}  // namespace

void copy_large(void* destination, const void* source, std::size_t nbytes) noexcept {
  std::atomic<std::size_t> taken{0};
  const auto take_chunks = [&, to = static_cast<std::byte*>(destination),
                            from = static_cast<const std::byte*>(source)]() noexcept {
    for (;;) {
      const auto at = taken.fetch_add(1, std::memory_order_relaxed) * k_chunk;
      if (at >= nbytes) {
        return;
      }
      copy_chunk(to + at, from + at, std::min(k_chunk, nbytes - at));
    }
  };
  std::array<std::thread, k_most_threads - 1> others;
  try {
    const auto wanted = threads_for(nbytes) - 1;
    std::generate_n(others.begin(), wanted, [&] { return start_thread(take_chunks); });
  } catch (...) {  // no thread or no memory for one: those there are take all chunks
  }
  take_chunks();
  for (auto& other : others) {
    if (other.joinable()) {
      other.join();
    }
  }
}

}  // namespace isthmus
