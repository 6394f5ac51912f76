// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides work on a memory range too large for the caches among threads. Thread-safe.

#include <cstddef>

namespace isthmus {

// From this size a range no longer fits the caches of a core, and starting threads, at 20 us each,
// pays off.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;

struct SharedWork {
  // Processes the piece [at, at + n). Called once for each of the pieces that cover the range, on
  // any of the threads.
  void (*piece)(void* context, std::size_t at, std::size_t n);
  // May be null. Called on the calling thread from time to time while other threads process the
  // next pieces. All of [0, upto) is done. `upto` never decreases, and in the last call it is the
  // whole range. After a return of false no more pieces are started and it is not called again.
  bool (*done)(void* context, std::size_t upto);
};

// Returns when all pieces are done. They are started in order; all but the last have 256 KiB. Uses
// at most 16 threads, the caller among them, for the duration of the call. If no thread can be
// started, the caller processes all pieces.
void share_out(std::size_t nbytes, const SharedWork& work, void* context) noexcept;

template <class Piece>
void share_out(std::size_t nbytes, Piece piece) noexcept {
  const auto call = [](void* context, std::size_t at, std::size_t n) {
    (*static_cast<Piece*>(context))(at, n);
  };
  share_out(nbytes, SharedWork{call, nullptr}, &piece);
}

template <class Piece, class Done>
void share_out_in_order(std::size_t nbytes, Piece piece, Done done) noexcept {
  struct Both {
    Piece& piece;
    Done& done;
  } calls{piece, done};
  const auto piece_of = [](void* context, std::size_t at, std::size_t n) {
    static_cast<Both*>(context)->piece(at, n);
  };
  const auto done_of = [](void* context, std::size_t upto) {
    return static_cast<Both*>(context)->done(upto);
  };
  share_out(nbytes, SharedWork{piece_of, done_of}, &calls);
}

}  // namespace isthmus
