#pragma once
// Work on a range of memory too large for the caches, shared out among threads.

#include <cstddef>

namespace isthmus {

// From here on a range no longer lies in a core's caches, and starting threads, 20 us each, pays.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;

// Calls work(context, at, n) for pieces that cover [0, nbytes), each once, and returns when all are
// done. All but the last have a MiB. At most eight threads, the caller among them, for the time of
// the call; where none can be had the caller does it all.
void share_out(std::size_t nbytes, void (*work)(void* context, std::size_t at, std::size_t n),
               void* context) noexcept;

template <class Work>
void share_out(std::size_t nbytes, Work work) noexcept {
  share_out(
      nbytes,
      [](void* context, std::size_t at, std::size_t n) { (*static_cast<Work*>(context))(at, n); },
      &work);
}

}  // namespace isthmus
