#include "backend/sim/operation.hpp"

#include <algorithm>
#include <cstring>

#include "backend/sim/engine.hpp"

namespace isthmus::sim {
namespace {

void copy_rows(const work& todo) noexcept {
  for (std::size_t row = 0; row < todo.height; ++row) {
    std::memmove(todo.destination.at + row * todo.destination_pitch,
                 todo.source.at + row * todo.source_pitch, todo.width);
  }
}

// Doubles what is filled, so that a long fill is a few long copies.
void fill(const work& todo) noexcept {
  auto* const first = todo.destination.at;
  std::size_t done = std::min(todo.pattern.nbytes, todo.width);
  std::memcpy(first, todo.pattern.bytes, done);
  while (done < todo.width) {
    const auto part = std::min(done, todo.width - done);
    std::memcpy(first + done, first, part);
    done += part;
  }
}

}  // namespace

void perform(const work& todo) noexcept {
  switch (todo.what) {
    case action::copy: copy_rows(todo); break;
    case action::fill: fill(todo); break;
    case action::nothing: break;
  }
}

result<event_times> operation::times() {
  if (!settled()) {
    return fail(ISTHMUS_PENDING, "the operation has not ended: its times are not known");
  }
  return times_;
}

void operation::refresh() noexcept { home_->look(*this); }

void operation::arm() noexcept { home_->demand(*this); }

// A wait that has no time is a look.
void operation::block(const os::deadline& until) noexcept {
  if (!until || *until > os::clock::now()) {
    event::block(until);
  }
}

}  // namespace isthmus::sim
