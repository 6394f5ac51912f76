// SPDX-License-Identifier: Apache-2.0
#include "array/move_through_copy.hpp"

#include "buffer/buffer.hpp"

namespace isthmus {
namespace {

Submitted move_through_host_copy(Queue* queue, const EndpointMove& move, TransferOptions options) {
  const auto nbytes = packed_bytes(move.element_move);
  std::shared_ptr<std::byte[]> scratch{new std::byte[nbytes]};
  return move_by_host(queue, move, std::move(options), [scratch, element_move = move.element_move] {
    const auto packing = pack_source(element_move, scratch.get());
    move_elements_in_parallel(packing.read);
    move_elements_in_parallel(packing.rest);
  });
}

}  // namespace

bool is_from_pool(const Allocation& memory) noexcept {
  return memory.resource() != nullptr && memory.resource()->is_pool();
}

Result<Endpoint> memory_like(Queue& queue, const Allocation& model, std::size_t nbytes) {
  auto& allocation_queue = &queue.device() == &model.device()
                               ? queue
                               : model.queue();  // the driver allocates on that queue's device
  auto buffer = Buffer::create(allocation_queue, {nbytes, model.facts().kind},
                               is_from_pool(model) ? model.resource() : nullptr);
  ISTHMUS_TRY(buffer);
  return (*buffer)->at(0, nbytes, true);
}

Submitted move_through_copy(Queue* queue, const EndpointMove& move, TransferOptions options) {
  if (move.host_can_copy()) {
    return move_through_host_copy(queue, move, std::move(options));
  }
  const auto& model = move.source.memory ? *move.source.memory : *move.destination.memory;
  const auto nbytes = packed_bytes(move.element_move);
  auto scratch = memory_like(*queue, model, nbytes);
  ISTHMUS_TRY(scratch);
  const auto packing = pack_source(move.element_move, scratch->pointer);
  return submit_in_sequence(
      std::move(options),
      [&](TransferOptions first) {
        return move_disjoint(queue,
                             {*scratch, move.source, nbytes, move.source_bytes, packing.read},
                             std::move(first));
      },
      [&](TransferOptions second) {
        return move_disjoint(
            queue, {move.destination, *scratch, move.destination_bytes, nbytes, packing.rest},
            std::move(second));
      });
}

}  // namespace isthmus
