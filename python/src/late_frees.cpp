// SPDX-License-Identifier: Apache-2.0
#include "late_frees.hpp"

#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>

#include "gil.hpp"
#include "stream_allocator.hpp"
#include "stream_notes.hpp"

namespace isthmus::python {
namespace {

struct WaitingList {
  std::mutex lock;
  std::deque<FreedBlock> all;
};
// Never destroyed.
WaitingList& waiting() {
  static auto* const only = new WaitingList;
  return *only;
}

// False if it has to be retried.
bool free_now(const FreedBlock& gone) {
  const auto done = StreamNotes::settle(gone.pointer);
  if (done == StreamNotes::Outcome::settled &&
      isthmus_resource_deallocate(gone.to, gone.pointer, gone.nbytes, 0, gone.behind) !=
          ISTHMUS_OK) {
    throw_last_failure("");
  }
  return done != StreamNotes::Outcome::not_yet;
}

}  // namespace

void LateFrees::free(const FreedBlock& gone) {
  if (!free_now(gone)) {
    auto& in = waiting();
    const std::lock_guard hold{in.lock};
    in.all.push_back(gone);
    isthmus_resource_retain(gone.to);  // until it is tried again
    count().fetch_add(1, std::memory_order_relaxed);
  }
}

// The free happens outside the lock, since it may call back. What is deferred again goes to the end
// of the list.
void LateFrees::try_again(std::size_t max) noexcept {
  if (is_forked_child()) {  // a thread that the child lacks may hold the lock
    return;
  }
  auto& in = waiting();
  for (; max != 0; --max) {
    FreedBlock next{};
    {
      const std::lock_guard hold{in.lock};
      if (in.all.empty()) {
        return;
      }
      next = in.all.front();
      in.all.pop_front();
      count().fetch_sub(1, std::memory_order_relaxed);
    }
    try {
      free(next);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "isthmus: %zu bytes at %p were not freed: %s\n", next.nbytes,
                   next.pointer, problem.what());
    }
    isthmus_resource_release(next.to);
  }
}

}  // namespace isthmus::python
