// SPDX-License-Identifier: Apache-2.0
#include "array/element_parts.hpp"

#include "transfer/strided_parts.hpp"

namespace isthmus {

void element_parts::gather(std::size_t index, std::byte* packed) const noexcept {
  move_elements(pack_destination(pieces_.at(index), packed).first);
}

void element_parts::scatter(std::size_t index, const std::byte* packed) const noexcept {
  move_elements(rest_of(index, packed));
}

const std::byte* element_parts::turn(std::size_t index, const std::byte* packed,
                                     std::byte* spare) const noexcept {
  move_elements(pack_destination(rest_of(index, packed), spare).first);
  return spare;
}

submitted element_parts::read(queue& on, std::size_t index, std::byte* packed,
                              wait_list after) const {
  return put_strided(on, as_strided(pack_source(pieces_.at(index), packed).read), after);
}

submitted element_parts::write(queue& on, std::size_t index, const std::byte* packed,
                               wait_list after) const {
  auto* const from = const_cast<std::byte*>(packed);  // never written through by `.write`
  return put_strided(on, as_strided(pack_destination(pieces_.at(index), from).write), after);
}

element_move element_parts::rest_of(std::size_t index, const std::byte* packed) const noexcept {
  auto* const from = const_cast<std::byte*>(packed);  // never written through by `.rest`
  return pack_source(pieces_.at(index), from).rest;
}

}  // namespace isthmus
