// SPDX-License-Identifier: Apache-2.0
#pragma once
// The failure of an operation of several commands, of which a later one is refused while an earlier
// one is in flight.

#include <memory>
#include <utility>

#include "backend/event.hpp"

namespace isthmus {

// Holds the event of the whole operation, which fails once the earlier command has ended. The call
// does not wait for that end, which may depend on an event that the caller has yet to complete.
// Construct it before the first command is submitted, so that nothing can fail afterwards.
class PartFailure {
 public:
  // Fails with `why` once `part` has ended. Pre: called at most once.
  [[nodiscard]] Ref<Event> after(Event& part, Error why) noexcept {
    Ref<Event> ended{ending_->ended};
    ending_->why = std::move(why);
    part.on_complete(*ending_.release());
    return ended;
  }
  // Keeps an object alive until then.
  void keep(std::shared_ptr<void> kept) noexcept { ending_->kept = std::move(kept); }

 private:
  struct Ending final : Continuation {
    void run(Event&) noexcept override {
      ended->finish(std::move(why));
      delete this;
    }
    const Ref<LibraryEvent> ended = make_ref<LibraryEvent>();
    Error why;
    std::shared_ptr<void> kept;
  };
  std::unique_ptr<Ending> ending_ = std::make_unique<Ending>();
};

}  // namespace isthmus
