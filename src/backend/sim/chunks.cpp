// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/chunks.hpp"

#include <algorithm>
#include <cstring>

#include "backend/sim/device.hpp"
#include "backend/sim/memory.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::sim {
namespace {

Error no_reservation(const void* at) {
  return fail(ISTHMUS_ERROR_DRIVER, "invalid pointer: {} does not lie in reserved addresses", at);
}

}  // namespace

Result<void*> Chunks::reserve(std::size_t nbytes, std::size_t alignment) {
  ISTHMUS_TRY(engine_of(device_).begin(Call::map));
  auto made =
      Allocation::reserve(context_, device_, {kind_, nbytes, std::max(alignment, granularity())});
  ISTHMUS_TRY(made);
  void* const base = (*made)->base();
  AddressBook::only().add(*std::move(made));
  return base;
}

void Chunks::release(void* base, std::size_t nbytes) noexcept {
  auto& home = engine_of(device_);
  static_cast<void>(home.begin(Call::free));
  const auto found = AddressBook::only().remove(base, context_);
  if (!found || found->nbytes() != nbytes || found->held_bytes() != 0) {
    home.record_violation();
  }
}

Result<void> Chunks::create(void* at, std::size_t nbytes) {
  auto& home = engine_of(device_);
  ISTHMUS_TRY(home.begin(Call::allocate));
  const auto in = AddressBook::only().find(at, context_);
  if (!in || in->chunks() == nullptr) {
    return no_reservation(at);
  }
  ISTHMUS_TRY(home.reserve({kind_, nbytes, 0}));
  const auto offset = in->offset_of(at);
  auto made = in->chunks()->add(offset, nbytes) ? os::commit_pages(in->open(at), nbytes)
                                                : Result<void>{Error::no_memory()};
  if (!made) {
    static_cast<void>(in->chunks()->remove(offset, nbytes));
    home.give_back(kind_, nbytes);
    return made;
  }
  soil(in->open(at), nbytes);
  return {};
}

// On hardware, moving memory that an operation uses would lose data. Here it counts as a violation.
Result<void> Chunks::move(void* source, void* destination, std::size_t nbytes, bool& to_lost) {
  to_lost = false;
  auto& home = engine_of(device_);
  ISTHMUS_TRY(home.begin(Call::map));
  const auto out = AddressBook::only().find(source, context_);
  const auto in = AddressBook::only().find(destination, context_);
  if (!out || out->chunks() == nullptr || !in || in->chunks() == nullptr) {
    return no_reservation(out ? destination : source);
  }
  if (out->chunks()->in_use(out->offset_of(source), nbytes)) {
    home.record_violation();
  }
  if (!in->chunks()->add(in->offset_of(destination), nbytes)) {
    return Error::no_memory();
  }
  if (auto moved = os::move_pages(out->open(source), in->open(destination), nbytes,
                                  os::LeftPages::reserved, to_lost);
      !moved) {
    static_cast<void>(in->chunks()->remove(in->offset_of(destination), nbytes));
    if (to_lost) {
      in->keep_addresses();
    }
    return moved;
  }
  if (!out->chunks()->remove(out->offset_of(source), nbytes)) {
    home.record_violation();
  }
  return {};
}

void Chunks::destroy(void* at, std::size_t nbytes) noexcept {
  auto& home = engine_of(device_);
  static_cast<void>(home.begin(Call::free));
  const auto in = AddressBook::only().find(at, context_);
  const bool was = in && in->chunks() != nullptr;
  if (!was || in->chunks()->in_use(in->offset_of(at), nbytes) ||
      !in->chunks()->remove(in->offset_of(at), nbytes)) {
    home.record_violation();
  }
  if (was) {
    os::decommit_pages(in->open(at), nbytes);
    home.give_back(kind_, nbytes);
  }
}

}  // namespace isthmus::sim
