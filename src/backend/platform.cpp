// SPDX-License-Identifier: Apache-2.0
#include "backend/platform.hpp"

#include <algorithm>

#include "backend/queue.hpp"

namespace isthmus {

// Deletes the parts of the platform in the reverse order of their creation.
platform::~platform() {
  for (auto* part : default_queues_) {
    delete part;
  }
  delete default_context_;
}

device& platform::add(std::unique_ptr<device> found) {
  return *devices_.emplace_back(std::move(found));
}

device* platform::device_of(void* native) const noexcept {
  const auto found = std::ranges::find_if(
      devices_, [&](const auto& each) { return native != nullptr && each->native() == native; });
  return found != devices_.end() ? found->get() : nullptr;
}

result<context*> platform::default_context_locked() {
  if (default_context_ == nullptr) {
    std::vector<device*> members;
    for (const auto& member : devices_) {
      members.push_back(member.get());
    }
    auto made = make_context(std::move(members), this);
    if (!made) {
      return made.take_error();
    }
    default_context_ = made->get();
  }
  return default_context_;
}

result<ref<context>> platform::default_context() {
  const std::lock_guard hold{defaults_lock_};
  auto found = default_context_locked();
  if (!found) {
    return found.take_error();
  }
  return ref<context>{*found};
}

result<ref<queue>> platform::make_default_queue(device& member, std::atomic<queue*>& slot) {
  const std::lock_guard hold{defaults_lock_};
  if (auto* made = slot.load(std::memory_order_acquire)) {
    return ref<queue>{made};
  }
  auto home = default_context_locked();
  if (!home) {
    return home.take_error();
  }
  auto made = (*home)->make_queue(member, true);
  if (!made) {
    return made.take_error();
  }
  default_queues_.push_back(made->get());
  slot.store(made->get(), std::memory_order_release);
  return made;
}

result<ref<context>> platform::create_context(std::span<device* const> members) {
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

result<ref<context>> platform::adopt_context(device&, void*, owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the {} backend has no native contexts to adopt",
              properties_.backend);
}

result<ref<context>> platform::share_context(device&, context&) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "no other backend has contexts that are built on {}",
              properties_.backend);
}

result<ref<queue>> platform::adopt_queue(device&, void*, owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the {} backend has no native queues to adopt",
              properties_.backend);
}

}  // namespace isthmus
