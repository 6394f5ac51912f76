// SPDX-License-Identifier: Apache-2.0
#include "array/set_aside.hpp"

#include "buffer/buffer.hpp"

namespace isthmus {
namespace {

Submitted by_host(Queue* queue, const PlacedMove& move, TransferOptions options) {
  const auto nbytes = packed_bytes(move.what);
  std::shared_ptr<std::byte[]> aside{new std::byte[nbytes]};
  return move_by_host(queue, move, std::move(options), [aside, what = move.what] {
    const auto way = pack_source(what, aside.get());
    share_elements(way.read);
    share_elements(way.rest);
  });
}

}  // namespace

bool is_of_a_pool(const Allocation& memory) noexcept {
  return memory.resource() != nullptr && memory.resource()->as_pool() != nullptr;
}

Result<Endpoint> memory_like(Queue& queue, const Allocation& like, std::size_t nbytes) {
  auto& behind = &queue.device() == &like.device()
                     ? queue
                     : like.queue();  // the driver allocates on that queue's device
  auto made = Buffer::create(behind, {nbytes, like.what().kind},
                             is_of_a_pool(like) ? like.resource() : nullptr);
  ISTHMUS_TRY(made);
  return (*made)->at(0, nbytes, true);
}

Submitted move_by_way_of_copy(Queue* queue, const PlacedMove& move, TransferOptions options) {
  if (move.host_can_copy()) {
    return by_host(queue, move, std::move(options));
  }
  const auto& like = move.source.memory ? *move.source.memory : *move.destination.memory;
  const auto nbytes = packed_bytes(move.what);
  auto aside = memory_like(*queue, like, nbytes);
  ISTHMUS_TRY(aside);
  const auto way = pack_source(move.what, aside->pointer);
  return one_after_other(
      std::move(options),
      [&](TransferOptions first) {
        return move_apart(queue, {*aside, move.source, nbytes, move.source_bytes, way.read},
                          std::move(first));
      },
      [&](TransferOptions second) {
        return move_apart(queue,
                          {move.destination, *aside, move.destination_bytes, nbytes, way.rest},
                          std::move(second));
      });
}

}  // namespace isthmus
