#pragma once
// The host copy of an array: memory that a user writes through plain pointers, and the ranges of it
// that he wrote, found afterwards.
//
// It has two faces. `view` is the user's: writes through it are found. `library` is for everything
// that the library does, copies of devices and its own: what is written there is nobody's write. By
// which means writes are found decides how the two are connected:
//  - pages: both are mappings of the same memory; the kernel tells the pages that were written.
//  - bytes: `library` holds the bytes as they were last the same, and the view is compared.
//  - hashes: of each chunk of the view as it was last the same; `library` is for what is on its
//    way.
// A user of this class need not know which: he says `snapshot` before he copies out of it,
// `publish` after he has put something to `library`, and `expect_writers` before he lets somebody
// write through the view after nobody could.

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

// Whether anybody can write through the view meanwhile, but for what `begin_write` gave.
enum class writers : std::uint8_t { some, none };

struct request {
  std::size_t nbytes = 0;  // one at least
  granularity grain = granularity::automatic;
  std::optional<means> by = std::nullopt;  // else what the process has in force for that size
};

// Safe for threads only in that the view may be written at any time; all else is one caller's at a
// time, but for `take_all`.
class tracked_memory {
 public:
  // Zeroed, nothing of it written. OUT_OF_MEMORY; UNSUPPORTED, with the reason, for means that were
  // asked for and are not there.
  [[nodiscard]] static result<std::unique_ptr<tracked_memory>> create(const request& wanted);
  virtual ~tracked_memory() = default;
  tracked_memory(const tracked_memory&) = delete;
  tracked_memory& operator=(const tracked_memory&) = delete;

  [[nodiscard]] std::byte* view() const noexcept { return view_; }
  [[nodiscard]] std::byte* library() const noexcept { return library_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] means by() const noexcept { return by_; }
  // Bytes that one write is told by, at most.
  [[nodiscard]] virtual std::size_t granule() const noexcept = 0;
  // Whether what is at `library` is there for good and in the view at the same time.
  [[nodiscard]] bool is_one_memory() const noexcept { return by_ == means::pages; }

  // Adds what was written through the view since it was last taken, or last the same: whole
  // granules, all that were written and no others, clipped to the memory. On failure all of it
  // counts as written.
  virtual void take(range_set& written) = 0;
  struct taking {
    tracked_memory* from;
    range_set* written;
  };
  // The same of many, with one look at all that the kernel tells. Pre: the caller may take each.
  static void take_all(std::span<const taking> each);

  // From here on memory that begins at what is returned, `library` or where nobody writes the view
  // itself, holds in these ranges what the view holds, or held at some moment since this was
  // called: what is written later is found later. Pre: with no writers, what was written before was
  // taken.
  [[nodiscard]] virtual result<const std::byte*> snapshot(const range_set& ranges, writers who) = 0;
  // Whether what that returns is good till somebody writes, not just till the next call.
  [[nodiscard]] virtual bool snapshot_stays(writers who) const noexcept = 0;
  // `take` and `snapshot` of what it found, part by part, whole granules each, from the memory's
  // beginning on: each(part, found, from) is called by the calling thread, while the next parts are
  // looked at. Once that fails there is no other part; its failure is told, and what was not told
  // to it counts as written.
  using part_visitor =
      std::function<result<void>(const byte_range& part, range_set&& found, const std::byte* from)>;
  [[nodiscard]] virtual result<void> take_in_parts(writers who, const part_visitor& each);
  // Bytes that a part has, at least: worth it where a look reads all. 0: it costs next to nothing,
  // and all is one part.
  [[nodiscard]] virtual std::size_t least_part() const noexcept { return 0; }
  // What was put to `library` in these ranges shows in the view, and counts as the same.
  [[nodiscard]] virtual result<void> publish(const range_set& ranges, writers who) = 0;
  // Somebody may write through the view from here on, or could already. Does now what was put off
  // while nobody could.
  virtual void expect_writers() {}

  // Where somebody writes exactly that range: it shows in the view, and counts as the same, at
  // `end_write`, which is told where. `keeps`: what is there is what the view has.
  [[nodiscard]] virtual result<std::byte*> begin_write(const byte_range& range, bool keeps,
                                                       writers who);
  // `written` is that range, as a set, so that this needs no memory.
  [[nodiscard]] virtual result<void> end_write(const byte_range& range, const range_set& written,
                                               const std::byte* begun, writers who);
  // Tells what lies in the granules that `range` covers in part by the smallest that there are,
  // from here on; what was written before is found by the next `take`. Throws std::bad_alloc, and
  // then a later call may do the rest.
  virtual void refine(const byte_range& range) = 0;
  // Small granules remain only where `still` touches. Without memory it stays as it is until a
  // later call.
  virtual void coarsen(const range_set& still) = 0;

 protected:
  tracked_memory(means by, std::size_t nbytes) noexcept : by_{by}, nbytes_{nbytes} {}

  const means by_;
  const std::size_t nbytes_;
  std::byte* view_ = nullptr;
  std::byte* library_ = nullptr;
};

// What finds writes to large memory here, for `isthmus info`: "pages" and its granule, or the
// reason why it is hashes.
struct in_force {
  means large = means::pages;
  std::size_t granule = 0;  // bytes
  std::string reason;       // why not the kernel's pages; empty where they are
};
[[nodiscard]] in_force what_is_in_force();

// Of the process, for what is made from here on; nothing: by itself. ISTHMUS_TRACKING sets it at
// the start: "pages", "bytes" or "hashes". UNSUPPORTED with the reason.
[[nodiscard]] result<void> force(std::optional<means> by);

}  // namespace isthmus::tracking
