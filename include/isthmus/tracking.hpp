// SPDX-License-Identifier: Apache-2.0
// The allocation tracker, a resource that records every live block, and tags, the names under which
// memory is allocated. Use it to find leaks and to see how much memory each part of a program
// holds.
//
//   auto tracked = isthmus::resource::tracking(pool, {.frames = 16});
//   {
//     isthmus::tag_scope layer("layer1");
//     train(tracked);
//   }
//   std::puts(isthmus::leak_report(tracked).c_str());  // live blocks, by allocating stack
//
// Cost: about 10 ns for an allocation and its free, a microsecond or more with stacks, and 64 to
// 256 bytes of host memory per live block. Thread-safe, except for tag_scope, which belongs to one
// thread.
#pragma once

#include <isthmus/experimental.h>
#include <isthmus/adaptors.hpp>

namespace isthmus {
inline namespace v1 {

// Records the live blocks that were allocated through it. Freeing any other block throws
// invalid_argument. Throws invalid_argument for more than 64 frames.
inline resource resource::tracking(const resource& upstream, const tracking_options& options) {
  return detail::make<resource>(isthmus_resource_allocation_tracker, upstream.require(),
                                options.frames, isthmus_stack_function_t{nullptr},
                                isthmus_owner_t{});
}

// A live block and its allocation.
struct tracked_block {
  void* pointer = nullptr;
  std::size_t nbytes = 0;        // as requested
  std::uintptr_t queue_key = 0;  // of the queue that it was allocated on
  std::uint64_t order = 0;       // increases with the time of allocation; no unit
  std::uint64_t thread = 0;      // id of the allocating thread, as the system numbers it
  std::string tag;               // "" if untagged
  std::string stack;             // one line per frame, innermost first
};

// The live blocks that were allocated since the last reset, oldest first. Throws invalid_argument
// for a resource that tracking() did not create, as do the functions below.
[[nodiscard]] inline std::vector<tracked_block> live_blocks(const resource& tracked) {
  struct visit_result {
    std::vector<tracked_block> blocks;
    bool complete = true;
  } collected;
  const isthmus_tracked_allocation_function_t add = [](void* object,
                                                       const isthmus_tracked_allocation_t* block) {
    visit_result& result = *static_cast<visit_result*>(object);
    try {
      result.blocks.push_back({block->pointer, block->nbytes, block->queue_key, block->order,
                               block->thread, block->tag != nullptr ? block->tag : "",
                               block->stack});
    } catch (const std::bad_alloc&) {
      result.complete = false;
    }
  };
  detail::check(isthmus_allocation_tracker_visit(tracked.require(), add, &collected));
  if (!collected.complete) throw std::bad_alloc();
  return std::move(collected.blocks);
}

// A report on the blocks that live_blocks() returns, grouped by the stack and the tag of their
// allocation, most bytes first.
[[nodiscard]] inline std::string leak_report(const resource& tracked) {
  std::string text(4096, '\0');
  std::size_t length = 0;
  for (;;) {
    detail::check(
        isthmus_allocation_tracker_report(tracked.require(), text.data(), text.size(), &length));
    const bool complete = length < text.size();
    text.resize(complete ? length : length + length / 4 + 1);  // the text may grow meanwhile
    if (complete) return text;
  }
}

// The memory that was allocated under a tag.
struct tag_usage {
  std::string tag;
  statistics counts;
};
// The usage of each tag under which `tracked` allocated memory, most live bytes first. Untagged
// allocations are not counted. Throws as live_blocks().
[[nodiscard]] inline std::vector<tag_usage> usage_by_tag(const resource& tracked) {
  struct visit_result {
    std::vector<tag_usage> tags;
    bool complete = true;
  } collected;
  const isthmus_tag_usage_function_t add = [](void* object, const char* tag,
                                              const isthmus_statistics_info_t* counts) {
    visit_result& result = *static_cast<visit_result*>(object);
    try {
      result.tags.push_back({tag, detail::to_statistics(*counts)});
    } catch (const std::bad_alloc&) {
      result.complete = false;
    }
  };
  detail::check(isthmus_allocation_tracker_usage(tracked.require(), add, &collected));
  if (!collected.complete) throw std::bad_alloc();
  return std::move(collected.tags);
}

// Excludes the blocks that are live now from later reports; their frees are still recognized. Sets
// the peaks of tags to the current values, and their totals to 0.
inline void reset_tracking(const resource& tracked) {
  detail::check(isthmus_allocation_tracker_reset(tracked.require()));
}

// During its lifetime, the thread that created it allocates under this tag. Scopes nest: those of a
// thread must end in reverse order.
class tag_scope {
 public:
  // Throws invalid_argument for an empty name.
  explicit tag_scope(const std::string& name) {
    const char* tag = nullptr;
    detail::check(isthmus_tag_find(name.c_str(), &tag));
    previous_ = isthmus_tag_swap(tag);
  }
  tag_scope(const tag_scope&) = delete;
  tag_scope& operator=(const tag_scope&) = delete;
  ~tag_scope() { isthmus_tag_swap(previous_); }

 private:
  const char* previous_ = nullptr;
};

}  // namespace v1
}  // namespace isthmus
