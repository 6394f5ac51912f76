// SPDX-License-Identifier: Apache-2.0
// Adaptors, which are memory resources over other resources, and custom resources. Each is a
// value, like any `resource`.
//
//   auto pool = isthmus::resource::pool(queue.context(), isthmus::kind::device);
//   auto counted = isthmus::resource::statistics(isthmus::resource::limit(pool, 1 << 30));
//   isthmus::buffer buffer(1000, isthmus::kind::device, {.queue = queue, .resource = counted});
//   assert(isthmus::statistics_of(counted).current_bytes == 1000);
//
// Which one to use:
// - statistics() counts what a part of a program uses, and limit() bounds it.
// - fallback() uses a second resource when the first has no memory left, and failure_callback()
//   calls a function that may free memory.
// - aligned() increases the alignment of large requests, and binning() selects an upstream by the
//   size of the request.
// - monotonic() is for blocks that are freed together, fixed_size() for blocks of one size, and
//   arena() for threads that must not share freed blocks.
// - prefetch() is for shared memory that the device uses before the host.
// - log() records the allocations of a program for replay, and debug() finds writes outside of
//   blocks.
// - custom() wraps an allocator of the caller.
//
// An adaptor keeps its upstream alive and has the same kind, context and device. Each block must be
// freed through the resource that allocated it.
//
// Cost: one more call per adaptor, and the costs in docs/resources.md. log() takes a lock.
// Thread-safe, except for statistics_scope, which belongs to one thread.
#pragma once

#include <isthmus/resource.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

