// SPDX-License-Identifier: Apache-2.0
#include "dpctl/queues.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/errors.hpp"
#include "core/sycl_objects.hpp"

namespace isthmus::python {
namespace {

// A dpctl queue cannot be referenced weakly, so the cache is bounded: no queue is kept alive
// indefinitely.
constexpr std::size_t k_cache_size = 8;

struct CachedQueue {
  nb::object sycl_queue, queue, internal;
  nb::object pools[4];  // by kind
};

struct QueueCache {
  nb::object prepare;
  CachedQueue default_queue;                     // of dpctl's default queue
  std::array<CachedQueue, k_cache_size> recent;  // most recently used first
};

// Never destroyed: the interpreter ends before static destructors run.
QueueCache& queue_cache() {
  static auto* const all = new QueueCache;
  return *all;
}

CachedQueue prepared(nb::handle queue) {
  const auto entries = nb::cast<nb::tuple>(queue_cache().prepare(queue));
  return {entries[0], entries[1], entries[2], {nb::none(), entries[3], entries[4], entries[5]}};
}

DpctlSource source_in(const CachedQueue& queue, isthmus_kind_t kind) {
  return {queue.sycl_queue, queue.queue, queue.internal, queue.pools[kind]};
}

// The cached entry of a queue; null if there is none. Runs no Python code.
CachedQueue* find_recent(nb::handle queue) noexcept {
  auto& recent = queue_cache().recent;
  const auto found = std::find_if(recent.begin(), recent.end(),
                                  [&](const auto& each) { return each.sycl_queue.is(queue); });
  if (found == recent.end()) {
    return nullptr;
  }
  std::rotate(recent.begin(), found, found + 1);
  return recent.data();
}

}  // namespace

void set_dpctl_preparer(nb::object prepare) { queue_cache().prepare = std::move(prepare); }

void clear_dpctl_queues() {
  const auto default_queue = std::exchange(queue_cache().default_queue, {});
  const auto recent = std::exchange(queue_cache().recent, {});  // destroyed when this returns
}

// Another thread may prepare the same queue meanwhile: the first result remains in the cache.
DpctlSource dpctl_source_for(nb::handle queue, isthmus_kind_t kind) {
  if (queue.is_none()) {
    if (!queue_cache().default_queue.sycl_queue.is_valid()) {
      auto entry = prepared(queue);
      if (!queue_cache().default_queue.sycl_queue.is_valid()) {
        queue_cache().default_queue = std::move(entry);
      }
    }
    return source_in(queue_cache().default_queue, kind);
  }
  if (const auto* found = find_recent(queue)) {
    return source_in(*found, kind);
  }
  auto entry = prepared(queue);
  const auto source = source_in(entry, kind);
  if (find_recent(queue) == nullptr) {
    auto& recent = queue_cache().recent;
    std::rotate(recent.begin(), recent.end() - 1, recent.end());
    std::swap(recent.front(), entry);  // the entry that was dropped is destroyed when this returns
  }
  return source;
}

nb::object dpctl_queue_of(nb::handle queue) {
  const auto& default_queue = queue_cache().default_queue;
  if (default_queue.queue.is_valid() && default_queue.queue.is(queue)) {
    return default_queue.sycl_queue;
  }
  for (const auto& each : queue_cache().recent) {
    if (each.queue.is_valid() && each.queue.is(queue)) {
      return each.sycl_queue;
    }
  }
  return nb::module_::import_("dpctl").attr("SyclQueue")(sycl_capsule(*nb::inst_ptr<Queue>(queue)));
}

}  // namespace isthmus::python
