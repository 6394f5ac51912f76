// SPDX-License-Identifier: Apache-2.0
#include "backend/platform.hpp"

#include <algorithm>

#include "backend/queue.hpp"
#include "core/lock_guard.hpp"

namespace isthmus {

// Deletes the queues before the context that they use.
Platform::~Platform() {
  for (auto* queue : default_queues_) {
    delete queue;
  }
  delete default_context_;
}

Device& Platform::add(std::unique_ptr<Device> device) {
  device->become_child_of(*this);
  return *devices_.emplace_back(std::move(device));
}

Device* Platform::device_of(void* native) const noexcept {
  const auto found = std::ranges::find_if(
      devices_, [&](const auto& each) { return native != nullptr && each->native() == native; });
  return found != devices_.end() ? found->get() : nullptr;
}

Result<Context*> Platform::default_context_locked() {
  if (default_context_ == nullptr) {
    std::vector<Device*> members;
    for (const auto& member : devices_) {
      members.push_back(member.get());
    }
    auto context = make_context(std::move(members), this);
    if (!context) {
      return context.take_error();
    }
    default_context_ = context->get();
  }
  return default_context_;
}

Result<Ref<Context>> Platform::default_context() {
  const LockGuard hold{defaults_lock_};
  auto found = default_context_locked();
  if (!found) {
    return found.take_error();
  }
  return Ref<Context>{*found};
}

Result<Ref<Queue>> Platform::default_queue(Device& device) {
  if (auto* queue = device.default_queue_.load(std::memory_order_acquire)) {
    return Ref<Queue>{queue};
  }
  return device.platform_.create_default_queue(device);
}

// Returns the queue of another thread that has created it meanwhile.
Result<Ref<Queue>> Platform::create_default_queue(Device& member) {
  const LockGuard hold{defaults_lock_};
  if (auto* queue = member.default_queue_.load(std::memory_order_acquire)) {
    return Ref<Queue>{queue};
  }
  auto context = default_context_locked();
  if (!context) {
    return context.take_error();
  }
  auto queue = (*context)->make_queue(member, true);
  if (!queue) {
    return queue.take_error();
  }
  default_queues_.push_back(queue->get());
  member.default_queue_.store(queue->get(), std::memory_order_release);
  return queue;
}

Result<Ref<Context>> Platform::create_context(std::span<Device* const> members) {
  if (members.empty()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a context needs at least one device");
  }
  for (const auto* member : members) {
    if (!owns(*member)) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "{} is not a device of the platform '{}': a context's devices share a platform",
                  member->properties().filter, properties_.name);
    }
  }
  return make_context({members.begin(), members.end()}, nullptr);
}

Result<Ref<Context>> Platform::adopt_context(Device&, void*, Owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the {} backend has no native contexts to adopt",
              properties_.backend);
}

Result<Ref<Context>> Platform::share_context(Device&, Context&) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "no other backend has contexts that are built on {}",
              properties_.backend);
}

Result<Ref<Queue>> Platform::adopt_queue(Device&, void*, Owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the {} backend has no native queues to adopt",
              properties_.backend);
}

}  // namespace isthmus
