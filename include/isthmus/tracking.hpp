// Who holds memory: a resource that knows every live block, and tags, names to allocate under.
//
//   auto tracked = isthmus::resource::tracking(pool, {.frames = 16});
//   {
//     isthmus::tag_scope layer("layer1");
//     train(tracked);
//   }
//   std::puts(isthmus::leak_report(tracked).c_str());  // what is live, by where it was allocated
//
// Choose it to find leaks and who holds how much. Cost: some ten nanoseconds for an allocation with
// its free, a microsecond or more with stacks, and 64 to 256 bytes of the host's for a live block.
// Threads: any, but for tag_scope.
#pragma once

#include <isthmus/adaptors.hpp>

namespace isthmus {
inline namespace v1 {

// Knows what went through it and is live. Throws invalid_argument.
inline resource resource::tracking(const resource& upstream, const tracking_options& how) {
  return detail::make<resource>(isthmus_resource_tracking, upstream.get(), how.frames,
                                isthmus_stack_function_t{nullptr}, isthmus_owner_t{});
}

// A live block, as it was allocated.
struct tracked_block {
  void* pointer = nullptr;
  std::size_t nbytes = 0;        // as requested
  std::uintptr_t queue_key = 0;  // isthmus_queue_key of the queue
  std::uint64_t order = 0;       // grows with time; has no unit
  std::uint64_t thread = 0;      // as the system numbers it
  std::string tag;               // "" for none
  std::string stack;             // a line for each frame, the innermost first
};

// What is live and was allocated since the last reset, the oldest first. Throws invalid_argument
// for a resource that tracking() did not make, and so do those below.
[[nodiscard]] inline std::vector<tracked_block> live_blocks(const resource& tracked) {
  struct visit {
    std::vector<tracked_block> found;
    bool whole = true;
  } so_far;
  const isthmus_tracked_function_t add = [](void* object, const isthmus_tracked_t* each) {
    visit& into = *static_cast<visit*>(object);
    try {
      into.found.push_back({each->pointer, each->nbytes, each->queue_key, each->order, each->thread,
                            each->tag != nullptr ? each->tag : "", each->stack});
    } catch (const std::bad_alloc&) {
      into.whole = false;
    }
  };
  detail::check(isthmus_tracking_visit(tracked.get(), add, &so_far));
  if (!so_far.whole) throw std::bad_alloc();
  return std::move(so_far.found);
}

// A text about these, grouped by the stack and the tag that they were allocated in, most bytes
// first.
[[nodiscard]] inline std::string leak_report(const resource& tracked) {
  std::string text(4096, '\0');
  std::size_t length = 0;
  for (;;) {
    detail::check(isthmus_tracking_report(tracked.get(), text.data(), text.size(), &length));
    const bool whole = length < text.size();
    text.resize(whole ? length : length + length / 4 + 1);  // it may grow meanwhile
    if (whole) return text;
  }
}

// What was allocated under a tag.
struct tag_usage {
  std::string tag;
  statistics counts;
};
// Of each tag that memory was allocated under from `tracked`, most live bytes first; what was
// allocated under none is not counted. Throws as live_blocks.
[[nodiscard]] inline std::vector<tag_usage> usage_by_tag(const resource& tracked) {
  struct visit {
    std::vector<tag_usage> found;
    bool whole = true;
  } so_far;
  const isthmus_tag_usage_function_t add = [](void* object, const char* tag,
                                              const isthmus_statistics_t* counts) {
    visit& into = *static_cast<visit*>(object);
    try {
      into.found.push_back({tag, detail::to_statistics(*counts)});
    } catch (const std::bad_alloc&) {
      into.whole = false;
    }
  };
  detail::check(isthmus_tracking_usage(tracked.get(), add, &so_far));
  if (!so_far.whole) throw std::bad_alloc();
  return std::move(so_far.found);
}

// What is live now is told of no more; its free is known still. Of the usage of tags the peaks
// become what is live, the totals 0.
inline void reset_tracking(const resource& tracked) {
  detail::check(isthmus_tracking_reset(tracked.get()));
}

// The calling thread allocates under this name while it lives. Those of a thread end in the reverse
// order.
class tag_scope {
 public:
  // Throws invalid_argument for an empty name.
  explicit tag_scope(const std::string& name) {
    const char* tag = nullptr;
    detail::check(isthmus_tag_find(name.c_str(), &tag));
    before_ = isthmus_tag_swap(tag);
  }
  tag_scope(const tag_scope&) = delete;
  tag_scope& operator=(const tag_scope&) = delete;
  ~tag_scope() { isthmus_tag_swap(before_); }

 private:
  const char* before_ = nullptr;
};

static_assert(std::is_nothrow_destructible_v<tag_scope>);

}  // namespace v1
}  // namespace isthmus
