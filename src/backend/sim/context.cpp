// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/context.hpp"

#include <algorithm>

#include "backend/sim/memory.hpp"
#include "backend/sim/queue.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {

context::context(std::vector<isthmus::device*> members, isthmus::platform* whole)
    : isthmus::context{std::move(members), whole} {
  for (auto* each : devices()) {
    if (each->can(ISTHMUS_CAN_REMAP)) {
      for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
        chunks_.push_back(std::make_unique<sim::chunks>(this, *each, kind));
      }
    }
  }
}

context::~context() {
  for (auto* member : devices()) {
    engine_of(*member).drain(this);
  }
  for (const auto& leftover : address_book::only().remove_all(this)) {
    engine_of(leftover->home()).give_back(leftover->kind(), leftover->held_bytes());
  }
}

result<void*> context::do_allocate(isthmus::device& where, const allocation_request& request) {
  auto& home = engine_of(where);
  ISTHMUS_TRY(home.begin(call::allocate));
  ISTHMUS_TRY(home.reserve(request));
  auto made = allocation::make(this, where, request);
  if (!made) {
    home.give_back(request.kind, request.nbytes);
    return made.take_error();
  }
  void* const base = (*made)->base();
  address_book::only().add(*std::move(made));
  return base;
}

void context::do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept {
  const auto found = address_book::only().remove(pointer, this);
  auto& home = engine_of(found ? found->home() : *devices().front());
  static_cast<void>(home.begin(call::free));
  if (!found) {
    home.record_violation();
    return;
  }
  home.give_back(found->kind(), found->nbytes());
  if (found->in_use() || found->kind() != kind || found->nbytes() != nbytes) {
    home.record_violation();
  }
}

pointer_facts context::query(const void* pointer) noexcept {
  const auto found = address_book::only().find(pointer, this);
  if (!found) {
    return {};
  }
  if (auto* const chunks = found->chunks()) {
    const auto part = chunks->stretch_at(found->offset_of(pointer));
    return part.nbytes == 0 ? pointer_facts{}
                            : pointer_facts{found->kind(), found->base() + part.offset, part.nbytes,
                                            &found->home()};
  }
  return {found->kind(), found->base(), found->nbytes(), &found->home()};
}

void* context::function_address(void* pointer) noexcept {
  const auto found = address_book::only().find(pointer, this);
  return found ? found->open(pointer) : pointer;
}

chunk_source* context::chunks(isthmus::device& where, usm_kind kind) noexcept {
  const auto found = std::find_if(chunks_.begin(), chunks_.end(),
                                  [&](const auto& each) { return each->are_of(where, kind); });
  return found == chunks_.end() ? nullptr : found->get();
}

result<ref<isthmus::queue>> context::make_queue(isthmus::device& where, bool part) {
  ISTHMUS_TRY(engine_of(where).begin(call::queue));
  return ref<isthmus::queue>{make_ref<sim::queue>(*this, where, part)};
}

}  // namespace isthmus::sim
