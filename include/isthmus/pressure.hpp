// SPDX-License-Identifier: Apache-2.0
// Out of memory: how a pool's memory is divided, the out-of-memory stages (`oom_stage`) that a pool
// tries before it throws out_of_memory, and out-of-memory callbacks (`oom_callback`) that free
// memory of the program.
//
//   isthmus::oom_callback drop_cache([&](const auto&) noexcept { return cache.drop(); });
//   try {
//     pool.allocate(nbytes, 0, queue);
//   } catch (const isthmus::out_of_memory&) {
//     auto seen = isthmus::error_snapshot();  // live, cached, free; the request, the stages tried
//   }
//
// Thread-safe, except for no_wait, which belongs to one thread.
#pragma once

#include <isthmus/resource.hpp>

#include <optional>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v1 {

// The out-of-memory stages of a pool, in the order in which it tries them. See isthmus_oom_stage_t.
enum class oom_stage : isthmus_oom_stage_t {
  collect = ISTHMUS_OOM_STAGE_COLLECT,
  collect_idle = ISTHMUS_OOM_STAGE_COLLECT_IDLE,
  grow = ISTHMUS_OOM_STAGE_GROW,
  trim = ISTHMUS_OOM_STAGE_TRIM,
  budget = ISTHMUS_OOM_STAGE_BUDGET,
  device_wait = ISTHMUS_OOM_STAGE_DEVICE_WAIT,
  callback = ISTHMUS_OOM_STAGE_CALLBACK,
  wait = ISTHMUS_OOM_STAGE_WAIT
};
// The name used in error messages; NULL for an unknown stage.
[[nodiscard]] inline const char* name_of(oom_stage stage) noexcept {
  return isthmus_oom_stage_name(static_cast<isthmus_oom_stage_t>(stage));
}

// Live blocks that allocation trackers (tracking.hpp) record, by tag.
struct tag_holder {
  std::string tag;          // "" if untagged
  std::uint64_t bytes = 0;  // as requested
  std::uint64_t count = 0;

  friend bool operator==(const tag_holder&, const tag_holder&) = default;
};

// How a pool's memory is divided, in bytes. See isthmus_snapshot_t.
struct snapshot {
  std::uint64_t held = 0;
  std::uint64_t live = 0;
  std::uint64_t cached = 0;
  std::uint64_t waiting = 0;
  std::uint64_t free = 0;
  std::uint64_t largest_free = 0;
  std::vector<tag_holder> holders;  // the largest holders, in descending order
  // Of an error: the failed request, and the device and kind of its pool. Empty in the snapshot of
  // a pool.
  std::string device = {};  // filter of the device
  isthmus::kind kind = kind::unknown;
  std::uint64_t requested = 0;
  std::vector<oom_stage> oom_stages = {};  // stages tried, in order
  std::string advice = {};                 // the remedy, as in the message

  // The share of the free memory that cannot serve a single request: 0 if it is all in one piece.
  [[nodiscard]] double fragmentation() const noexcept {
    return free <= largest_free ? 0
                                : 1 - static_cast<double>(largest_free) / static_cast<double>(free);
  }
};

namespace detail {

inline snapshot to_snapshot(const isthmus_snapshot_t& raw) {
  snapshot result{raw.held_bytes,
                  raw.live_bytes,
                  raw.cached_bytes,
                  raw.waiting_bytes,
                  raw.free_bytes,
                  raw.largest_free_bytes,
                  {},
                  raw.device != nullptr ? raw.device : "",
                  static_cast<kind>(raw.kind),
                  raw.requested_bytes,
                  {},
                  raw.advice != nullptr ? raw.advice : ""};
  for (std::size_t i = 0; i < raw.holder_count; ++i) {
    const isthmus_holder_t& holder = raw.holders[i];
    result.holders.push_back({holder.tag != nullptr ? holder.tag : "", holder.bytes, holder.count});
  }
  for (isthmus_oom_stage_t stage = 0; isthmus_oom_stage_name(stage) != nullptr; ++stage) {
    if ((raw.oom_stages >> stage & 1U) != 0)
      result.oom_stages.push_back(static_cast<oom_stage>(stage));
  }
  return result;
}

}  // namespace detail

