// SPDX-License-Identifier: Apache-2.0
#include "array/element_chunks.hpp"

#include "transfer/strided_chunks.hpp"

namespace isthmus {

void ElementChunks::gather(std::size_t index, std::byte* packed) const noexcept {
  move_elements(pack_destination(chunks_.at(index), packed).pack);
}

void ElementChunks::scatter(std::size_t index, const std::byte* packed) const noexcept {
  move_elements(rest_after_read(index, packed));
}

const std::byte* ElementChunks::convert(std::size_t index, const std::byte* packed,
                                        std::byte* scratch) const noexcept {
  move_elements(pack_destination(rest_after_read(index, packed), scratch).pack);
  return scratch;
}

Submitted ElementChunks::read(Queue& queue, std::size_t index, std::byte* packed,
                              WaitList after) const {
  return submit_strided(queue, as_strided(pack_source(chunks_.at(index), packed).read), after);
}

Submitted ElementChunks::write(Queue& queue, std::size_t index, const std::byte* packed,
                               WaitList after) const {
  auto* const mutable_packed = const_cast<std::byte*>(packed);  // never written through by `.write`
  return submit_strided(
      queue, as_strided(pack_destination(chunks_.at(index), mutable_packed).write), after);
}

ElementMove ElementChunks::rest_after_read(std::size_t index,
                                           const std::byte* packed) const noexcept {
  auto* const mutable_packed = const_cast<std::byte*>(packed);  // never written through by `.rest`
  return pack_source(chunks_.at(index), mutable_packed).rest;
}

}  // namespace isthmus
