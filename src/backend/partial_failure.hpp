// SPDX-License-Identifier: Apache-2.0
#pragma once
// The failure of an operation that consists of several commands, if the driver rejects a command
// while an earlier one is in flight.

#include <memory>
#include <utility>

#include "backend/event.hpp"
#include "core/expects.hpp"

namespace isthmus {

// Holds the event of the whole operation, which fails once the earlier command has completed. The
// submitting call does not wait for that command, which may depend on an event that the caller
// completes later. Construct this object before submitting the first command, so that nothing can
// fail afterwards.
class PartialFailure {
 public:
  // Returns an event that fails with `error` once `command` has completed. Called at most once.
  [[nodiscard]] Ref<Event> after(Event& command, Error error) noexcept {
    ISTHMUS_EXPECTS(ending_);
    Ref<Event> event{ending_->event};
    ending_->error = std::move(error);
    command.on_complete(*ending_.release());
    return event;
  }
  // Keeps `object` alive until the event that `after` returns has failed. If `after` is not called,
  // releases `object` with this PartialFailure.
  void keep_alive(std::shared_ptr<void> object) noexcept { ending_->object = std::move(object); }

 private:
  struct Ending final : Continuation {
    void run(Event&) noexcept override {
      event->finish(std::move(error));
      delete this;
    }
    const Ref<LibraryEvent> event = make_ref<LibraryEvent>();
    Error error;
    std::shared_ptr<void> object;
  };
  std::unique_ptr<Ending> ending_ = std::make_unique<Ending>();
};

}  // namespace isthmus
