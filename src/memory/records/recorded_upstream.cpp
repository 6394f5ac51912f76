// SPDX-License-Identifier: Apache-2.0
#include "memory/records/recorded_upstream.hpp"

#include <algorithm>
#include <vector>

#include "core/sizes.hpp"
#include "memory/pool/page_map.hpp"
#include "memory/records/allocation_creation.hpp"

namespace isthmus {
namespace {

bool is_pool_memory(const Allocation::Facts& facts) noexcept {
  const auto* at = static_cast<const std::byte*>(facts.base);
  const auto* const last = at + facts.nbytes - 1;
  bool found = process_page_map.find(last) != nullptr;
  for (; !found && at < last; at += k_pool_page_bytes) {
    found = process_page_map.find(at) != nullptr;
  }
  return found;
}

Result<void> check(MemoryResource& resource) {
  const char* problem = nullptr;
  std::vector<MemoryResource*> bases;
  resource.collect_bases(bases);
  if (std::any_of(bases.begin(), bases.end(), [](auto* each) { return each->is_pool(); })) {
    problem =
        "is built on another pool, whose memory this one cannot manage: use the upstream of that "
        "pool";
  } else if (resource.kinds() != MemoryResource::set_of(resource.kind())) {
    problem =
        "returns memory of several kinds, which a pool cannot mix: put the fallback over the pool";
  } else if (std::any_of(bases.begin(), bases.end(),
                         [&](auto* each) { return &each->device() != &resource.device(); })) {
    problem =
        "returns memory of several devices, which a pool cannot mix: put the fallback over pools";
  } else if (resource.may_release_early()) {
    problem = "releases memory that was not freed, as monotonic resources do: put it over the pool";
  }
  if (problem != nullptr) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "the upstream of a pool, of {} memory on {}, {}",
                kind_name(resource.kind()), resource.device().properties().filter, problem);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<PoolUpstream>> RecordedUpstream::create(Ref<MemoryResource> resource) {
  ISTHMUS_TRY(check(*resource));
  auto queue = Queue::create(resource->context(), resource->device());
  ISTHMUS_TRY(queue);
  return std::shared_ptr<PoolUpstream>{
      std::make_shared<RecordedUpstream>(std::move(resource), *std::move(queue))};
}

// Waits for work that upstream submitted to the queue, for example a prefetch.
Result<PoolUpstream::Chunk> RecordedUpstream::allocate(const AllocationRequest& request) {
  auto chunk = create_allocation(*queue_, request, resource_.get());
  ISTHMUS_TRY(chunk);
  if (!queue_->is_known_idle()) {
    std::vector<Ref<Event>> running;
    ISTHMUS_TRY(queue_->unfinished(running));
    ISTHMUS_TRY(wait_until_ended_interruptibly(running));
  }
  const auto& facts = (*chunk)->facts();
  if (is_pool_memory(facts)) {
    return fail(ISTHMUS_ERROR_CALLBACK,
                "the upstream of a pool returned {} at {}, which a pool manages already: return "
                "memory of the driver, or of a resource that is not a pool",
                describe_bytes(facts.nbytes), facts.base);
  }
  return Chunk{facts.base, *std::move(chunk)};
}

}  // namespace isthmus
