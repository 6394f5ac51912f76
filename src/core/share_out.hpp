// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides work on a memory range too large for the caches among threads. Thread-safe.

#include <cstddef>

namespace isthmus {

// From this size a range no longer fits the caches of a core, and starting threads, at 20 us each,
// pays off.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;

struct SharedWork {
  // Processes the chunk [at, at + n). Called once for each of the chunks that cover the range, on
  // any of the threads.
  void (*process_chunk)(void* context, std::size_t at, std::size_t n);
  // May be null. Called on the calling thread from time to time while other threads process the
  // next chunks. All of [0, upto) is done. `upto` never decreases and ends at the range's size.
  // After a return of false no more chunks are started and `done` is not called again.
  bool (*done)(void* context, std::size_t upto);
};

// Returns when all chunks are done. They are started in order; all but the last have 256 KiB. Uses
// at most 16 threads, the caller among them, for the duration of the call. If no thread can be
// started, the caller processes all chunks.
void share_out(std::size_t nbytes, const SharedWork& work, void* context) noexcept;

template <class ProcessChunk>
void share_out(std::size_t nbytes, ProcessChunk process_chunk) noexcept {
  const auto call = [](void* context, std::size_t at, std::size_t n) {
    (*static_cast<ProcessChunk*>(context))(at, n);
  };
  share_out(nbytes, SharedWork{call, nullptr}, &process_chunk);
}

template <class ProcessChunk, class Done>
void share_out_in_order(std::size_t nbytes, ProcessChunk process_chunk, Done done) noexcept {
  struct Both {
    ProcessChunk& process_chunk;
    Done& done;
  } calls{process_chunk, done};
  const auto call_chunk = [](void* context, std::size_t at, std::size_t n) {
    static_cast<Both*>(context)->process_chunk(at, n);
  };
  const auto call_done = [](void* context, std::size_t upto) {
    return static_cast<Both*>(context)->done(upto);
  };
  share_out(nbytes, SharedWork{call_chunk, call_done}, &calls);
}

}  // namespace isthmus
