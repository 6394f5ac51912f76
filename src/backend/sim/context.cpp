// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/context.hpp"

#include <algorithm>

#include "backend/sim/memory.hpp"
#include "backend/sim/queue.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {

Context::Context(std::vector<isthmus::Device*> members, isthmus::Platform* owning_platform)
    : isthmus::Context{std::move(members), owning_platform} {
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
  for (const auto& leftover : AddressBook::instance().remove_all(this)) {
    engine_of(leftover->device()).release_bytes(leftover->kind(), leftover->held_bytes());
  }
}

Result<void*> Context::do_allocate(isthmus::Device& device, const AllocationRequest& request) {
  auto& engine = engine_of(device);
  ISTHMUS_TRY(engine.begin(Call::allocate));
  ISTHMUS_TRY(engine.reserve(request));
  auto allocation = Allocation::make(this, device, request);
  if (!allocation) {
    engine.release_bytes(request.kind, request.nbytes);
    return allocation.take_error();
  }
  void* const base = (*allocation)->base();
  AddressBook::instance().add(*std::move(allocation));
  return base;
}

void Context::do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept {
  const auto found = AddressBook::instance().remove(pointer, this);
  auto& engine = engine_of(found ? found->device() : *devices().front());
  static_cast<void>(engine.begin(Call::free));
  if (!found) {
    engine.record_violation();
    return;
  }
  engine.release_bytes(found->kind(), found->nbytes());
  if (found->in_use() || found->kind() != kind || found->nbytes() != nbytes) {
    engine.record_violation();
  }
}

PointerFacts Context::query(const void* pointer) noexcept {
  const auto found = AddressBook::instance().find(pointer, this);
  if (!found) {
    return {};
  }
  if (auto* const chunks = found->chunks()) {
    const auto range = chunks->contiguous_range_at(found->offset_of(pointer));
    return range.nbytes == 0 ? PointerFacts{}
                             : PointerFacts{found->kind(), found->base() + range.offset,
                                            range.nbytes, &found->device()};
  }
  return {found->kind(), found->base(), found->nbytes(), &found->device()};
}

void* Context::function_address(void* pointer) noexcept {
  const auto found = AddressBook::instance().find(pointer, this);
  return found ? found->accessible_address(pointer) : pointer;
}

ChunkSource* Context::chunks(isthmus::Device& device, UsmKind kind) noexcept {
  const auto found = std::find_if(chunks_.begin(), chunks_.end(),
                                  [&](const auto& each) { return each->are_of(device, kind); });
  return found == chunks_.end() ? nullptr : found->get();
}

Result<Ref<isthmus::Queue>> Context::make_queue(isthmus::Device& device, bool platform_owned) {
  ISTHMUS_TRY(engine_of(device).begin(Call::queue));
  return Ref<isthmus::Queue>{make_ref<sim::Queue>(*this, device, platform_owned)};
}

}  // namespace isthmus::sim
