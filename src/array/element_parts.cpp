// SPDX-License-Identifier: Apache-2.0
#include "array/element_parts.hpp"

#include "transfer/strided_parts.hpp"

namespace isthmus {

void ElementParts::gather(std::size_t index, std::byte* packed) const noexcept {
  move_elements(pack_destination(pieces_.at(index), packed).first);
}

void ElementParts::scatter(std::size_t index, const std::byte* packed) const noexcept {
  move_elements(rest_of(index, packed));
}

const std::byte* ElementParts::turn(std::size_t index, const std::byte* packed,
                                    std::byte* spare) const noexcept {
  move_elements(pack_destination(rest_of(index, packed), spare).first);
  return spare;
}

Submitted ElementParts::read(Queue& queue, std::size_t index, std::byte* packed,
                             WaitList after) const {
  return put_strided(queue, as_strided(pack_source(pieces_.at(index), packed).read), after);
}

Submitted ElementParts::write(Queue& queue, std::size_t index, const std::byte* packed,
                              WaitList after) const {
  auto* const from = const_cast<std::byte*>(packed);  // never written through by `.write`
  return put_strided(queue, as_strided(pack_destination(pieces_.at(index), from).write), after);
}

ElementMove ElementParts::rest_of(std::size_t index, const std::byte* packed) const noexcept {
  auto* const from = const_cast<std::byte*>(packed);  // never written through by `.rest`
  return pack_source(pieces_.at(index), from).rest;
}

}  // namespace isthmus
