#pragma once
// How an operation ends of which a later part is refused while an earlier one is in flight.

#include <memory>
#include <utility>

#include "backend/event.hpp"

namespace isthmus {

// The event of the whole, which fails once the earlier part has ended. The call does not wait for
// that: it may come after an event that the caller has yet to complete. Made before the first part
// is submitted.
class part_failure {
 public:
  // Fails with `why` once `part` has ended. Call at most once.
  [[nodiscard]] ref<event> after(event& part, error why) noexcept {
    ref<event> ended{ending_->ended};
    ending_->why = std::move(why);
    part.on_complete(*ending_.release());
    return ended;
  }
  // What lives until then.
  void keep(std::shared_ptr<void> kept) noexcept { ending_->kept = std::move(kept); }

 private:
  struct ending final : continuation {
    void run(event&) noexcept override {
      ended->finish(std::move(why));
      delete this;
    }
    const ref<library_event> ended = make_ref<library_event>();
    error why;
    std::shared_ptr<void> kept;
  };
  std::unique_ptr<ending> ending_ = std::make_unique<ending>();
};

}  // namespace isthmus
