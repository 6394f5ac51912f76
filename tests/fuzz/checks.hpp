// SPDX-License-Identifier: Apache-2.0
#pragma once
// Invariants of what memory resources report.

#include <algorithm>
#include <chrono>
#include <thread>

#include "input.hpp"

namespace fuzz {

// What the fuzzer knows of a resource.
struct traits {
  bool over_monotonic = false;  // includes the resource itself; misuse is not reported then
  bool debug = false;           // the resource itself, like the fields below
  bool tracks = false;
  std::size_t largest = SIZE_MAX;  // of blocks of a fixed size
  std::uint64_t first_reported =
      0;  // the number of the first block that an allocation tracker records
};

struct block {
  isthmus_resource_t* resource;
  void* memory;
  std::size_t nbytes;
  const char* tag;
  std::uint64_t number;  // grows with the time of the allocation
};

// The blocks that were visited, in order.
struct visited {
  std::vector<isthmus_tracked_allocation_t> all;

  static void see(void* object, const isthmus_tracked_allocation_t* each) {
    auto& seen = static_cast<visited*>(object)->all;
    require(each->pointer != nullptr && each->nbytes != 0 && each->stack != nullptr);
    require(seen.empty() || seen.back().order < each->order);
    seen.push_back(*each);
  }
};

// `since`: the number of the first block that the resource still reports.
inline void expect_reported(const visited& by, const isthmus_resource_t* of,
                            const std::vector<block>& blocks, std::uint64_t since) {
  for (const block& each : blocks) {
    if (each.resource != of) continue;
    const auto found = std::find_if(
        by.all.begin(), by.all.end(),
        [&](const isthmus_tracked_allocation_t& seen) { return seen.pointer == each.memory; });
    require((found != by.all.end()) == (each.number >= since));
    if (found != by.all.end()) require(found->nbytes == each.nbytes && found->tag == each.tag);
  }
}

inline void expect_report(isthmus_resource_t* of, std::size_t capacity) {
  std::vector<char> text(capacity, 'x');
  std::size_t length = 0;
  require(isthmus_allocation_tracker_report(of, text.data(), capacity, &length) == ISTHMUS_OK);
  if (capacity != 0) require(text[std::min(length, capacity - 1)] == '\0');
}

inline void expect_sound(const isthmus_statistics_info_t& of) {
  require(of.current_bytes <= of.peak_bytes && of.current_count <= of.peak_count);
  require((of.current_bytes == 0) == (of.current_count == 0));
}

// Tags are reported in the order of their live bytes, largest first, and each has a name.
inline void expect_usage(isthmus_resource_t* of) {
  std::uint64_t before = UINT64_MAX;
  const isthmus_tag_usage_function_t see = [](void* last, const char* tag,
                                              const isthmus_statistics_info_t* usage) {
    auto& most = *static_cast<std::uint64_t*>(last);
    require(tag != nullptr && *tag != '\0' && usage->current_bytes <= most);
    expect_sound(*usage);
    most = usage->current_bytes;
  };
  require(isthmus_allocation_tracker_usage(of, see, &before) == ISTHMUS_OK);
}

// isthmus_pointer_origin returns references to the same objects.
inline void expect_origin(const isthmus_pointer_info_t& known, const void* pointer) {
  isthmus_context_t* context = nullptr;
  isthmus_resource_t* resource = nullptr;
  require(isthmus_pointer_origin(pointer, &context, &resource) == ISTHMUS_OK);
  require(context == known.context && resource == known.resource);
  isthmus_context_release(context);
  isthmus_resource_release(resource);
}

// Polls, for what threads of the library do.
template <class Condition>
void expect_soon(Condition holds) {
  for (int patience_ms = 10'000; !holds(); --patience_ms) {
    require(patience_ms != 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Memory of buffers is freed soon after the work on it has completed.
inline void expect_nothing_counted(isthmus_resource_t* counts) {
  expect_soon([counts] {
    isthmus_statistics_info_t now{};
    now.struct_size = sizeof now;
    isthmus_limit_info_t limit{};
    limit.struct_size = sizeof limit;
    (void)isthmus_statistics_info(counts, &now);
    (void)isthmus_limit_info(counts, &limit);
    return now.current_bytes == 0 && now.current_count == 0 && limit.in_use_bytes == 0;
  });
}

// Changes a byte on either side of the block, which the resource must detect, and restores it.
inline void expect_corruption_detected(const block& one) {
  auto* const begin = static_cast<unsigned char*>(one.memory);
  for (unsigned char* beside : {begin - 1, begin + one.nbytes}) {
    *beside ^= 1U;
    require(isthmus_resource_verify(one.resource) == ISTHMUS_ERROR_INVALID_ARGUMENT);
    *beside ^= 1U;
  }
  require(isthmus_resource_verify(one.resource) == ISTHMUS_OK);
}

}  // namespace fuzz
