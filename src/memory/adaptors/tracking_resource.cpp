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
struct trackers {
  std::mutex lock;
  std::vector<tracking_resource*> all;
};
trackers& process_trackers() {
  static never_destroyed<trackers> only;
  return *only;
}

error unknown(const void* pointer) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "{} is not a block of this resource, lies inside one, or was freed before", pointer);
}

}  // namespace

constinit std::atomic<std::size_t> tracking_resource::count_{0};

tracking_resource::tracking_resource(memory_resource& upstream, options how)
    : adaptor{upstream}, how_{std::move(how)} {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  known.all.push_back(this);
  count_.store(known.all.size(), std::memory_order_relaxed);
}

tracking_resource::~tracking_resource() {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  std::erase(known.all, this);
  count_.store(known.all.size(), std::memory_order_relaxed);
}

// Pre: no lock is held, since the function may allocate.
[[gnu::noinline]] const void* tracking_resource::capture() {
  std::array<void*, k_most_frames> frames;
  const auto count = os::capture_stack(std::span{frames}.first(how_.frames));
  const char* text = how_.function != nullptr ? how_.function(how_.keep.object()) : nullptr;
  return &stacks_.keep(std::span{frames}.first(count), text != nullptr ? text : "");
}

result<void*> tracking_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  const void* stack = wants_stacks() ? capture() : nullptr;
  auto memory = adaptor::allocate(nbytes, alignment, on);
  ISTHMUS_TRY(memory);
  try {
    note(*memory, nbytes, on, stack);
  } catch (const std::bad_alloc&) {
    static_cast<void>(adaptor::deallocate(*memory, nbytes, &on));
    throw;
  }
  return memory;
}

result<void> tracking_resource::deallocate(void* pointer, std::size_t nbytes,
                                           queue* behind) noexcept {
  if (auto late = late_.take(pointer); !late.empty()) {
    auto freed = adaptor::deallocate(pointer, nbytes, behind);
    if (!freed) {
      late_.put_back(std::move(late));
    }
    return freed;
  }
  block_note noted;
  if (!take_note(pointer, nbytes, noted)) {
    return unknown(pointer);
  }
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
  if (!freed) {
    put_back(noted);
  }
  return freed;
}

void tracking_resource::freed(const void* pointer, std::size_t nbytes) noexcept {
  adaptor::freed(pointer, nbytes);
  block_note noted;
  if (late_.has(pointer) || !take_note(pointer, nbytes, noted)) {
    return;
  }
  try {
    late_.put(pointer, noted);
  } catch (const std::bad_alloc&) {
    put_back(noted);  // it counts until the memory is returned
  }
}

void* tracking_resource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                       queue* on) noexcept {
  if (wants_stacks()) [[unlikely]] {
    return nullptr;
  }
  void* block = take_warm(upstream(), nbytes, alignment, on);
  if (block == nullptr) [[unlikely]] {
    return nullptr;
  }
  try {
    note(block, nbytes, *on, nullptr);
    return block;
  } catch (const std::bad_alloc&) {
    static_cast<void>(adaptor::deallocate(block, nbytes, on));
    return nullptr;  // the slow path fails as well, with an error
  }
}

bool tracking_resource::deallocate_warm(void* pointer, std::size_t nbytes, queue* on) noexcept {
  block_note noted;
  if (!take_note(pointer, nbytes, noted)) [[unlikely]] {
    return false;
  }
  const bool freed = give_back_warm(upstream(), pointer, nbytes, on);
  if (!freed) [[unlikely]] {
    put_back(noted);
  }
  return freed;
}

std::vector<block_note> tracking_resource::live() {
  auto found = notes_.all();
  const auto since = since_.load(std::memory_order_relaxed);
  std::erase_if(found, [&](const block_note& each) { return each.order < since; });
  std::sort(found.begin(), found.end(),
            [](const block_note& a, const block_note& b) { return a.order < b.order; });
  return found;
}

std::vector<tracking_resource::use_of_tag> tracking_resource::usage_by_tag() {
  std::vector<use_of_tag> found;
  by_tag_.look_at_each(
      [&](const char* tag, usage_counter& each) { found.push_back({tag, each.read()}); });
  std::sort(found.begin(), found.end(), [](const use_of_tag& a, const use_of_tag& b) {
    const auto more = a.counts.current.bytes;
    const auto less = b.counts.current.bytes;
    return more != less ? more > less : std::strcmp(a.tag, b.tag) < 0;
  });
  return found;
}

bool tracking_resource::stands_on(const memory_resource& base) {
  std::vector<memory_resource*> bases;
  collect_bases(bases);
  return std::find(bases.begin(), bases.end(), &base) != bases.end();
}

void tracking_resource::visit_over(const memory_resource& base,
                                   const std::function<void(tracking_resource&)>& see) {
  auto& known = process_trackers();
  const std::lock_guard hold{known.lock};
  for (auto* each : known.all) {
    if (each->stands_on(base)) {
      see(*each);
    }
  }
}

// A block of a custom resource may begin inside of what the library knows, at `pointer`.
std::optional<block_note> tracking_resource::find_note_of(const pointer_facts& block,
                                                          const void* pointer,
                                                          std::uint64_t since) noexcept {
  std::optional<block_note> newest;
  const auto look = [&](tracking_resource& in, const void* start) {
    block_note found;
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
