#include "backend/sim/context.hpp"

#include "backend/sim/memory.hpp"
#include "backend/sim/queue.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {

context::~context() {
  for (auto* member : devices()) {
    engine_of(*member).drain(this);
  }
  for (const auto& leftover : address_book::only().remove_all(this)) {
    engine_of(leftover->home()).give_back(leftover->kind(), leftover->nbytes());
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
  return {found->kind(), found->base(), found->nbytes(), &found->home()};
}

void* context::function_address(void* pointer) noexcept {
  const auto found = address_book::only().find(pointer, this);
  return found ? found->open(pointer) : pointer;
}

result<ref<isthmus::queue>> context::make_queue(isthmus::device& where, bool part) {
  ISTHMUS_TRY(engine_of(where).begin(call::queue));
  return ref<isthmus::queue>{make_ref<sim::queue>(*this, where, part)};
}

}  // namespace isthmus::sim
