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

struct waiting_list {
  std::mutex lock;
  std::deque<freed_block> all;
};
// Never destroyed.
waiting_list& waiting() {
  static auto* const only = new waiting_list;
  return *only;
}

// False if it has to be retried.
bool free_now(const freed_block& gone) {
  const auto done = stream_notes::settle(gone.pointer);
  if (done == stream_notes::outcome::settled &&
      isthmus_resource_deallocate(gone.to, gone.pointer, gone.nbytes, 0, gone.behind) !=
          ISTHMUS_OK) {
    throw_last_failure("");
  }
  return done != stream_notes::outcome::not_yet;
}

}  // namespace

void late_frees::free(const freed_block& gone) {
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
void late_frees::try_again(std::size_t most) noexcept {
  if (is_forked_child()) {  // a thread that the child lacks may hold the lock
    return;
  }
  auto& in = waiting();
  for (; most != 0; --most) {
    freed_block next{};
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
