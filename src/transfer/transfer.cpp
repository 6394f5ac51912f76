// SPDX-License-Identifier: Apache-2.0
#include "transfer/transfer.hpp"

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "memory/base/result_memory.hpp"
#include "transfer/copy_dispatch.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {
namespace {

// Rows with the same pitch may interleave without overlapping, like two column blocks of one
// matrix.
bool rows_overlap(const Endpoint& destination, const Endpoint& source, const Pitched& shape) {
  const auto destination_bytes = shape.extent(shape.destination_pitch);
  const auto source_bytes = shape.extent(shape.source_pitch);
  if (!overlap(destination.pointer, destination_bytes, source.pointer, source_bytes)) {
    return false;
  }
  if (shape.destination_pitch != shape.source_pitch || shape.height == 1) {
    return true;
  }
  const auto pitch = shape.source_pitch;
  const auto destination_address = address(destination.pointer);
  const auto source_address = address(source.pointer);
  const auto distance =
      (destination_address > source_address ? destination_address - source_address
                                            : source_address - destination_address) %
      pitch;  // the order of the two does not matter
  return distance < shape.width || pitch - distance < shape.width;
}

// Joins rows without gaps between them into one row.
Pitched merge_rows(const Pitched& shape) {
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
  CopyPlan plan{destination,
                source,
                shape.extent(shape.destination_pitch),
                shape.extent(shape.source_pitch),
                shape.width * shape.height,
                rows};
  plan.is_fresh = !destination.memory && take_untouched_result(destination.pointer);
  return make_copy(queue, plan, std::move(options), [rows] { copy_rows(rows); });
}

}  // namespace

Submitted copy(Queue* requested, const Endpoint& destination, const Endpoint& source,
               std::size_t nbytes, TransferOptions options) {
  return copy_2d(requested, destination, source, {nbytes, nbytes, nbytes, 1}, std::move(options));
}

Submitted copy_2d(Queue* requested, const Endpoint& destination, const Endpoint& source,
                  const Pitched& pitched, TransferOptions options) {
  auto chosen = choose_queue(requested, destination, source);
  if (!chosen) {
    return chosen.take_error();
  }
  const auto shape = merge_rows(pitched);
  if (shape.width == 0 || shape.height == 0) {
    return submit_no_op(*chosen, options);
  }
  if (rows_overlap(destination, source, shape)) {
    return overlap_error(shape.width * shape.height);
  }
  return move_rows(*chosen, destination, source, shape, std::move(options));
}

Submitted copy_2d_disjoint(Queue* requested, const Endpoint& destination, const Endpoint& source,
                           const Pitched& shape, TransferOptions options) {
  auto chosen = choose_queue(requested, destination, source);
  ISTHMUS_TRY(chosen);
  return move_rows(*chosen, destination, source, merge_rows(shape), std::move(options));
}

Submitted fill(Queue* requested, const Endpoint& destination, const FillPattern& pattern,
               std::size_t nbytes, TransferOptions options) {
  auto chosen = choose_queue(requested, destination, destination);
  if (!chosen) {
    return chosen.take_error();
  }
  Queue* queue = *chosen;
  if (nbytes == 0) {
    return submit_no_op(queue, options);
  }
  TouchedMemory touched;
  touched.add(destination, nbytes, true);
  if (destination.host_can_copy() && host_executes(queue, touched, options, nbytes)) {
    auto done = run_on_host(
        queue, touched, options,
        [pointer = destination.pointer, pattern, nbytes] { fill_bytes(pointer, pattern, nbytes); });
    ISTHMUS_TRY(done);
    observe_fill(queue, destination, nbytes);
    note_overwritten(destination, nbytes, *done);
    return done;
  }
  auto execution_queue = execution_queue_for(*queue, destination, destination);
  ISTHMUS_TRY(execution_queue);
  keep_pinned(**execution_queue, destination, nbytes, options.owners);
  auto filled = submit_on_queue(*queue, **execution_queue, touched, options, [&](WaitList after) {
    return (*execution_queue)->fill(destination.pointer, pattern, nbytes, after);
  });
  ISTHMUS_TRY(filled);
  observe_fill(queue, destination, nbytes);
  note_overwritten(destination, nbytes, *filled);
  return filled;
}

namespace {

// Submits `call(queue, after)` to a queue that can access the memory, ordered after writes to it.
template <class Call>
Submitted submit_hint(Queue* requested, const Endpoint& endpoint, std::size_t nbytes,
                      TransferOptions options, const Call& call) {
  auto chosen = choose_queue(requested, endpoint, endpoint);
  ISTHMUS_TRY(chosen);
  if (nbytes == 0) {
    return submit_no_op(*chosen, options);
  }
  TouchedMemory touched;
  touched.add(endpoint, nbytes, false);
  options.reads_contents = false;
  auto execution_queue = execution_queue_for(**chosen, endpoint, endpoint);
  ISTHMUS_TRY(execution_queue);
  return submit_on_queue(**chosen, **execution_queue, touched, options,
                         [&](WaitList after) { return call(**execution_queue, after); });
}

}  // namespace

Submitted prefetch(Queue* requested, const Endpoint& endpoint, std::size_t nbytes, bool to_host,
                   TransferOptions options) {
  return submit_hint(requested, endpoint, nbytes, std::move(options),
                     [&](Queue& queue, WaitList after) {
                       return queue.prefetch(endpoint.pointer, nbytes, to_host, after);
                     });
}

Submitted advise(Queue* requested, const Endpoint& endpoint, std::size_t nbytes,
                 std::uint32_t advice, TransferOptions options) {
  return submit_hint(requested, endpoint, nbytes, std::move(options),
                     [&](Queue& queue, WaitList after) {
                       return queue.advise(endpoint.pointer, nbytes, advice, after);
                     });
}

}  // namespace isthmus
