// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/tracking_resource.hpp"

#include <algorithm>
#include <cstring>

#include "core/never_destroyed.hpp"
#include "core/sizes.hpp"
#include "os/stack.hpp"

namespace isthmus {
namespace {

// All tracking resources that exist. Never destroyed.
struct Trackers {
  std::mutex lock;
  std::vector<TrackingResource*> all;
};
Trackers& process_trackers() {
  static NeverDestroyed<Trackers> only;
  return *only;
}

Error unknown(const void* pointer) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not a block of this resource, lies inside one, or was freed before", pointer);
}

}  // namespace

constinit std::atomic<std::size_t> TrackingResource::count_{0};

TrackingResource::TrackingResource(MemoryResource& upstream, Options options)
    : Adaptor{upstream}, how_{std::move(options)} {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  known.all.push_back(this);
  count_.store(known.all.size(), std::memory_order_relaxed);
}

TrackingResource::~TrackingResource() {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  std::erase(known.all, this);
  count_.store(known.all.size(), std::memory_order_relaxed);
}

// Pre: no lock is held, since the function may allocate.
[[gnu::noinline]] const void* TrackingResource::capture() {
  std::array<void*, k_most_frames> frames;
  const auto count = os::capture_stack(std::span{frames}.first(how_.frames));
  const char* text = how_.function != nullptr ? how_.function(how_.keep.object()) : nullptr;
  return &stacks_.keep(std::span{frames}.first(count), text != nullptr ? text : "");
}

Result<void*> TrackingResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  const void* stack = wants_stacks() ? capture() : nullptr;
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  try {
    note(*memory, nbytes, queue, stack);
  } catch (const std::bad_alloc&) {
    static_cast<void>(Adaptor::deallocate(*memory, nbytes, &queue));
    throw;
  }
  return memory;
}

Result<void> TrackingResource::deallocate(void* pointer, std::size_t nbytes,
                                          Queue* behind) noexcept {
  if (auto late = late_.take(pointer); !late.empty()) {
    auto freed = Adaptor::deallocate(pointer, nbytes, behind);
    if (!freed) {
      late_.put_back(std::move(late));
    }
    return freed;
  }
  BlockNote noted;
  if (!take_note(pointer, nbytes, noted)) {
    return unknown(pointer);
  }
  auto freed = Adaptor::deallocate(pointer, nbytes, behind);
  if (!freed) {
    put_back(noted);
  }
  return freed;
}

void TrackingResource::freed(const void* pointer, std::size_t nbytes) noexcept {
  Adaptor::freed(pointer, nbytes);
  BlockNote noted;
  if (late_.has(pointer) || !take_note(pointer, nbytes, noted)) {
    return;
  }
  try {
    late_.put(pointer, noted);
  } catch (const std::bad_alloc&) {
    put_back(noted);  // it counts until the memory is returned
  }
}

void* TrackingResource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                      Queue* queue) noexcept {
  if (wants_stacks()) [[unlikely]] {
    return nullptr;
  }
  void* block = take_warm(upstream(), nbytes, alignment, queue);
  if (block == nullptr) [[unlikely]] {
    return nullptr;
  }
  try {
    note(block, nbytes, *queue, nullptr);
    return block;
  } catch (const std::bad_alloc&) {
    static_cast<void>(Adaptor::deallocate(block, nbytes, queue));
    return nullptr;  // the slow path fails as well, with an error
  }
}

bool TrackingResource::deallocate_warm(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  BlockNote noted;
  if (!take_note(pointer, nbytes, noted)) [[unlikely]] {
    return false;
  }
  const bool freed = give_back_warm(upstream(), pointer, nbytes, queue);
  if (!freed) [[unlikely]] {
    put_back(noted);
  }
  return freed;
}

std::vector<BlockNote> TrackingResource::live() {
  auto found = notes_.all();
  const auto since = since_.load(std::memory_order_relaxed);
  std::erase_if(found, [&](const BlockNote& each) { return each.order < since; });
  std::sort(found.begin(), found.end(),
            [](const BlockNote& a, const BlockNote& b) { return a.order < b.order; });
  return found;
}

std::vector<TrackingResource::UseOfTag> TrackingResource::usage_by_tag() {
  std::vector<UseOfTag> found;
  by_tag_.look_at_each(
      [&](const char* tag, UsageCounter& each) { found.push_back({tag, each.read()}); });
  std::sort(found.begin(), found.end(), [](const UseOfTag& a, const UseOfTag& b) {
    const auto more = a.counts.current.bytes;
    const auto less = b.counts.current.bytes;
    return more != less ? more > less : std::strcmp(a.tag, b.tag) < 0;
  });
  return found;
}

bool TrackingResource::stands_on(const MemoryResource& base) {
  std::vector<MemoryResource*> bases;
  collect_bases(bases);
  return std::find(bases.begin(), bases.end(), &base) != bases.end();
}

void TrackingResource::visit_over(const MemoryResource& base,
                                  const std::function<void(TrackingResource&)>& see) {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  for (auto* each : known.all) {
    if (each->stands_on(base)) {
      see(*each);
    }
  }
}

// A block of a custom resource may begin inside of what the library knows, at `pointer`.
std::optional<BlockNote> TrackingResource::find_note_of(const PointerFacts& block,
                                                        const void* pointer,
                                                        std::uint64_t since) noexcept {
  std::optional<BlockNote> newest;
  const auto look = [&](TrackingResource& in, const void* start) {
    BlockNote found;
    const bool is_of_block =
        start != nullptr && in.notes_.find(start, found) && found.order > since &&
        (block.nbytes == 0 ||
         lies_within(address(start) - address(block.base), found.nbytes, block.nbytes));
    if (is_of_block && (!newest || found.order > newest->order)) {
      newest = found;
    }
  };
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  for (auto* each : known.all) {
    look(*each, pointer);
    look(*each, block.base);
  }
  return newest;
}

}  // namespace isthmus
