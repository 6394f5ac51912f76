// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer.hpp"

#include "backend/queue.hpp"
#include "memory/result_memory.hpp"
#include "transfer/copy_dispatch.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {
namespace {

// Rows of one pitch may interleave, like two column blocks of one matrix.
bool rows_overlap(const Endpoint& destination, const Endpoint& source, const Pitched& shape) {
  const auto to_bytes = shape.extent(shape.destination_pitch);
  const auto from_bytes = shape.extent(shape.source_pitch);
  if (!overlap(destination.pointer, to_bytes, source.pointer, from_bytes)) {
    return false;
  }
  if (shape.destination_pitch != shape.source_pitch || shape.height == 1) {
    return true;
  }
  const auto pitch = shape.source_pitch;
  const auto to = address(destination.pointer);
  const auto from = address(source.pointer);
  const auto apart = (to > from ? to - from : from - to) % pitch;  // the test is symmetric
  return apart < shape.width || pitch - apart < shape.width;
}

// Joins rows that follow each other without a gap into one.
Pitched simplest(const Pitched& shape) {
  if (shape.destination_pitch != shape.width || shape.source_pitch != shape.width) {
    return shape;
  }
  const auto nbytes = shape.width * shape.height;
  return {nbytes, nbytes, nbytes, 1};
}

Submitted move_rows(Queue* queue, const Endpoint& destination, const Endpoint& source,
                    const Pitched& shape, TransferOptions options) {
  const Copy2dShape rows{destination.pointer, shape.destination_pitch,
                         source.pointer,      shape.source_pitch,
                         shape.width,         shape.height};
  CopyPlan what{destination,
                source,
                shape.extent(shape.destination_pitch),
                shape.extent(shape.source_pitch),
                shape.width * shape.height,
                rows};
  what.is_fresh = !destination.memory && take_untouched_result(destination.pointer);
  return make_copy(queue, what, std::move(options), [rows] { copy_rows(rows); });
}

}  // namespace

Submitted copy(Queue* asked, const Endpoint& destination, const Endpoint& source,
               std::size_t nbytes, TransferOptions options) {
  return copy_2d(asked, destination, source, {nbytes, nbytes, nbytes, 1}, std::move(options));
}

Submitted copy_2d(Queue* asked, const Endpoint& destination, const Endpoint& source,
                  const Pitched& wanted, TransferOptions options) {
  auto chosen = choose_queue(asked, destination, source);
  if (!chosen) {
    return chosen.take_error();
  }
  const auto shape = simplest(wanted);
  if (shape.width == 0 || shape.height == 0) {
    return nothing_to_do(*chosen, options);
  }
  if (rows_overlap(destination, source, shape)) {
    return refuse_overlap(shape.width * shape.height);
  }
  return move_rows(*chosen, destination, source, shape, std::move(options));
}

Submitted copy_2d_apart(Queue* asked, const Endpoint& destination, const Endpoint& source,
                        const Pitched& shape, TransferOptions options) {
  auto chosen = choose_queue(asked, destination, source);
  ISTHMUS_TRY(chosen);
  return move_rows(*chosen, destination, source, simplest(shape), std::move(options));
}

Submitted fill(Queue* asked, const Endpoint& destination, const FillPattern& pattern,
               std::size_t nbytes, TransferOptions options) {
  auto chosen = choose_queue(asked, destination, destination);
  if (!chosen) {
    return chosen.take_error();
  }
  Queue* on = *chosen;
  if (nbytes == 0) {
    return nothing_to_do(on, options);
  }
  TouchedMemory touched;
  touched.add(destination, nbytes, true);
  if (destination.host_can_copy() && host_does_it(on, touched, options, nbytes)) {
    auto done = directly(on, touched, options, [to = destination.pointer, pattern, nbytes] {
      fill_bytes(to, pattern, nbytes);
    });
    ISTHMUS_TRY(done);
    note_overwritten(destination, nbytes, *done);
    return done;
  }
  auto carrying = carrier(*on, destination, destination);
  ISTHMUS_TRY(carrying);
  keep_pinned(**carrying, destination, nbytes, options.owners);
  auto filled = on_queue(*on, **carrying, touched, options, [&](WaitList after) {
    return (*carrying)->fill(destination.pointer, pattern, nbytes, after);
  });
  ISTHMUS_TRY(filled);
  note_overwritten(destination, nbytes, *filled);
  return filled;
}

namespace {

// `call(queue, after)` on a queue that reaches the memory, ordered after writes there.
template <class Call>
Submitted tell_of(Queue* asked, const Endpoint& place, std::size_t nbytes, TransferOptions options,
                  const Call& call) {
  auto chosen = choose_queue(asked, place, place);
  ISTHMUS_TRY(chosen);
  if (nbytes == 0) {
    return nothing_to_do(*chosen, options);
  }
  TouchedMemory touched;
  touched.add(place, nbytes, false);
  options.reads_contents = false;
  auto carrying = carrier(**chosen, place, place);
  ISTHMUS_TRY(carrying);
  return on_queue(**chosen, **carrying, touched, options,
                  [&](WaitList after) { return call(**carrying, after); });
}

}  // namespace

Submitted prefetch(Queue* asked, const Endpoint& place, std::size_t nbytes, bool to_host,
                   TransferOptions options) {
  return tell_of(asked, place, nbytes, std::move(options), [&](Queue& queue, WaitList after) {
    return queue.prefetch(place.pointer, nbytes, to_host, after);
  });
}

Submitted advise(Queue* asked, const Endpoint& place, std::size_t nbytes, std::uint32_t advice,
                 TransferOptions options) {
  return tell_of(asked, place, nbytes, std::move(options), [&](Queue& queue, WaitList after) {
    return queue.advise(place.pointer, nbytes, advice, after);
  });
}

}  // namespace isthmus
