// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/tracking_resource.hpp"

#include <algorithm>
#include <cstring>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"
#include "os/stack.hpp"

namespace isthmus {
namespace {

// All tracking resources that exist. Never destroyed.
struct Trackers {
  Mutex lock;
  std::vector<TrackingResource*> all ISTHMUS_GUARDED_BY(lock);
};
Trackers& process_trackers() {
  static NeverDestroyed<Trackers> only;
  return *only;
}

Error unknown(const void* pointer) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not a block of this resource, lies inside one, or was freed before", pointer);
}

// Adds the blocks to the holders with their tags.
void add(const std::vector<BlockRecord>& live, std::vector<Holder>& holders) {
  for (const auto& each : live) {
    auto found = std::find_if(holders.begin(), holders.end(),
                              [&](const Holder& candidate) { return candidate.tag == each.tag; });
    if (found == holders.end()) {
      found = holders.insert(found, {each.tag, 0, 0});
    }
    found->bytes += each.nbytes;
    ++found->count;
  }
}

}  // namespace

constinit std::atomic<std::size_t> TrackingResource::count_{0};

TrackingResource::TrackingResource(MemoryResource& upstream, Options options)
    : Adaptor{upstream}, options_{std::move(options)} {
  auto& trackers = process_trackers();
  const LockGuard hold{trackers.lock};
  trackers.all.push_back(this);
  count_.store(trackers.all.size(), std::memory_order_relaxed);
  set_holder_count(count_by_tag);
}

TrackingResource::~TrackingResource() {
  auto& trackers = process_trackers();
  const LockGuard hold{trackers.lock};
  std::erase(trackers.all, this);
  count_.store(trackers.all.size(), std::memory_order_relaxed);
}

// Called without a lock, since the program's function may allocate.
[[gnu::noinline]] const void* TrackingResource::capture() {
  std::array<void*, k_max_frames> frames;
  const auto count = os::capture_stack(std::span{frames}.first(options_.frames));
  const char* text =
      options_.function != nullptr ? options_.function(options_.owner.object()) : nullptr;
  return &stacks_.intern(std::span{frames}.first(count), text != nullptr ? text : "");
}

Result<void*> TrackingResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const void* stack = records_stacks() ? capture() : nullptr;
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  try {
    record_block(*memory, nbytes, queue, stack);
  } catch (const std::bad_alloc&) {
    static_cast<void>(Adaptor::deallocate(*memory, nbytes, &queue));
    throw;
  }
  return memory;
}

Result<void> TrackingResource::deallocate(void* pointer, std::size_t nbytes,
                                          Queue* after) noexcept {
  if (auto pending = pending_.extract(pointer); !pending.empty()) {
    auto freed = Adaptor::deallocate(pointer, nbytes, after);
    if (!freed) {
      pending_.reinsert(std::move(pending));
    }
    return freed;
  }
  BlockRecord record;
  if (!extract_record(pointer, nbytes, record)) {
    return unknown(pointer);
  }
  auto freed = Adaptor::deallocate(pointer, nbytes, after);
  if (!freed) {
    restore_record(record);
  }
  return freed;
}

void TrackingResource::freed(const void* pointer, std::size_t nbytes) noexcept {
  Adaptor::freed(pointer, nbytes);
  BlockRecord record;
  if (pending_.has(pointer) || !extract_record(pointer, nbytes, record)) {
    return;
  }
  try {
    pending_.insert(pointer, record);
  } catch (const std::bad_alloc&) {
    restore_record(record);  // the block counts as live until its memory is returned
  }
}

void* TrackingResource::allocate_fast(std::size_t nbytes, std::size_t alignment,
                                      Queue* queue) noexcept {
  if (records_stacks()) [[unlikely]] {
    return nullptr;
  }
  void* block = allocate_fast_from(upstream(), nbytes, alignment, queue);
  if (block == nullptr) [[unlikely]] {
    return nullptr;
  }
  try {
    record_block(block, nbytes, *queue, nullptr);
    return block;
  } catch (const std::bad_alloc&) {
    static_cast<void>(Adaptor::deallocate(block, nbytes, queue));
    return nullptr;  // the slow path fails as well, with an error
  }
}

bool TrackingResource::deallocate_fast(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  BlockRecord record;
  if (!extract_record(pointer, nbytes, record)) [[unlikely]] {
    return false;
  }
  const bool freed = deallocate_fast_to(upstream(), pointer, nbytes, queue);
  if (!freed) [[unlikely]] {
    restore_record(record);
  }
  return freed;
}

std::vector<BlockRecord> TrackingResource::live() {
  auto found = records_.all();
  const auto since = since_.load(std::memory_order_relaxed);
  std::erase_if(found, [&](const BlockRecord& each) { return each.order < since; });
  std::sort(found.begin(), found.end(),
            [](const BlockRecord& a, const BlockRecord& b) { return a.order < b.order; });
  return found;
}

std::vector<TrackingResource::UseOfTag> TrackingResource::usage_by_tag() {
  std::vector<UseOfTag> found;
  by_tag_.for_each(
      [&](const char* tag, UsageCounter& each) { found.push_back({tag, each.read()}); });
  std::sort(found.begin(), found.end(), [](const UseOfTag& a, const UseOfTag& b) {
    const auto a_bytes = a.counts.current.bytes;
    const auto b_bytes = b.counts.current.bytes;
    return a_bytes != b_bytes ? a_bytes > b_bytes : std::strcmp(a.tag, b.tag) < 0;
  });
  return found;
}

bool TrackingResource::is_based_on(const MemoryResource& base) {
  std::vector<MemoryResource*> bases;
  collect_bases(bases);
  return std::find(bases.begin(), bases.end(), &base) != bases.end();
}

void TrackingResource::count_by_tag(const MemoryResource& base, std::vector<Holder>& out) {
  auto& trackers = process_trackers();
  const LockGuard hold{trackers.lock};
  for (auto* each : trackers.all) {
    if (each->is_based_on(base)) {
      add(each->records_.all(), out);
    }
  }
}

// Looks up both addresses: a block of a custom resource may begin at `pointer`, inside the block
// that the library knows.
std::optional<BlockRecord> TrackingResource::find_record_of(const PointerFacts& block,
                                                            const void* pointer,
                                                            std::uint64_t since) noexcept {
  std::optional<BlockRecord> newest;
  const auto scan = [&](TrackingResource& tracker, const void* start) {
    BlockRecord found;
    const bool is_of_block =
        start != nullptr && tracker.records_.find(start, found) && found.order > since &&
        (block.nbytes == 0 ||
         lies_within(address(start) - address(block.base), found.nbytes, block.nbytes));
    if (is_of_block && (!newest || found.order > newest->order)) {
      newest = found;
    }
  };
  auto& trackers = process_trackers();
  const LockGuard hold{trackers.lock};
  for (auto* each : trackers.all) {
    scan(*each, pointer);
    scan(*each, block.base);
  }
  return newest;
}

}  // namespace isthmus