// The current snapshot of a pool. Throws unsupported for a resource that is not a pool.
[[nodiscard]] inline snapshot snapshot_of(const resource& pool) {
  return detail::to_snapshot(
      detail::read<isthmus_snapshot_t>(isthmus_resource_snapshot, pool.require()));
}
// The snapshot of this thread's last error, if that was out_of_memory of a pool; otherwise nothing.
[[nodiscard]] inline std::optional<snapshot> error_snapshot() {
  isthmus_snapshot_t raw{};
  raw.struct_size = sizeof raw;
  const auto has_snapshot = isthmus_error_snapshot(&raw) == ISTHMUS_OK;
  return has_snapshot ? std::optional{detail::to_snapshot(raw)} : std::nullopt;
}

// How often a pool tried a stage, and how often the stage served the request.
struct oom_stage_counts {
  std::uint64_t tried = 0;
  std::uint64_t served = 0;
};
// Throws unsupported for a resource that is not a pool.
[[nodiscard]] inline oom_stage_counts counts_of(const resource& pool, oom_stage stage) {
  const auto raw = detail::read<isthmus_oom_stage_info_t>(isthmus_oom_stage_info, pool.require(),
                                                          static_cast<isthmus_oom_stage_t>(stage));
  return {raw.tried, raw.served};
}

// During its lifetime, requests of the thread that created it try no stage after oom_stage::grow.
// Use it on a thread that holds a lock which callbacks or work on queues may need. With
// `cached_only` a pool serves only what this thread's cache contains, without a lock or driver
// call, and throws out_of_memory otherwise. Scopes nest and must end in reverse order.
class no_wait {
 public:
  explicit no_wait(bool cached_only = false) noexcept
      : previous_(isthmus_no_wait_swap(cached_only ? 2 : 1)) {
    // An inner scope keeps the stricter limit of an outer one.
    if (previous_ > 1) (void)isthmus_no_wait_swap(previous_);
  }
  no_wait(const no_wait&) = delete;
  no_wait& operator=(const no_wait&) = delete;
  ~no_wait() { isthmus_no_wait_swap(previous_); }

 private:
  int previous_;
};

// The request that could not be served so far, as an out-of-memory callback receives it.
struct oom_request {
  isthmus::device device;
  isthmus::kind kind = kind::unknown;
  std::uint64_t nbytes = 0;  // needed
};

// An out-of-memory callback. While it lives, `function` is called before a request of any pool of
// the process waits for memory or throws out_of_memory, and before a direct request to a driver
// throws out_of_memory. It is called on the requesting thread, on several threads at once if
// several requests fail, never from inside an out-of-memory callback, and without a lock of the
// library. It may allocate and free, must be noexcept, and returns the approximate number of bytes
// that it released.
class oom_callback {
 public:
  template <class Function>
  explicit oom_callback(Function function) {
    static_assert(
        std::is_nothrow_invocable_r_v<std::uint64_t, Function&, const oom_request&>,
        "an out-of-memory callback must be noexcept: the library cannot propagate exceptions");
    detail::check(
        isthmus_oom_callback_add(call<Function>, detail::make_owner(std::move(function)), &raw_));
  }
  oom_callback(const oom_callback&) = delete;
  oom_callback& operator=(const oom_callback&) = delete;
  // Blocks until running calls of `function` have ended. Precondition: the caller holds no lock
  // that `function` takes, and is not inside an out-of-memory callback, this one or another.
  ~oom_callback() { isthmus_oom_callback_remove(raw_, 1); }

 private:
  template <class Function>
  static std::uint64_t call(void* object, const isthmus_oom_request_t* raw) {
    return static_cast<std::uint64_t>((*static_cast<Function*>(object))(
        oom_request{device::share(raw->device), static_cast<kind>(raw->kind), raw->nbytes}));
  }

  isthmus_oom_callback_t* raw_ = nullptr;
};

}  // namespace v1
}  // namespace isthmus
