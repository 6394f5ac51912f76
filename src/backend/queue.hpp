#pragma once
// A queue: operations run one after the other in the order in which they were submitted.
//
// Submitting never waits for the operation itself. The public functions check what is common to all
// drivers and turn the events to wait for into ones that the driver knows; the `do_` functions, a
// driver's whole duty, get only such.

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "backend/context.hpp"
#include "backend/event.hpp"
#include "core/bytes.hpp"
#include "core/owner.hpp"
#include "core/spin_lock.hpp"
#include "core/strided.hpp"

namespace isthmus {

// A function that runs in a queue's order on a thread of the library: may block and call anything
// but must not wait for what is behind it. `where.function_address` says where it may touch device
// memory.
class host_function {
 public:
  host_function() = default;
  host_function(const host_function&) = delete;
  host_function& operator=(const host_function&) = delete;
  virtual ~host_function() = default;
  virtual error run(context& where) noexcept = 0;
};

class queue : public ref_counted {
 public:
  // `part`: belongs to the context's platform, as a default queue does.
  queue(context& home, device& where, bool part);
  ~queue() override;

  [[nodiscard]] context& home() const noexcept { return home_; }
  [[nodiscard]] device& where() const noexcept { return where_; }

  // Pre: the ranges are memory of this context that is no other device's own, or plain host memory,
  // and stay so till the event has completed; nbytes > 0. Post: on failure nothing was submitted.
  // An event in `after` that failed makes this operation fail with DEPENDENCY, unless it is there
  // as `order_only`.
  [[nodiscard]] result<ref<event>> copy(void* destination, const void* source, std::size_t nbytes,
                                        wait_list after);
  [[nodiscard]] result<ref<event>> copy_2d(const copy_2d_shape& shape, wait_list after);
  // Pre: there is one at least, none is empty, none overlaps what another one writes. The ranges
  // are the caller's again when this returns.
  [[nodiscard]] result<ref<event>> copy_ranges(const ranged_copy& what, wait_list after);
  // Pre: as of `copy_ranges`, of its runs.
  [[nodiscard]] result<ref<event>> copy_strided(const strided_copy& what, wait_list after);
  // Pre: nbytes is a multiple of the pattern's.
  [[nodiscard]] result<ref<event>> fill(void* destination, const fill_pattern& pattern,
                                        std::size_t nbytes, wait_list after);
  [[nodiscard]] result<ref<event>> prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                            wait_list after);
  [[nodiscard]] result<ref<event>> advise(const void* pointer, std::size_t nbytes,
                                          std::uint32_t advice, wait_list after);
  // Completes when all submitted so far, and `after`, has.
  [[nodiscard]] result<ref<event>> fence(wait_list after);
  // A fence that knows when, where the device can tell at all.
  [[nodiscard]] result<ref<event>> mark();
  // What others put to the driver's queue from now on comes behind `before`, whatever its outcome.
  // Waits for `before` itself where the driver cannot have it yet: CALLBACK where the thread's
  // interrupt function ended that. CLOSED; in the driver's failure.
  [[nodiscard]] result<void> stand_behind(wait_list before);
  // Adds to `out` the events whose end is the end of all submitted so far, by whomever; of a closed
  // queue too. Asks the driver only where the queue is lent, and can fail only there.
  [[nodiscard]] result<void> unfinished(std::vector<ref<event>>& out);
  [[nodiscard]] result<ref<event>> run(std::unique_ptr<host_function> function, wait_list after);
  // For an operation that is carried out elsewhere but has its place in the order of this queue:
  // `reserve_place` before it is submitted, then one of the others. Throws std::bad_alloc.
  void reserve_place();
  void give_up_place() noexcept { give_up_submission(); }
  // What is submitted here from now on runs after `elsewhere`, whatever its outcome. Needs neither
  // memory nor the driver: without them the next submission waits for `elsewhere` instead. Waits
  // only where others put work to the driver's queue, which nothing else would hold back, and until
  // the driver takes a fence, `elsewhere` has ended, the queue is closed or its device is lost. The
  // driver's error where it refuses all fences for a second: others' work may then run before
  // `elsewhere` has ended.
  [[nodiscard]] error take_place(const ref<event>& elsewhere) noexcept;

  // Why no memory can be had for it now; nothing if it can. The work on a queue whose handle was
  // lent may be recorded only, to be run again and again: whoever gets the memory later would find
  // it overwritten.
  [[nodiscard]] error refuse_allocation() const { return lent() ? refuse_recorded() : error{}; }
  // Whether one event, or none, ends all that is unfinished: `last`, null where nothing is. Asks
  // nobody; false where `unfinished` does. Pre: `last` is null.
  [[nodiscard]] bool ends_in_one(ref<event>& last) noexcept;

