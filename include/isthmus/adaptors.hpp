// Memory resources over others, and of your own; all are values like any `resource`.
//
//   auto pool = isthmus::resource::pool(queue.context(), isthmus::kind::device);
//   auto counted = isthmus::resource::statistics(isthmus::resource::limit(pool, 1 << 30));
//   isthmus::buffer buffer(1000, isthmus::kind::device, {.on = queue, .from = counted});
//   assert(isthmus::statistics_of(counted).current_bytes == 1000);
//
// Choose statistics() to learn what a part of a program uses, limit() to bound it, fallback() where
// slower memory is better than none, failure_callback() to make room, custom() for an allocator
// that the library does not have, aligned() and binning() to choose by size, monotonic() for what
// ends together, fixed_size() where all blocks have one size, arena() where threads must not share
// what they free, prefetch() for shared memory that the device uses first, log() to replay what a
// program did, debug() to find who writes where he may not. Cost: over a pool a call each, and what
// docs/resources.md tells; a lock by log(). Threads: any, but for statistics_scope.
#pragma once

#include <isthmus/resource.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace isthmus {
inline namespace v1 {

namespace detail {

// A text that lives till this thread's next one, without its end where it is long: what was thrown
// may be that there is no memory.
inline const char* keep_text(const char* text) noexcept {
  thread_local constinit std::array<char, 1024> kept{};
  const std::string_view whole{text};
  auto length = std::min(whole.size(), kept.size() - 1);
  while (length < whole.size() && (whole[length] & 0xC0) == 0x80) {
    --length;  // not within a character
  }
  kept[whole.copy(kept.data(), length)] = 0;
  return kept.data();
}

// Runs a function of the caller's: its exception as a status and a text.
template <class Body>
isthmus_status_t run_guarded(const char** message, Body&& body) noexcept {
  try {
    body();
    return ISTHMUS_OK;
  } catch (const error& problem) {
    *message = keep_text(problem.what());
    return static_cast<isthmus_status_t>(problem.status());
  } catch (const std::bad_alloc& problem) {
    *message = keep_text(problem.what());
    return ISTHMUS_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& problem) {
    *message = keep_text(problem.what());
  } catch (...) {
    *message = "an exception that is no std::exception";
  }
  return ISTHMUS_ERROR_CALLBACK;
}

template <memory_source Source>
struct source_operations {
  static Source& in(void* object) noexcept { return *static_cast<Source*>(object); }

  static isthmus_status_t allocate(void* object, std::size_t nbytes, std::size_t alignment,
                                   isthmus_queue_t* on, void** pointer,
                                   const char** message) noexcept {
    return run_guarded(
        message, [&] { *pointer = in(object).allocate(nbytes, alignment, queue::share(on)); });
  }
  static void deallocate(void* object, void* pointer, std::size_t nbytes,
                         isthmus_queue_t* on) noexcept {
    in(object).deallocate(pointer, nbytes, queue::share(on));
  }
  static void usage(void* object, std::uint64_t* held, std::uint64_t* free) noexcept {
    const memory_usage now = in(object).usage();
    *held = now.held;
    *free = now.free;
  }
  static std::uint64_t trim(void* object, std::uint64_t keep) noexcept {
    return in(object).trim(keep);
  }

  [[nodiscard]] static isthmus_resource_operations_t table() noexcept {
    isthmus_resource_operations_t made{};
    made.struct_size = sizeof made;
    made.allocate = &allocate;
    made.deallocate = &deallocate;
    if constexpr (requires(Source& of) { of.usage(); }) {
      static_assert(noexcept(std::declval<Source&>().usage()), "usage() of a source is noexcept");
      made.usage = &usage;
    }
    if constexpr (requires(Source& of) { of.trim(std::uint64_t{0}); }) {
      static_assert(noexcept(std::declval<Source&>().trim(std::uint64_t{0})),
                    "trim(keep_bytes) of a source is noexcept");
      made.trim = &trim;
    }
    return made;
  }
};

}  // namespace detail

// A resource that is `source`, which dies with the last reference to the resource and its memory.
// What it gives is checked: callback_failed for NULL, for other alignment, for memory that is not
// of this kind as far as the driver can tell.
template <class Source>
  requires memory_source<std::decay_t<Source>>
resource resource::custom(const context& context, kind of, Source&& source, const device& where) {
  const isthmus_resource_operations_t table =
      detail::source_operations<std::decay_t<Source>>::table();
  return detail::make<resource>(isthmus_resource_custom, context.get(), where.get(),
                                static_cast<isthmus_kind_t>(of), &table,
                                detail::make_owner(std::forward<Source>(source)));
}

// Counts what goes through it. With threads too the counts are exact, each by itself, as long as
// memory goes back where it came from; a scope goes slower than a thread in none.
inline resource resource::statistics(const resource& upstream) {
  return detail::make<resource>(isthmus_resource_statistics, upstream.get());
}

// Live now, the most at a time since the beginning or the reset, and all allocated since then; as
// requested.
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
[[nodiscard]] inline statistics to_statistics(const isthmus_statistics_t& raw) noexcept {
  return {raw.current_bytes, raw.current_count, raw.peak_bytes,
          raw.peak_count,    raw.total_bytes,   raw.total_count};
}
template <class Noun>
[[nodiscard]] statistics read_statistics(isthmus_status_t (*query)(Noun*, isthmus_statistics_t*),
                                         Noun* of) {
  isthmus_statistics_t raw{};
  raw.struct_size = sizeof raw;
  check(query(of, &raw));
  return to_statistics(raw);
}
}  // namespace detail

