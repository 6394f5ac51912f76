// SPDX-License-Identifier: Apache-2.0
#include "dpctl_queues.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "errors.hpp"
#include "sycl_objects.hpp"

namespace isthmus::python {
namespace {

// A dpctl queue cannot be referenced weakly, so the cache is bounded: no queue is kept
// indefinitely.
constexpr std::size_t k_kept = 8;

struct KnownQueue {
  nb::object theirs, queue, own;
  nb::object pools[4];  // by kind
};

struct KnownQueues {
  nb::object prepare;
  KnownQueue usual;                       // of dpctl's default queue
  std::array<KnownQueue, k_kept> recent;  // most recently used first
};

// Never destroyed: the interpreter ends before static destructors run.
KnownQueues& known() {
  static auto* const all = new KnownQueues;
  return *all;
}

KnownQueue prepared(nb::handle queue) {
  const auto told = nb::cast<nb::tuple>(known().prepare(queue));
  return {told[0], told[1], told[2], {nb::none(), told[3], told[4], told[5]}};
}

DpctlSource source_in(const KnownQueue& queue, isthmus_kind_t kind) {
  return {queue.theirs, queue.queue, queue.own, queue.pools[kind]};
}

// Null if it is not cached. Runs no Python code.
KnownQueue* find_recent(nb::handle queue) noexcept {
  auto& recent = known().recent;
  const auto found = std::find_if(recent.begin(), recent.end(),
                                  [&](const auto& each) { return each.theirs.is(queue); });
  if (found == recent.end()) {
    return nullptr;
  }
  std::rotate(recent.begin(), found, found + 1);
  return recent.data();
}

}  // namespace

void set_dpctl_preparer(nb::object prepare) { known().prepare = std::move(prepare); }

void forget_dpctl_queues() {
  const auto usual = std::exchange(known().usual, {});
  const auto recent = std::exchange(known().recent, {});  // destroyed when this returns
}

// Another thread may prepare the same one meanwhile: the first result is kept.
DpctlSource dpctl_source_for(nb::handle queue, isthmus_kind_t kind) {
  if (queue.is_none()) {
    if (!known().usual.theirs.is_valid()) {
      auto made = prepared(queue);
      if (!known().usual.theirs.is_valid()) {
        known().usual = std::move(made);
      }
    }
    return source_in(known().usual, kind);
  }
  if (const auto* found = find_recent(queue)) {
    return source_in(*found, kind);
  }
  auto made = prepared(queue);
  const auto source = source_in(made, kind);
  if (find_recent(queue) == nullptr) {
    auto& recent = known().recent;
    std::rotate(recent.begin(), recent.end() - 1, recent.end());
    std::swap(recent.front(), made);  // the entry that was dropped is destroyed when this returns
  }
  return source;
}

nb::object dpctl_queue_of(nb::handle ours) {
  const auto& usual = known().usual;
  if (usual.queue.is_valid() && usual.queue.is(ours)) {
    return usual.theirs;
  }
  for (const auto& each : known().recent) {
    if (each.queue.is_valid() && each.queue.is(ours)) {
      return each.theirs;
    }
  }
  return nb::module_::import_("dpctl").attr("SyclQueue")(sycl_capsule(*nb::inst_ptr<Queue>(ours)));
}

}  // namespace isthmus::python
