#pragma once
// Work on a range of memory too large for the caches, shared out among threads.

#include <cstddef>

namespace isthmus {

// From here on a range no longer lies in a core's caches, and starting threads, 20 us each, pays.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;

struct shared_work {
  // Of the piece [at, at + n). Called once for each of the pieces that cover the range, on any of
  // the threads.
  void (*piece)(void* context, std::size_t at, std::size_t n);
  // May be null. Called on the calling thread, now and then, while others are at the next pieces:
  // all of [0, upto) is done, never less than before; the last time that is the whole range. Once
  // it gives false no more pieces are begun, and it is not called again.
  bool (*done)(void* context, std::size_t upto);
};

// Returns when all pieces are done. They are begun in order; all but the last have 256 KiB. At most
// 16 threads, the caller among them, for the time of the call; where none can be had the caller
// does it all.
void share_out(std::size_t nbytes, const shared_work& work, void* context) noexcept;

template <class Piece>
void share_out(std::size_t nbytes, Piece piece) noexcept {
  const auto call = [](void* context, std::size_t at, std::size_t n) {
    (*static_cast<Piece*>(context))(at, n);
  };
  share_out(nbytes, shared_work{call, nullptr}, &piece);
}

template <class Piece, class Done>
void share_out_in_order(std::size_t nbytes, Piece piece, Done done) noexcept {
  struct both {
    Piece& piece;
    Done& done;
  } calls{piece, done};
  const auto piece_of = [](void* context, std::size_t at, std::size_t n) {
    static_cast<both*>(context)->piece(at, n);
  };
  const auto done_of = [](void* context, std::size_t upto) {
    return static_cast<both*>(context)->done(upto);
  };
  share_out(nbytes, shared_work{piece_of, done_of}, &calls);
}

}  // namespace isthmus