// Throws invalid_argument for a resource that statistics() did not make.
[[nodiscard]] inline statistics statistics_of(const resource& counted) {
  return detail::read_statistics(&isthmus_statistics_query, counted.get());
}
// The peaks become what is live now, the totals 0.
inline void reset_statistics(const resource& counted) {
  detail::check(isthmus_statistics_reset(counted.get()));
}

// Counts what this thread allocates from a counted resource while it lives, and that memory's end,
// whenever it comes; outer scopes of the thread count it too. Scopes of a thread end in the reverse
// order.
class statistics_scope {
 public:
  // Throws invalid_argument for a resource that statistics() did not make.
  explicit statistics_scope(const resource& counted) : outer_(isthmus_scope_swap(nullptr)) {
    const isthmus_status_t made = isthmus_scope_create(counted.get(), outer_, &raw_);
    isthmus_scope_swap(made == ISTHMUS_OK ? raw_ : outer_);
    detail::check(made);
  }
  statistics_scope(const statistics_scope&) = delete;
  statistics_scope& operator=(const statistics_scope&) = delete;
  ~statistics_scope() {
    isthmus_scope_swap(outer_);
    isthmus_scope_release(raw_);
  }

  [[nodiscard]] statistics read() const {
    return detail::read_statistics(&isthmus_scope_query, raw_);
  }

 private:
  isthmus_scope_t* outer_;
  isthmus_scope_t* raw_ = nullptr;
};

// Throws out_of_memory for what would make more than `limit_bytes` live at a time.
inline resource resource::limit(const resource& upstream, std::uint64_t limit_bytes) {
  return detail::make<resource>(isthmus_resource_limit, upstream.get(), limit_bytes);
}
struct limit_state {
  std::uint64_t limit_bytes = 0;
  std::uint64_t in_use_bytes = 0;
};
// Throws invalid_argument for a resource that limit() did not make.
[[nodiscard]] inline limit_state limit_of(const resource& limited) {
  limit_state now;
  detail::check(isthmus_limit_query(limited.get(), &now.limit_bytes, &now.in_use_bytes));
  return now;
}

// Asks `second`, of the same context and of any kind, where `first` has no memory. Throws
// wrong_context.
inline resource resource::fallback(const resource& first, const resource& second) {
  return detail::make<resource>(isthmus_resource_fallback, first.get(), second.get());
}

// Aligns requests of at least `from_bytes` to `alignment` or more. Throws invalid_argument.
inline resource resource::aligned(const resource& upstream, std::size_t alignment,
                                  std::size_t from_bytes) {
  return detail::make<resource>(isthmus_resource_aligned, upstream.get(), alignment, from_bytes);
}