  // Whether nothing that came through this object is pending, and nothing else can be.
  [[nodiscard]] bool idle();
  // The same without asking the driver: false also where an end has not been noticed yet.
  [[nodiscard]] bool quiet() noexcept;
  // Waits for all submitted so far; their errors are their events' own and are not told here.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // The end of all submitted so far, as one event that cannot fail.
  [[nodiscard]] result<ref<event>> pending();
  // Refuses what comes later.
  void close() noexcept { closed_.store(true, std::memory_order_release); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // A device's default queue, which nobody may close.
  [[nodiscard]] bool is_default() const noexcept { return !keep_; }

  // Of this object alone and never used again, unlike its address. Never 0.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  // Gives the driver's handle away: from here on there may be work that we do not know. Waits, and
  // fails, as `take_place` does where something elsewhere comes before it. Null: there is none.
  [[nodiscard]] result<void*> lend() noexcept;
  [[nodiscard]] bool lent() const noexcept { return lent_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::atomic<bool>& lent_flag() const noexcept { return lent_; }
  // Whether asking for what is unfinished there, once it is lent, may have to wait for functions
  // that the driver runs: never to be done where memory is let go of, which may be in such a
  // function.
  [[nodiscard]] bool asking_may_block() const noexcept { return asking_may_block_; }
  // Whether a thread of the library is to ask it only while one of the program is in a call of
  // ours (which ends after 4 ms where the driver blocks who asks). Intel's OpenCL runtime for CPUs
  // (2024.2 to 2026.2) crashes where one thread waits for an out-of-order queue while another puts
  // anything there: a program that waits for its queue on its only thread is not to find us there.
  [[nodiscard]] bool is_asked_on_demand() const noexcept { return is_asked_on_demand_; }
  // Whether others put work there without asking for its handle.
  [[nodiscard]] bool is_everybodys() const noexcept { return is_everybodys_; }
  [[nodiscard]] bool has_others_work() const noexcept { return lent() || is_everybodys_; }
  // Whether all that comes next there, by whomever, comes behind what is there now: then it may use
  // memory that is freed now.
  [[nodiscard]] bool in_one_order() const noexcept {
    return !has_others_work() || (keeps_order_ && !holds_back());
  }

  // Whether operations wait on the host for their turn, which others' work may come before once the
  // queue is lent.
  [[nodiscard]] bool holds_back() const noexcept {
    return holds_back_.load(std::memory_order_acquire);
  }

  // Pools that know the queue each hold a reference, which keeps it for nobody's use: taken before
  // `note_pool`, let go of after `forget_pool`. Once pools alone know it nobody comes to know it.
  void note_pool() noexcept;
  void forget_pool() noexcept;
  [[nodiscard]] bool known_to_pools_alone() noexcept;
  // For who found it without holding a reference, under a lock that its end takes: false if nobody
  // but pools knows it.
  [[nodiscard]] bool retain_if_known() noexcept;

 protected:
  [[nodiscard]] virtual result<ref<event>> do_copy(void* destination, const void* source,
                                                   std::size_t nbytes, wait_list after) = 0;
  [[nodiscard]] virtual result<ref<event>> do_copy_2d(const copy_2d_shape& shape,
                                                      wait_list after) = 0;
  [[nodiscard]] virtual result<ref<event>> do_copy_ranges(const ranged_copy& what,
                                                          wait_list after) = 0;
  // Lists its runs, where a driver has nothing better.
  [[nodiscard]] virtual result<ref<event>> do_copy_strided(const strided_copy& what,
                                                           wait_list after);
  [[nodiscard]] virtual result<ref<event>> do_fill(void* destination, const fill_pattern& pattern,
                                                   std::size_t nbytes, wait_list after) = 0;
  [[nodiscard]] virtual result<ref<event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                                       bool to_host, wait_list after);
  [[nodiscard]] virtual result<ref<event>> do_advise(const void* pointer, std::size_t nbytes,
                                                     std::uint32_t advice, wait_list after);
  [[nodiscard]] virtual result<ref<event>> do_fence(wait_list after) = 0;
  // The default: fences know their times.
  [[nodiscard]] virtual result<ref<event>> do_mark() { return do_fence({}); }
  // What starts a function; attached once the queue's lock is released. Where no thread can be had
  // the function ends there, and what it owns may submit to this queue as it goes.
  struct function_start {
    ref<event> reached;
    continuation* turn = nullptr;  // null: nothing is left to attach
  };
  // The default: a fence, then a thread of the library, then a host event that the queue waits for.
  // Needs ISTHMUS_CAN_WAIT_FOR_HOST. Where it fails the function is the caller's still.
  [[nodiscard]] virtual result<ref<event>> do_run(std::unique_ptr<host_function>& function,
                                                  wait_list after, function_start& start);
  [[nodiscard]] virtual error refuse_recorded() const { return {}; }
  // Whether `candidate` can stand in `after` as it is: an event of this driver and context.
  [[nodiscard]] virtual bool knows(event& candidate) const noexcept = 0;
  // What the `do_` functions take in place of `foreign`: an event that completes as it does. Only
  // with ISTHMUS_CAN_WAIT_FOR_HOST.
  [[nodiscard]] virtual result<ref<event>> import(event& foreign);
  // What the `do_` functions take for the end of `known`, whatever its outcome; `end` is an event
  // of ours that ends with it. The default suits a driver that takes `end` as it is.
  [[nodiscard]] virtual result<ref<event>> end_of_known(const ref<event>& known,
                                                        const ref<event>& end) {
    static_cast<void>(known);
    return end;
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }

  // An adopted queue may have work of its owner's from the start.
  void mark_lent() noexcept { lent_.store(true, std::memory_order_release); }
  // While it is made: that it is everybody's, and that the driver runs all that is put there in the
  // order in which it was put, by whomever, as long as this object lives.
  void mark_everybodys() noexcept { is_everybodys_ = true; }
  void mark_ordered() noexcept { keeps_order_ = true; }
  void mark_asking_may_block() noexcept { asking_may_block_ = true; }
  // Of what came through this object alone; asks nobody.
  void add_unfinished_of_ours(std::vector<ref<event>>& out);
  void mark_asked_on_demand() noexcept { is_asked_on_demand_ = true; }
  // While something is held back that others' work may come before.
  void set_holds_back(bool whether) noexcept {
    holds_back_.store(whether, std::memory_order_release);
  }

 private:
  template <class Lock = std::shared_lock<std::shared_mutex>, class Submit>
  result<ref<event>> submit(wait_list after, Submit&& call);
  [[nodiscard]] error refuse() const;
  [[nodiscard]] result<std::vector<ref<event>>> translate(wait_list after);
  // Makes room for what `remember` adds, so that nothing can fail once an operation is in flight.
  [[nodiscard]] std::uint64_t begin_submission();
  void give_up_submission() noexcept;
  // Adds the events of other queues that what is submitted now comes after. Returns the number that
  // all of them are below; 0 where there are none.
  [[nodiscard]] std::uint64_t add_from_elsewhere(std::vector<ref<event>>& after);
  void remember(ref<event> submitted, std::uint64_t began_at,
                std::uint64_t elsewhere_below) noexcept;

  // One of those elsewhere that has not ended; null if all have.
  [[nodiscard]] ref<event> pending_elsewhere() noexcept;
  [[nodiscard]] error follow_elsewhere() noexcept;
  [[nodiscard]] error fence_without_throwing() noexcept;
  [[nodiscard]] error cannot_follow(const error& refused) const noexcept;

  struct tail {
    std::uint64_t number;
    ref<event> last;
    bool is_elsewhere = false;  // not in the driver's queue: the next submission waits for it
  };

  context& home_;
  device& where_;
  ref<context> keep_;
  // Held alone by `run`, whose two fences nothing of another thread may come between.
  std::shared_mutex handing_over_;
  const std::uint64_t serial_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> lent_{false};
  std::atomic<bool> holds_back_{false};
  bool is_everybodys_ = false;
  bool keeps_order_ = false;
  bool asking_may_block_ = false;
  bool is_asked_on_demand_ = false;
  spin_lock pools_lock_;
  std::uint32_t pools_ = 0;
  // The last events: one, or as many as threads that submit at the same moment, and those from
  // elsewhere that nothing has come after yet. All else that was submitted comes before them in the
  // queue's order.
  spin_lock tails_lock_;
  std::uint32_t promised_ = 0;  // submissions that have begun and are not in `tails_` yet
  std::vector<tail> tails_;
  std::uint64_t next_number_ = 0;
  std::atomic<bool> waits_elsewhere_{false};  // whether one of `tails_` is elsewhere
};

}  // namespace isthmus
