// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/chunks.hpp"

#include <algorithm>
#include <cstring>

#include "backend/sim/device.hpp"
#include "backend/sim/memory.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::sim {
namespace {

Error no_reservation(const void* address) {
  return fail(ISTHMUS_ERROR_DRIVER, "invalid pointer: {} does not lie in reserved addresses",
              address);
}

}  // namespace

Result<void*> Chunks::reserve(std::size_t nbytes, std::size_t alignment) {
  ISTHMUS_TRY(engine_of(device_).begin(Call::map));
  auto reservation =
      Allocation::reserve(context_, device_, {kind_, nbytes, std::max(alignment, granularity())});
  ISTHMUS_TRY(reservation);
  void* const base = (*reservation)->base();
  AddressBook::instance().add(*std::move(reservation));
  return base;
}

void Chunks::release(void* base, std::size_t nbytes) noexcept {
  auto& engine = engine_of(device_);
  static_cast<void>(engine.begin(Call::free));
  const auto found = AddressBook::instance().remove(base, context_);
  if (!found || found->nbytes() != nbytes || found->held_bytes() != 0) {
    engine.record_violation();
  }
}

Result<void> Chunks::create(void* address, std::size_t nbytes) {
  auto& engine = engine_of(device_);
  ISTHMUS_TRY(engine.begin(Call::allocate));
  const auto target = AddressBook::instance().find(address, context_);
  if (!target || target->chunks() == nullptr) {
    return no_reservation(address);
  }
  ISTHMUS_TRY(engine.reserve({kind_, nbytes, 0}));
  const auto offset = target->offset_of(address);
  auto committed = target->chunks()->add(offset, nbytes)
                       ? os::commit_pages(target->accessible_address(address), nbytes)
                       : Result<void>{Error::no_memory()};
  if (!committed) {
    static_cast<void>(target->chunks()->remove(offset, nbytes));
    engine.release_bytes(kind_, nbytes);
    return committed;
  }
  fill_with_pattern(target->accessible_address(address), nbytes);
  return {};
}

// On hardware, moving memory that an operation uses would lose data. Here it counts as a violation.
Result<void> Chunks::move(void* source, void* destination, std::size_t nbytes,
                          bool& destination_lost) {
  destination_lost = false;
  auto& engine = engine_of(device_);
  ISTHMUS_TRY(engine.begin(Call::map));
  const auto origin = AddressBook::instance().find(source, context_);
  const auto target = AddressBook::instance().find(destination, context_);
  if (!origin || origin->chunks() == nullptr || !target || target->chunks() == nullptr) {
    return no_reservation(origin ? destination : source);
  }
  if (origin->chunks()->in_use(origin->offset_of(source), nbytes)) {
    engine.record_violation();
  }
  if (!target->chunks()->add(target->offset_of(destination), nbytes)) {
    return Error::no_memory();
  }
  if (auto moved = os::move_pages(origin->accessible_address(source),
                                  target->accessible_address(destination), nbytes,
                                  os::LeftPages::reserved, destination_lost);
      !moved) {
    static_cast<void>(target->chunks()->remove(target->offset_of(destination), nbytes));
    if (destination_lost) {
      target->keep_addresses();
    }
    return moved;
  }
  if (!origin->chunks()->remove(origin->offset_of(source), nbytes)) {
    engine.record_violation();
  }
  return {};
}

void Chunks::destroy(void* address, std::size_t nbytes) noexcept {
  auto& engine = engine_of(device_);
  static_cast<void>(engine.begin(Call::free));
  const auto target = AddressBook::instance().find(address, context_);
  const bool is_reserved = target && target->chunks() != nullptr;
  if (!is_reserved || target->chunks()->in_use(target->offset_of(address), nbytes) ||
      !target->chunks()->remove(target->offset_of(address), nbytes)) {
    engine.record_violation();
  }
  if (is_reserved) {
    os::decommit_pages(target->accessible_address(address), nbytes);
    engine.release_bytes(kind_, nbytes);
  }
}

}  // namespace isthmus::sim
