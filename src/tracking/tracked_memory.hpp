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

enum class Means : std::uint8_t { pages, bytes, hashes };
[[nodiscard]] const char* means_name(Means means) noexcept;  // "pages", "bytes", "hashes"

enum class Granularity : std::uint8_t { automatic, page };

// Whether other threads may write through the view during a call, apart from ranges of
// `begin_write`.
enum class Writers : std::uint8_t { some, none };

struct Request {
  std::size_t nbytes = 0;  // at least 1
  Granularity granularity = Granularity::automatic;
  std::optional<Means> means = std::nullopt;  // else the process's choice for that size
};

// The program may write the view at any time. Otherwise not thread-safe: one call on a memory at a
// time. Calls on different memories may be concurrent.
class TrackedMemory {
 public:
  // Zeroed, with nothing written. OUT_OF_MEMORY; UNSUPPORTED, with the reason, for a mechanism that
  // was requested and is not available.
  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  virtual ~TrackedMemory() = default;
  TrackedMemory(const TrackedMemory&) = delete;
  TrackedMemory& operator=(const TrackedMemory&) = delete;

  [[nodiscard]] std::byte* view() const noexcept { return view_; }
  [[nodiscard]] std::byte* library() const noexcept { return library_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] Means means() const noexcept { return means_; }
  // Largest number of bytes reported for a write of one byte.
  [[nodiscard]] virtual std::size_t granule() const noexcept = 0;
  // Whether `library` always shows the contents of the view, and the reverse.
  [[nodiscard]] bool is_one_memory() const noexcept { return means_ == Means::pages; }

  // Adds what was written through the view since it was last taken or synchronized: exactly the
  // granules that were written, clipped to the memory. On failure the complete memory counts as
  // written.
  virtual void take(RangeSet& written) = 0;
  struct Taking {
    TrackedMemory* memory;
    RangeSet* written;
  };
  // `take` of many memories, with one scan of the kernel. Pre: the caller may call `take` on each.
  static void take_all(std::span<const Taking> requests);

  // Returns an address, `library` or, if there are no writers and the mechanism allows it, `view`,
  // at which the ranges hold what the view holds, or held at some moment during this call. Later
  // writes are found by a later `take`. Pre: with no writers, earlier writes were taken.
  [[nodiscard]] virtual Result<const std::byte*> snapshot(const RangeSet& ranges,
                                                          Writers writers) = 0;
  // Whether the result of `snapshot` stays valid until the next write; else only until the next
  // call.
  [[nodiscard]] virtual bool is_snapshot_stable(Writers writers) const noexcept = 0;
  // `take` and `snapshot` of the result, one sub-range after another from the beginning of the
  // memory, in whole granules. Calls visitor(part, found, source) on the calling thread while other
  // threads scan the next sub-ranges. If `visitor` fails it is not called again, its failure is
  // returned, and everything that was not passed to it counts as written.
  using PartVisitor =
      std::function<Result<void>(const ByteRange& part, RangeSet&& found, const std::byte* source)>;
  [[nodiscard]] virtual Result<void> take_in_parts(Writers writers, const PartVisitor& visitor);
  // Smallest sub-range in bytes, for mechanisms whose scan reads all of the memory. 0: a scan costs
  // little, and the memory is one sub-range.
  [[nodiscard]] virtual std::size_t min_part_bytes() const noexcept { return 0; }
  // Makes what was written to `library` in these ranges visible in the view. It counts as
  // synchronized.
  [[nodiscard]] virtual Result<void> publish(const RangeSet& ranges, Writers writers) = 0;
  // Other threads may write through the view from here on, or already could. Does the work that was
  // deferred while none could.
  virtual void expect_writers() {}

  // Begins a write of exactly that range and returns the address to write to. `end_write` makes it
  // visible in the view and synchronized. `keep_contents`: the view's contents are first copied to
  // that address.
  [[nodiscard]] virtual Result<std::byte*> begin_write(const ByteRange& range, bool keep_contents,
                                                       Writers writers);
  // `written` is the same range as a set, so that this needs no memory; `begin_address` is the
  // result of `begin_write`.
  [[nodiscard]] virtual Result<void> end_write(const ByteRange& range, const RangeSet& written,
                                               const std::byte* begin_address, Writers writers);
  // Tracks the granules that `range` covers in part by the smallest granules available, from here
  // on. Earlier writes are found by the next `take`. Throws std::bad_alloc; a later call may then
  // finish the rest.
  virtual void refine(const ByteRange& range) = 0;
  // Retains small granules only where `needed` touches. If memory is short the rest stays small
  // until a later call.
  virtual void coarsen(const RangeSet& needed) = 0;

 protected:
  TrackedMemory(Means method, std::size_t nbytes) noexcept : means_{method}, nbytes_{nbytes} {}

  const Means means_;
  const std::size_t nbytes_;
  std::byte* view_ = nullptr;
  std::byte* library_ = nullptr;
};

// How writes to large memory are found in this process, for `isthmus info`.
struct ActiveTracking {
  Means large = Means::pages;
  std::size_t granule = 0;  // bytes
  std::string reason;       // why not by pages; empty if by pages
};
[[nodiscard]] ActiveTracking active_mechanism();

// Sets the mechanism of the process for memory created from here on; nothing: the automatic choice.
// The environment variable ISTHMUS_TRACKING sets the initial value: "pages", "bytes" or "hashes".
// UNSUPPORTED, with the reason.
[[nodiscard]] Result<void> force(std::optional<Means> method);

}  // namespace isthmus::tracking
