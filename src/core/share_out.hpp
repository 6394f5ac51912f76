// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides work on a memory range too large for the caches among threads. Thread-safe.

#include <cstddef>

namespace isthmus {

// From this size a range no longer fits the caches of a core, and starting threads, at 20 us each,
// pays off.
constexpr std::size_t k_large_bytes = std::size_t{16} << 20;

struct SharedWork {
  // Processes the chunk [begin, begin + n). Called once for each of the chunks that cover the
  // range, on any of the threads.
  void (*process_chunk)(void* context, std::size_t begin, std::size_t n);
  // May be null. Called on the calling thread from time to time while other threads process the
  // next chunks. All of [0, done_bytes) is done. `done_bytes` never decreases and ends at the
  // range's size. After a return of false no more chunks are started and `report_done` is not
  // called again.
  bool (*report_done)(void* context, std::size_t done_bytes);
};

// Returns when all chunks are done. They are started in order; all but the last have 256 KiB. Uses
// at most 16 threads, the caller among them, for the duration of the call. If no thread can be
// started, the caller processes all chunks.
void share_out(std::size_t nbytes, const SharedWork& work, void* context) noexcept;

template <class ProcessChunk>
void share_out(std::size_t nbytes, ProcessChunk process_chunk) noexcept {
  const auto call = [](void* context, std::size_t begin, std::size_t n) {
    (*static_cast<ProcessChunk*>(context))(begin, n);
  };
  share_out(nbytes, SharedWork{call, nullptr}, &process_chunk);
}

template <class ProcessChunk, class ReportDone>
void share_out_in_order(std::size_t nbytes, ProcessChunk process_chunk,
                        ReportDone report_done) noexcept {
  struct Calls {
    ProcessChunk& process_chunk;
    ReportDone& report_done;
  } calls{process_chunk, report_done};
  const auto call_chunk = [](void* context, std::size_t begin, std::size_t n) {
    static_cast<Calls*>(context)->process_chunk(begin, n);
  };
  const auto call_report_done = [](void* context, std::size_t done_bytes) {
    return static_cast<Calls*>(context)->report_done(done_bytes);
  };
  share_out(nbytes, SharedWork{call_chunk, call_report_done}, &calls);
}

}  // namespace isthmus
