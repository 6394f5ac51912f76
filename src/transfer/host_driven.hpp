#pragma once
// Copies and fills that the host carries out itself, in the order of a queue or of none: on the
// caller's thread where he waits, else on a thread of the library, and then what comes on the queue
// waits for that.

#include <memory>

#include "transfer/movement.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

// What such an operation in flight owns.
class host_driven {
 public:
  host_driven() = default;  // of plain memory alone
  explicit host_driven(const movement& what);
  host_driven(const host_driven&) = delete;
  host_driven& operator=(const host_driven&) = delete;
  virtual ~host_driven() = default;

 protected:
  // Once what it must come behind has ended. Leaves nothing in flight, whatever it gives; may throw
  // std::bad_alloc.
  [[nodiscard]] virtual result<void> move() = 0;
  // Nothing of a driver's may be left.
  virtual void let_go() noexcept {}

 private:
  friend submitted carry_out(queue* on, const std::shared_ptr<host_driven>& what,
                             transfer_options options);
  [[nodiscard]] result<void> collect(queue* on);
  [[nodiscard]] result<void> await_turn() const;
  [[nodiscard]] error run_guarded() noexcept;
  [[nodiscard]] error run_to_the_end() noexcept;
  void forget() noexcept;
  [[nodiscard]] static submitted run_behind(queue* on, const std::shared_ptr<host_driven>& what);

  ref<allocation> destination_;
  ref<allocation> source_;
  touched_memory touched_;  // goes before what it touches
  std::vector<ref<event>> after_;
  std::vector<ref<event>> before_;  // in order, but not its concern whether it failed
  std::vector<owner> owners_;
  ref<library_event> done_ = make_ref<library_event>();
};

// `on` null: in no queue's order. Blocking, or where the queue cannot wait for the host, it has
// ended when this returns.
[[nodiscard]] submitted carry_out(queue* on, const std::shared_ptr<host_driven>& what,
                                  transfer_options options);

}  // namespace isthmus
