// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/platform.hpp"

#include <algorithm>

#include "backend/sycl/context.hpp"
#include "backend/sycl/queue.hpp"
#include "core/text.hpp"

namespace isthmus::sycl {

platform::platform(platform_properties properties, const api& calls, owned_platform reference,
                   type_numbers& numbers, std::vector<std::string>& reasons)
    : isthmus::platform{std::move(properties)}, calls_{calls}, reference_{std::move(reference)} {
  const owned_devices listed{calls_, calls_.list_devices(reference_.get(), dp::k_type_all)};
  const auto told = [&](const error& why) {
    reasons.push_back(formatted("{}: {}", this->properties().name, why.message()));
  };
  if (!listed) {
    told(call_failed("sycl::platform::get_devices"));
    return;
  }
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    owned_device one{calls_, calls_.device_at(listed.get(), index)};
    if (!one) {
      told(call_failed("sycl::device"));
    } else if (auto found = describe(calls_, one.get(), numbers)) {
      add(std::make_unique<device>(*this, calls_, *std::move(found), std::move(one)));
    } else {
      told(found.failure());
    }
  }
}

isthmus::device* platform::device_of(void* native) const noexcept {
  return native != nullptr ? find(static_cast<device_reference>(native)) : nullptr;
}

device* platform::find(device_reference reference) const noexcept {
  const auto listed = devices();
  const auto whole = std::ranges::find_if(listed, [&](const auto& member) {
    return calls_.same_device(static_cast<const device&>(*member).reference(), reference);
  });
  if (whole != listed.end()) {
    return static_cast<device*>(whole->get());
  }
  const std::lock_guard hold{parts_lock_};
  return find_part_locked(reference);
}

device* platform::find_part_locked(device_reference reference) const noexcept {
  const auto found = std::ranges::find_if(
      parts_, [&](const auto& part) { return calls_.same_device(part->reference(), reference); });
  return found != parts_.end() ? found->get() : nullptr;
}

bool platform::is_part_of(const device& whole, device_reference reference) const noexcept {
  for (owned_device above{calls_, calls_.parent_of(reference)}; above;
       above = owned_device{calls_, calls_.parent_of(above.get())}) {
    if (calls_.same_device(above.get(), whole.reference())) {
      return true;
    }
  }
  return false;
}

result<device*> platform::device_or_part(device& member, device_reference reference) {
  if (calls_.same_device(member.reference(), reference)) {
    return &member;
  }
  if (!is_part_of(member, reference)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "the queue does not belong to {}",
                member.properties().filter);
  }
  const std::lock_guard hold{parts_lock_};
  if (auto* known = find_part_locked(reference)) {
    return known;
  }
  type_numbers apart{};
  auto told = describe(calls_, reference, apart);
  ISTHMUS_TRY(told);
  told->filter = member.properties().filter;
  owned_device copied{calls_, calls_.copy_device(reference)};
  if (!copied) {
    return call_failed("sycl::device");
  }
  parts_.push_back(std::make_unique<device>(*this, calls_, *std::move(told), std::move(copied)));
  return parts_.back().get();
}

// The platform's default context is SYCL's own default one, so that its memory is usable on dpctl's
// default queues.
result<ref<isthmus::context>> platform::make_context(std::vector<isthmus::device*> members,
                                                     isthmus::platform* whole) {
  owned_context made;
  if (whole != nullptr) {
    made = owned_context{calls_, calls_.platform_context(reference_.get())};
  } else {
    std::vector<device_reference> references;
    for (auto* member : members) {
      references.push_back(static_cast<device*>(member)->reference());
    }
    const owned_devices listed{calls_, calls_.make_devices(references.size(), references.data())};
    made = owned_context{calls_, calls_.make_context(listed.get(), nullptr, 0)};
  }
  if (!made) {
    return call_failed("sycl::context");
  }
  return ref<isthmus::context>{
      make_ref<context>(*this, std::move(made), std::move(members), whole, owner{})};
}

result<std::vector<isthmus::device*>> platform::members_of(context_reference native) const {
  const owned_devices listed{calls_, calls_.context_devices(native)};
  if (!listed) {
    return call_failed("sycl::context::get_devices");
  }
  std::vector<isthmus::device*> members;
  for (std::size_t index = 0; index < calls_.count_devices(listed.get()); ++index) {
    const owned_device one{calls_, calls_.device_at(listed.get(), index)};
    if (!one) {  // without it the context would lack one of its devices
      return call_failed("sycl::context::get_devices");
    }
    if (auto* known = find(one.get())) {
      members.push_back(known);
    }
  }
  return members;
}

result<ref<isthmus::context>> platform::copy_context(context_reference native,
                                                     std::vector<isthmus::device*> members,
                                                     owner keep) {
  owned_context copied{calls_, calls_.copy_context(native)};
  if (!copied) {
    return call_failed("sycl::context");
  }
  return ref<isthmus::context>{
      make_ref<context>(*this, std::move(copied), std::move(members), nullptr, std::move(keep))};
}

result<ref<isthmus::context>> platform::adopt_context(isthmus::device& member, void* native,
                                                      owner keep) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::context");
  }
  auto* const given = static_cast<context_reference>(native);
  auto members = members_of(given);
  ISTHMUS_TRY(members);
  if (std::ranges::find(*members, &member) == members->end()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of that context",
                member.properties().filter);
  }
  return copy_context(given, *std::move(members), std::move(keep));
}

result<ref<isthmus::queue>> platform::adopt_queue(isthmus::device& member, void* native,
                                                  owner keep) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a sycl::queue");
  }
  owned_queue copied{calls_, calls_.copy_queue(static_cast<queue_reference>(native))};
  const owned_device where{calls_, copied ? calls_.queue_device(copied.get()) : nullptr};
  const owned_context within{calls_, copied ? calls_.queue_context(copied.get()) : nullptr};
  if (!where || !within) {
    return call_failed("sycl::queue");
  }
  auto found = device_or_part(static_cast<device&>(member), where.get());
  ISTHMUS_TRY(found);
  auto& on = **found;
  const auto key = calls_.queue_key(copied.get());
  const std::lock_guard hold{on.adopting()};
  if (auto known = on.known_queues().find(key)) {
    return known;
  }
  auto members = members_of(within.get());
  ISTHMUS_TRY(members);
  auto home = copy_context(within.get(), *std::move(members), owner{});
  ISTHMUS_TRY(home);
  auto made =
      make_ref<queue>(static_cast<context&>(**home), on, std::move(copied), std::move(keep));
  on.known_queues().add(key, *made);
  return ref<isthmus::queue>{std::move(made)};
}

}  // namespace isthmus::sycl
