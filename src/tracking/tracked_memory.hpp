// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host copy of an array: memory that a program writes through plain pointers, and whose written
// ranges are found afterwards.
//
// It has two addresses. `view` is for the program: writes through it are found. `library` is for
// the library, including device copies: what is written there does not count as written. How the
// two are connected depends on the mechanism:
//  - pages: both are mappings of the same memory; the kernel reports the written pages.
//  - bytes: `library` holds the bytes of the last synchronization, and the view is compared with
//    them.
//  - hashes: each chunk of the view has a hash as of its last synchronization; `library` holds
//    data in transit.
//
// The code that uses this class need not know the mechanism. It calls `snapshot` before it copies
// out of the memory, `publish` after it has written to `library`, and `expect_writers` before other
// threads may write through the view again.
//
// "Synchronized" below means: as of the last `snapshot` or `publish` of the bytes, which then do
// not count as written.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/range_set.hpp"
#include "core/status.hpp"

namespace isthmus::tracking {

enum class means : std::uint8_t { pages, bytes, hashes };
[[nodiscard]] const char* means_name(means which) noexcept;  // "pages", "bytes", "hashes"

enum class granularity : std::uint8_t { automatic, page };

// Whether other threads may write through the view during a call, apart from ranges of
// `begin_write`.
enum class writers : std::uint8_t { some, none };

struct request {
  std::size_t nbytes = 0;  // at least 1
  granularity grain = granularity::automatic;
  std::optional<means> by = std::nullopt;  // else the process's choice for that size
};

// The program may write the view at any time. Otherwise not thread-safe: one call on a memory at a
// time. Calls on different memories may be concurrent.
class tracked_memory {
 public:
  // Zeroed, with nothing written. OUT_OF_MEMORY; UNSUPPORTED, with the reason, for a mechanism that
  // was requested and is not available.
  [[nodiscard]] static result<std::unique_ptr<tracked_memory>> create(const request& wanted);
  virtual ~tracked_memory() = default;
  tracked_memory(const tracked_memory&) = delete;
  tracked_memory& operator=(const tracked_memory&) = delete;

  [[nodiscard]] std::byte* view() const noexcept { return view_; }
  [[nodiscard]] std::byte* library() const noexcept { return library_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] means by() const noexcept { return by_; }
  // Largest number of bytes reported for a write of one byte.
  [[nodiscard]] virtual std::size_t granule() const noexcept = 0;
  // Whether `library` always shows the contents of the view, and the reverse.
  [[nodiscard]] bool is_one_memory() const noexcept { return by_ == means::pages; }

  // Adds what was written through the view since it was last taken or synchronized: exactly the
  // granules that were written, clipped to the memory. On failure the complete memory counts as
  // written.
  virtual void take(range_set& written) = 0;
  struct taking {
    tracked_memory* from;
    range_set* written;
  };
  // `take` of many memories, with one scan of the kernel. Pre: the caller may call `take` on each.
  static void take_all(std::span<const taking> each);

  // Returns an address, `library` or, if there are no writers and the mechanism allows it, `view`,
  // at which the ranges hold what the view holds, or held at some moment during this call. Later
  // writes are found by a later `take`. Pre: with no writers, earlier writes were taken.
  [[nodiscard]] virtual result<const std::byte*> snapshot(const range_set& ranges, writers who) = 0;
  // Whether the result of `snapshot` stays valid until the next write; else only until the next
  // call.
  [[nodiscard]] virtual bool snapshot_stays(writers who) const noexcept = 0;
  // `take` and `snapshot` of the result, one sub-range after another from the beginning of the
  // memory, in whole granules. Calls each(part, found, from) on the calling thread while other
  // threads scan the next sub-ranges. If `each` fails it is not called again, its failure is
  // returned, and everything that was not passed to it counts as written.
  using part_visitor =
      std::function<result<void>(const byte_range& part, range_set&& found, const std::byte* from)>;
  [[nodiscard]] virtual result<void> take_in_parts(writers who, const part_visitor& each);
  // Smallest sub-range in bytes, for mechanisms whose scan reads all of the memory. 0: a scan costs
  // little, and the memory is one sub-range.
  [[nodiscard]] virtual std::size_t least_part() const noexcept { return 0; }
  // Makes what was written to `library` in these ranges visible in the view. It counts as
  // synchronized.
  [[nodiscard]] virtual result<void> publish(const range_set& ranges, writers who) = 0;
  // Other threads may write through the view from here on, or already could. Does the work that was
  // deferred while none could.
  virtual void expect_writers() {}

  // Begins a write of exactly that range and returns the address to write to. `end_write` makes it
  // visible in the view and synchronized. `keeps`: the address first gets the view's contents.
  [[nodiscard]] virtual result<std::byte*> begin_write(const byte_range& range, bool keeps,
                                                       writers who);
  // `written` is the same range as a set, so that this needs no memory; `begun` is the result of
  // `begin_write`.
  [[nodiscard]] virtual result<void> end_write(const byte_range& range, const range_set& written,
                                               const std::byte* begun, writers who);
  // Tracks the granules that `range` covers in part by the smallest granules available, from here
  // on. Earlier writes are found by the next `take`. Throws std::bad_alloc; a later call may then
  // finish the rest.
  virtual void refine(const byte_range& range) = 0;
  // Keeps small granules only where `still` touches. If memory is short the rest stays small until
  // a later call.
  virtual void coarsen(const range_set& still) = 0;

 protected:
  tracked_memory(means by, std::size_t nbytes) noexcept : by_{by}, nbytes_{nbytes} {}

  const means by_;
  const std::size_t nbytes_;
  std::byte* view_ = nullptr;
  std::byte* library_ = nullptr;
};

// How writes to large memory are found in this process, for `isthmus info`.
struct in_force {
  means large = means::pages;
  std::size_t granule = 0;  // bytes
  std::string reason;       // why not by pages; empty if by pages
};
[[nodiscard]] in_force what_is_in_force();

// Sets the mechanism of the process for memory created from here on; nothing: the automatic choice.
// The environment variable ISTHMUS_TRACKING sets the initial value: "pages", "bytes" or "hashes".
// UNSUPPORTED, with the reason.
[[nodiscard]] result<void> force(std::optional<means> by);

}  // namespace isthmus::tracking