namespace isthmus {
inline namespace v1 {

namespace detail {

// A copy of `text` that is valid until this thread's next call. Truncates long texts between
// characters. Does not allocate, because the exception may have been std::bad_alloc.
inline const char* copy_to_thread_buffer(const char* text) noexcept {
  thread_local constinit std::array<char, 1024> storage{};
  const std::string_view whole{text};
  auto length = std::min(whole.size(), storage.size() - 1);
  while (length < whole.size() && (whole[length] & 0xC0) == 0x80) {
    --length;  // does not split a UTF-8 character
  }
  storage[whole.copy(storage.data(), length)] = 0;
  return storage.data();
}

// Runs a function of the caller and converts its exception to a status and a text.
template <class Body>
isthmus_status_t run_guarded(const char** message, Body&& body) noexcept {
  try {
    body();
    return ISTHMUS_OK;
  } catch (const error& problem) {
    *message = copy_to_thread_buffer(problem.what());
    return static_cast<isthmus_status_t>(problem.status());
  } catch (const std::bad_alloc& problem) {
    *message = copy_to_thread_buffer(problem.what());
    return ISTHMUS_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& problem) {
    *message = copy_to_thread_buffer(problem.what());
  } catch (...) {
    *message = "an exception that is not a std::exception";
  }
  return ISTHMUS_ERROR_CALLBACK;
}

// The operations of a custom resource, as the C ABI calls them.
template <memory_source Source>
struct source_operations {
  static Source& source_of(void* object) noexcept { return *static_cast<Source*>(object); }

  static isthmus_status_t allocate(void* object, std::size_t nbytes, std::size_t alignment,
                                   isthmus_queue_t* queue, void** pointer,
                                   const char** message) noexcept {
    return run_guarded(message, [&] {
      *pointer = source_of(object).allocate(nbytes, alignment, isthmus::queue::share(queue));
    });
  }
  static void deallocate(void* object, void* pointer, std::size_t nbytes,
                         isthmus_queue_t* queue) noexcept {
    source_of(object).deallocate(pointer, nbytes, isthmus::queue::share(queue));
  }
  static void usage(void* object, std::uint64_t* held, std::uint64_t* free) noexcept {
    const memory_usage current_usage = source_of(object).usage();
    *held = current_usage.held;
    *free = current_usage.free;
  }
  static std::uint64_t trim(void* object, std::uint64_t keep_bytes) noexcept {
    return source_of(object).trim(keep_bytes);
  }

  [[nodiscard]] static isthmus_resource_operations_t table() noexcept {
    isthmus_resource_operations_t operations{};
    operations.struct_size = sizeof operations;
    operations.allocate = &allocate;
    operations.deallocate = &deallocate;
    if constexpr (requires(Source& source) { source.usage(); }) {
      static_assert(noexcept(std::declval<Source&>().usage()), "usage() of a source is noexcept");
      operations.usage = &usage;
    }
    if constexpr (requires(Source& source) { source.trim(std::uint64_t{0}); }) {
      static_assert(noexcept(std::declval<Source&>().trim(std::uint64_t{0})),
                    "trim(keep_bytes) of a source is noexcept");
      operations.trim = &trim;
    }
    return operations;
  }
};

}  // namespace detail

// A resource that calls `source`, which is destroyed once neither the resource nor its memory is
// referenced. Memory that `source` returns is checked: the request throws callback_failed for NULL,
// for a misaligned pointer and, as far as the driver reports the kind, for memory of another kind.
template <class Source>
  requires memory_source<std::decay_t<Source>>
resource resource::custom(const memory_scope& scope, isthmus::kind kind, Source&& source,
                          const isthmus::device& device) {
  const isthmus_resource_operations_t table =
      detail::source_operations<std::decay_t<Source>>::table();
  return detail::make<resource>(isthmus_resource_custom, scope.context(), scope.device(device),
                                static_cast<isthmus_kind_t>(kind), &table,
                                detail::make_owner(std::forward<Source>(source)));
}

// Counts allocations. Counts are exact, also with several threads, provided that blocks are freed
// through this resource. An allocation takes longer inside a statistics_scope than outside.
inline resource resource::statistics(const resource& upstream) {
  return detail::make<resource>(isthmus_resource_statistics, upstream.require());
}

// Requested bytes and numbers of blocks: currently live, the maximum since creation or reset, and
// the total allocated since then.
struct statistics {
  std::uint64_t current_bytes = 0;
  std::uint64_t current_count = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_count = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t total_count = 0;

  friend bool operator==(const statistics&, const statistics&) noexcept = default;
};

namespace detail {
[[nodiscard]] inline statistics to_statistics(const isthmus_statistics_info_t& raw) noexcept {
  return {raw.current_bytes, raw.current_count, raw.peak_bytes,
          raw.peak_count,    raw.total_bytes,   raw.total_count};
}
}  // namespace detail

// The counts of a statistics() resource. Throws invalid_argument for any other resource.
[[nodiscard]] inline statistics statistics_of(const resource& counted) {
  return detail::to_statistics(
      detail::read<isthmus_statistics_info_t>(isthmus_statistics_info, counted.require()));
}
// Sets the peaks to the current values, and the totals to 0. Throws as statistics_of().
inline void reset_statistics(const resource& counted) {
  detail::check(isthmus_statistics_reset(counted.require()));
}

// While it lives, counts the allocations of the calling thread from a statistics() resource, and
// the frees of that memory, whenever they happen. Scopes nest: the outer scopes of the thread count
// the same allocations. The scopes of a thread must end in reverse order.
class statistics_scope {
 public:
  // Throws invalid_argument for a resource that statistics() did not create.
  explicit statistics_scope(const resource& counted) : outer_(isthmus_scope_swap(nullptr)) {
    const isthmus_status_t status = isthmus_scope_create(counted.require(), outer_, &raw_);
    isthmus_scope_swap(status == ISTHMUS_OK ? raw_ : outer_);
    detail::check(status);
  }
  statistics_scope(const statistics_scope&) = delete;
  statistics_scope& operator=(const statistics_scope&) = delete;
  ~statistics_scope() {
    isthmus_scope_swap(outer_);
    isthmus_scope_release(raw_);
  }

  // The counts so far. Any thread may call it.
  [[nodiscard]] statistics read() const {
    return detail::to_statistics(detail::read<isthmus_statistics_info_t>(isthmus_scope_info, raw_));
  }

 private:
  isthmus_scope_t* outer_;
  isthmus_scope_t* raw_ = nullptr;
};

// Limits the live bytes, as requested, to `limit_bytes`. A request that would exceed the limit
// throws out_of_memory.
inline resource resource::limit(const resource& upstream, std::uint64_t limit_bytes) {
  return detail::make<resource>(isthmus_resource_limit, upstream.require(), limit_bytes);
}
// The limit of a limit() resource, and the bytes in use.
struct limit_state {
  std::uint64_t limit_bytes = 0;
  std::uint64_t in_use_bytes = 0;
};
// Throws invalid_argument for a resource that limit() did not create.
[[nodiscard]] inline limit_state limit_of(const resource& limited) {
  const auto raw = detail::read<isthmus_limit_info_t>(isthmus_limit_info, limited.require());
  return {raw.limit_bytes, raw.in_use_bytes};
}

// Uses `second`, of the same context and of any kind, when `first` has no memory. A buffer reports
// the kind that it received. Throws wrong_context.
inline resource resource::fallback(const resource& first, const resource& second) {
  return detail::make<resource>(isthmus_resource_fallback, first.require(), second.require());
}

// Aligns requests of at least `min_bytes` to `alignment`, a power of two, or to the alignment of
// the request if that is larger. Throws invalid_argument.
inline resource resource::aligned(const resource& upstream, std::size_t alignment,
                                  std::size_t min_bytes) {
  return detail::make<resource>(isthmus_resource_aligned, upstream.require(), alignment, min_bytes);
}

// The first bin that a request fits in, in ascending order of size, serves it; `upstream` serves
// larger ones. All resources have one context; kinds may differ. Throws wrong_context,
// invalid_argument.
inline resource resource::binning(const resource& upstream, const std::vector<bin>& bins) {
  std::vector<isthmus_bin_t> raw;
  for (const bin& entry : bins) raw.push_back({entry.max_bytes, entry.upstream.require()});
  return detail::make<resource>(isthmus_resource_binning, upstream.require(), raw.data(),
                                raw.size());
}

// Detects writes outside of blocks and to freed blocks, for programs under test: blocks lie between
// red zones, and `kept_bytes` of freed blocks are poisoned and retained for a while. Allocations
// wait for the work on their queue. Detected damage is written to standard error and thrown by
// resource::verify(). Throws unsupported for an upstream that may provide device memory.
inline resource resource::debug(const resource& upstream, std::uint64_t kept_bytes) {
  return detail::make<resource>(isthmus_resource_debug, upstream.require(), kept_bytes);
}

// Cuts consecutive blocks from chunks and returns all chunks together, in release_monotonic() or
// when the last reference is released. The first chunk has `first_bytes` (0: 64 KiB), and each
// further chunk is twice as large as the previous one, or as large as the request if that is
// larger. Throws unsupported for an upstream that provides memory of several kinds.
inline resource resource::monotonic(const resource& upstream, std::size_t first_bytes) {
  return detail::make<resource>(isthmus_resource_monotonic, upstream.require(), first_bytes);
}
// Returns all chunks, after the work on every queue on which blocks were allocated or deallocated.
// The blocks must not be used afterwards. Throws invalid_argument for a resource that monotonic()
// did not create.
inline void release_monotonic(const isthmus::resource& resource) {
  detail::check(isthmus_monotonic_release(resource.require()));
}

// Blocks of `block_bytes` each, cut from slabs of `blocks` blocks (0: as many as fill a MiB, at
// least 8). Throws invalid_argument for larger requests and for a `block_bytes` of 0; unsupported
// for an upstream that provides memory of several kinds.
inline resource resource::fixed_size(const resource& upstream, std::size_t block_bytes,
                                     std::size_t blocks) {
  return detail::make<resource>(isthmus_resource_fixed_size, upstream.require(), block_bytes,
                                blocks);
}

// Blocks of any size, cut from superblocks that are divided among pairs of a thread and a queue.
// The superblocks hold at most `limit_bytes` (0: no limit). Throws unsupported for an upstream that
// provides memory of several kinds.
inline resource resource::arena(const resource& upstream, std::uint64_t limit_bytes) {
  return detail::make<resource>(isthmus_resource_arena, upstream.require(), limit_bytes);
}

// On allocation, prefetches shared memory to the device, on the request's queue. This is a hint: it
// has no effect for other kinds and on devices that cannot prefetch.
inline resource resource::prefetch(const resource& upstream) {
  return detail::make<resource>(isthmus_resource_prefetch, upstream.require());
}

// Writes a row for each allocation, failure and free to a file, in the columns of RMM's logs. The
// last rows are written when the last reference is released, or when the process exits. Throws
// invalid_argument for a file that cannot be created, or to which another log writes.
inline resource resource::log(const resource& upstream, const std::string& path) {
  return detail::make<resource>(isthmus_resource_log, upstream.require(), path.c_str());
}
// Writes all rows recorded so far. Throws invalid_argument for a resource that log() did not
// create; driver_error, once, if rows were lost since the last flush because the file could not be
// written.
inline void flush_log(const resource& logged) {
  detail::check(isthmus_log_flush(logged.require()));
}

// Calls `function(nbytes)` on the requesting thread when upstream has no memory for a request. The
// function returns whether to try again, and may free and allocate. If it throws, the request fails
// with that error.
template <class Function>
  requires std::is_invocable_r_v<bool, std::decay_t<Function>&, std::size_t>
resource resource::failure_callback(const resource& upstream, Function&& function) {
  using stored = std::decay_t<Function>;
  const isthmus_failure_function_t call = [](void* object, std::size_t nbytes, int* retry,
                                             const char** message) {
    return detail::run_guarded(message,
                               [&] { *retry = (*static_cast<stored*>(object))(nbytes) ? 1 : 0; });
  };
  isthmus_resource_t* const raw = upstream.require();  // before the function is copied
  return detail::make<resource>(isthmus_resource_failure_callback, raw, call,
                                detail::make_owner(std::forward<Function>(function)));
}

}  // namespace v1
}  // namespace isthmus
