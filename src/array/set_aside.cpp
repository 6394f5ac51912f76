#include "array/set_aside.hpp"

#include "buffer/buffer.hpp"

namespace isthmus {
namespace {

std::size_t bytes_of(const element_move& read) noexcept {
  return read.elements() * read.from_item();
}

submitted by_host(queue* on, const placed_move& move, transfer_options options) {
  const auto nbytes = bytes_of(pack_source(move.what, nullptr).read);
  std::shared_ptr<std::byte[]> aside{new std::byte[nbytes]};
  return move_by_host(on, move, std::move(options), [aside, what = move.what] {
    const auto way = pack_source(what, aside.get());
    share_elements(way.read);
    share_elements(way.rest);
  });
}

}  // namespace

result<endpoint> memory_like(queue& on, const allocation& like, std::size_t nbytes) {
  auto* from = like.from() != nullptr && like.from()->as_pool() != nullptr ? like.from() : nullptr;
  auto made = buffer::create(on, {nbytes, like.what().kind}, from);
  ISTHMUS_TRY(made);
  return (*made)->at(0, nbytes, true);
}

submitted move_by_way_of_copy(queue* on, const placed_move& move, transfer_options options) {
  if (move.host_can_copy()) {
    return by_host(on, move, std::move(options));
  }
  const auto& like = move.source.memory ? *move.source.memory : *move.destination.memory;
  const auto nbytes = bytes_of(pack_source(move.what, nullptr).read);
  auto aside = memory_like(*on, like, nbytes);
  ISTHMUS_TRY(aside);
  const auto way = pack_source(move.what, aside->pointer);
  return one_after_other(
      std::move(options),
      [&](transfer_options first) {
        return move_apart(on, {*aside, move.source, nbytes, move.source_bytes, way.read},
                          std::move(first));
      },
      [&](transfer_options second) {
        return move_apart(on, {move.destination, *aside, move.destination_bytes, nbytes, way.rest},
                          std::move(second));
      });
}

}  // namespace isthmus
