#pragma once
// Memory of callers' on the host that is pinned: registered with a driver, so that devices copy it
// at the speed of the bus and while the host does something else.
//
// What is registered is a range of bytes, once for each driver; pins share ranges, whatever they
// overlap. Not of whole pages: a copy of a stranger's that begins in what is registered and goes
// beyond is an error to CUDA. A pin of memory that is pinned in part has the rest registered, as
// ranges of their own. A range is registered till no pin has it any more and no copy of it is in
// flight.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/owner.hpp"
#include "core/ref.hpp"
#include "memory/reaper.hpp"

namespace isthmus {

// All of it is the table's, under its lock.
class pinned_range final : public reclaimable {
 public:
  enum class state : std::uint8_t { here, changing, gone };  // changing: the driver is being asked

  pinned_range(device& where, host_range bytes, std::shared_ptr<const owner> keep)
      : where_{&where}, bytes_{bytes}, keep_{std::move(keep)} {}
  void let_go() noexcept override;

 private:
  friend class pin_table;
  [[nodiscard]] std::uintptr_t end() const noexcept;
  [[nodiscard]] bool is_free() const noexcept {
    return pins_ == 0 && uses_ == 0 && state_ == state::here;
  }

  ref<device> where_;
  const host_range bytes_;
  std::shared_ptr<const owner> keep_;  // of the pin that it was registered for
  std::size_t pins_ = 0;
  std::size_t uses_ = 0;     // copies in flight
  std::size_t waiting_ = 0;  // for the end of these, to unregister it
  state state_ = state::changing;
  bool is_ours_ = false;  // else somebody else registered it
  std::shared_ptr<pinned_range> self_;
};

using pinned_ranges = std::vector<std::shared_ptr<pinned_range>>;

// Of the whole process. Safe for threads; calls no driver with its lock held.
class pin_table {
 public:
  // Registers what no range has of it, and adds a pin to all ranges there.
  // On failure nothing stays registered.
  [[nodiscard]] result<pinned_ranges> pin(device& where, const host_range& what,
                                          const std::shared_ptr<const owner>& keep);
  // Takes one pin off each. `wait`: the driver has let go of what nobody else pins when this
  // returns; else that may come later, on a thread of the library.
  void unpin(const pinned_ranges& ranges, bool wait) noexcept;
  // TIMEOUT while copies of them are in flight.
  [[nodiscard]] result<void> wait(const pinned_ranges& ranges, const os::deadline& until);
  // Ranges of the platform's at [start, start + nbytes), which stay till `let_go`.
  [[nodiscard]] pinned_ranges hold(const platform& by, const std::byte* start, std::size_t nbytes);
  void let_go(const pinned_ranges& held) noexcept;
  // A load. Whether there is any range.
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] bool has(const platform& by, const void* pointer);

 private:
  friend class pinned_range;
  using key = std::pair<const platform*, std::uintptr_t>;
  using lock = std::unique_lock<std::mutex>;

  template <class Visit>
  void visit(const platform& by, std::uintptr_t begin, std::uintptr_t end, Visit&& each);
  // Those there, once the driver is asked about none of them.
  [[nodiscard]] pinned_ranges settled(lock& held, const platform& by, const host_range& what);
  [[nodiscard]] pinned_ranges add_gaps(device& where, const host_range& what,
                                       const pinned_ranges& known,
                                       const std::shared_ptr<const owner>& keep);
  [[nodiscard]] error register_all(const pinned_ranges& added) noexcept;
  void unregister(const std::shared_ptr<pinned_range>& gone) noexcept;
  void await_uses(lock& held, pinned_range& of) noexcept;

  std::mutex lock_;
  std::condition_variable changed_;
  std::map<key, std::shared_ptr<pinned_range>> ranges_;  // none overlaps another of its platform
  std::atomic<std::size_t> count_{0};
};

[[nodiscard]] pin_table& process_pins() noexcept;

// What one caller pinned. Lives till he has it removed.
class pin final : public ref_counted {
 public:
  struct request {
    std::byte* start = nullptr;
    std::size_t nbytes = 0;
    bool read_only = false;
  };
  // Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] static result<ref<pin>> make(device& where, const request& what, owner keep);
  pin(device& where, const request& what, std::shared_ptr<const owner> keep, pinned_ranges ranges)
      : where_{&where}, what_{what}, keep_{std::move(keep)}, ranges_{std::move(ranges)} {}

  [[nodiscard]] device& where() const noexcept { return *where_; }
  [[nodiscard]] const request& what() const noexcept { return what_; }
  // Whether there was something to register: else it is copied as well as it is.
  [[nodiscard]] bool is_registered() const noexcept { return !ranges_.empty(); }
  // For the copies of it that are in flight: TIMEOUT.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // Once. `wait`: the caller may free the memory afterwards.
  void end(bool wait) noexcept;

 private:
  ref<device> where_;
  const request what_;
  std::shared_ptr<const owner> keep_;
  const pinned_ranges ranges_;
};

// What keeps the part of it that is pinned for `on` registered; none: nothing is.
[[nodiscard]] owner hold_pinned(const queue& on, const std::byte* start, std::size_t nbytes);

}  // namespace isthmus
