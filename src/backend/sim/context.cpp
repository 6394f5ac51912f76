// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/context.hpp"

#include <algorithm>

#include "backend/sim/memory.hpp"
#include "backend/sim/queue.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {

Context::Context(std::vector<isthmus::Device*> members, isthmus::Platform* whole)
    : isthmus::Context{std::move(members), whole} {
  for (auto* each : devices()) {
    if (each->can(ISTHMUS_CAN_REMAP)) {
      for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
        chunks_.push_back(std::make_unique<sim::Chunks>(this, *each, kind));
      }
    }
  }
}

Context::~Context() {
  for (auto* member : devices()) {
    engine_of(*member).drain(this);
  }
  for (const auto& leftover : AddressBook::only().remove_all(this)) {
    engine_of(leftover->device()).give_back(leftover->kind(), leftover->held_bytes());
  }
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  auto& home = engine_of(device);
  ISTHMUS_TRY(home.begin(Call::allocate));
  ISTHMUS_TRY(home.reserve(request));
  auto made = Allocation::make(this, device, request);
  if (!made) {
    home.give_back(request.kind, request.nbytes);
    return made.take_error();
  }
  void* const base = (*made)->base();
  AddressBook::only().add(*std::move(made));
  return base;
}

void Context::do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  const auto found = AddressBook::only().remove(pointer, this);
  auto& home = engine_of(found ? found->device() : *devices().front());
  static_cast<void>(home.begin(Call::free));
  if (!found) {
    home.record_violation();
    return;
  }
  home.give_back(found->kind(), found->nbytes());
  if (found->in_use() || found->kind() != kind || found->nbytes() != nbytes) {
    home.record_violation();
  }
}

PointerFacts Context::query(const void* pointer) noexcept {
  const auto found = AddressBook::only().find(pointer, this);
  if (!found) {
    return {};
  }
  if (auto* const chunks = found->chunks()) {
    const auto part = chunks->stretch_at(found->offset_of(pointer));
    return part.nbytes == 0 ? PointerFacts{}
                            : PointerFacts{found->kind(), found->base() + part.offset, part.nbytes,
                                           &found->device()};
  }
  return {found->kind(), found->base(), found->nbytes(), &found->device()};
}

void* Context::function_address(void* pointer) noexcept {
  const auto found = AddressBook::only().find(pointer, this);
  return found ? found->open(pointer) : pointer;
}

ChunkSource* Context::chunks(isthmus::Device& device, UsmKind kind) noexcept {
  const auto found = std::find_if(chunks_.begin(), chunks_.end(),
                                  [&](const auto& each) { return each->are_of(device, kind); });
  return found == chunks_.end() ? nullptr : found->get();
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool part) {
  ISTHMUS_TRY(engine_of(device).begin(Call::queue));
  return Ref<isthmus::Queue>{make_ref<sim::Queue>(*this, device, part)};
}

}  // namespace isthmus::sim