// Each request goes to the first bin, of growing sizes, that it fits in, larger ones to `upstream`;
// all of one context, of any kinds. Throws wrong_context, invalid_argument.
inline resource resource::binning(const resource& upstream, const std::vector<bin>& bins) {
  std::vector<isthmus_bin_t> raw;
  for (const bin& each : bins) raw.push_back({each.most_bytes, each.from.get()});
  return detail::make<resource>(isthmus_resource_binning, upstream.get(), raw.data(), raw.size());
}

// Finds writes beside blocks and to freed ones: red zones around blocks, `kept_bytes` of freed ones
// poisoned and kept for a while. Waits for queues; for programs under test. What is found is told
// on the standard error stream and thrown by verify(). Throws unsupported for device memory.
inline resource resource::debug(const resource& upstream, std::uint64_t kept_bytes) {
  return detail::make<resource>(isthmus_resource_debug, upstream.get(), kept_bytes);
}

// Cuts blocks off chunks, one behind the other, and gives the chunks back together: by
// release_monotonic(), or with the last reference. The first has `first_bytes` (0: 64 KiB), each
// further one twice those of the one before. Throws unsupported for an upstream of several kinds.
inline resource resource::monotonic(const resource& upstream, std::size_t first_bytes) {
  return detail::make<resource>(isthmus_resource_monotonic, upstream.get(), first_bytes);
}
// Behind the work on every queue that blocks were allocated or deallocated on; they must not be
// used any more. Throws invalid_argument for a resource that monotonic() did not make.
inline void release_monotonic(const resource& of) {
  detail::check(isthmus_monotonic_release(of.get()));
}

// Blocks of one size, cut from slabs of `blocks` each (0: a MiB of them). Throws invalid_argument
// for larger requests, as for 0 bytes; unsupported for an upstream of several kinds.
inline resource resource::fixed_size(const resource& upstream, std::size_t block_bytes,
                                     std::size_t blocks) {
  return detail::make<resource>(isthmus_resource_fixed_size, upstream.get(), block_bytes, blocks);
}

// Blocks of any size, cut from superblocks that each thread has of its own for each queue. These
// hold at most `limit_bytes` (0: no limit). Throws unsupported for an upstream of several kinds.
inline resource resource::arena(const resource& upstream, std::uint64_t limit_bytes) {
  return detail::make<resource>(isthmus_resource_arena, upstream.get(), limit_bytes);
}

// Asks the driver to move shared memory to the device as it is allocated, on the request's queue:
// a hint, nothing for other kinds and devices that cannot.
inline resource resource::prefetch(const resource& upstream) {
  return detail::make<resource>(isthmus_resource_prefetch, upstream.get());
}

// Writes a row of each allocation, failure and free to a file, in the columns of RMM's logs; the
// last rows with the last reference, or as the process exits. Throws invalid_argument for a file
// that cannot be made, or that another log is being written to.
inline resource resource::log(const resource& upstream, const std::string& path) {
  return detail::make<resource>(isthmus_resource_log, upstream.get(), path.c_str());
}
// Throws invalid_argument for a resource that log() did not make, driver_error where rows were lost
// since the last time, because the file took no more.
inline void flush_log(const resource& logged) { detail::check(isthmus_log_flush(logged.get())); }

// Calls `function(nbytes)` where upstream has not the memory; it returns whether to try again, and
// may free and allocate. What it throws ends the request.
template <class Function>
  requires std::is_invocable_r_v<bool, std::decay_t<Function>&, std::size_t>
resource resource::failure_callback(const resource& upstream, Function&& function) {
  using stored = std::decay_t<Function>;
  const isthmus_failure_function_t call = [](void* object, std::size_t nbytes, int* retry,
                                             const char** message) {
    return detail::run_guarded(message,
                               [&] { *retry = (*static_cast<stored*>(object))(nbytes) ? 1 : 0; });
  };
  return detail::make<resource>(isthmus_resource_failure_callback, upstream.get(), call,
                                detail::make_owner(std::forward<Function>(function)));
}

static_assert(std::is_nothrow_destructible_v<statistics_scope>);

}  // namespace v1
}  // namespace isthmus
