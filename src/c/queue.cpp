// SPDX-License-Identifier: Apache-2.0
// Queues, and functions submitted to them.

#include "backend/library_threads.hpp"
#include "c/common.hpp"
#include "core/threads.hpp"
#include "memory/deferred_release.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// A user's function with the memory that it works on, which is kept alive until it has run.
class UserFunction final : public HostFunction {
 public:
  UserFunction(isthmus_function_t function, Owner keep, std::vector<Endpoint> sides,
               std::vector<std::size_t> sizes)
      : function_{function},
        keep_{std::move(keep)},
        sides_{std::move(sides)},
        sizes_{std::move(sizes)} {}

  Error run(Context& context) noexcept override {
    if (!function_may_begin()) {
      return functions_are_stopped();
    }
    Error outcome = invoke(context);
    // The owner may belong to an interpreter, which may be finalized once no function runs.
    keep_ = Owner{};
    function_ended();
    return outcome;
  }

 private:
  Error invoke(Context& context) noexcept try {
    std::vector<isthmus_view_t> views;
    for (std::size_t index = 0; index < sides_.size(); ++index) {
      views.push_back({context.function_address(sides_[index].pointer), sizes_[index]});
    }
    const char* message = nullptr;
    const SignalsOfStarter meanwhile;
    const auto code = function_(keep_.object(), views.data(), views.size(), &message);
    return code == ISTHMUS_OK
               ? Error{}
               : Error{is_error(code) && code != ISTHMUS_ERROR_TIMEOUT ? code
                                                                       : ISTHMUS_ERROR_CALLBACK,
                       message == nullptr ? "a function submitted to a queue failed" : message};
  } catch (...) {
    return fail(ISTHMUS_ERROR_CALLBACK, "a function submitted to a queue threw an exception");
  }

  isthmus_function_t function_;
  Owner keep_;
  std::vector<Endpoint> sides_;
  std::vector<std::size_t> sizes_;
};

Error refuse_device_memory(const Queue& queue, const Buffer& given) {
  if (given.kind() != ISTHMUS_KIND_DEVICE || queue.device().can(ISTHMUS_CAN_RUN_FUNCTIONS)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "functions cannot access device memory of {}: use shared or host memory",
              queue.device().properties().filter);
}

// Everything that a function works on, checked and kept alive.
struct FunctionSides {
  std::vector<Endpoint> sides;
  std::vector<std::size_t> sizes;

  [[nodiscard]] Result<void> add(const Queue& queue, Buffer& given) {
    if (auto refused = refuse_device_memory(queue, given)) {
      return refused;
    }
    auto side = given.at(0, given.nbytes(), false);
    ISTHMUS_TRY(side);
    if (!side->reached_by(queue)) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "a function on a queue of {} cannot access device memory of {}: use a queue of "
                  "that device and context",
                  queue.device().properties().filter, side->memory->device().properties().filter);
    }
    sides.push_back(*std::move(side));
    sizes.push_back(given.nbytes());
    return {};
  }
};

Result<Ref<Event>> submit_function(Queue& queue, isthmus_function_t call, Owner keep,
                                   FunctionSides given, std::vector<Ref<Event>> after) {
  std::vector<TouchedMemory> touched(given.sides.size());
  TransferOptions options;
  options.after = std::move(after);
  for (std::size_t index = 0; index < touched.size(); ++index) {
    touched[index].add_read_and_written(given.sides[index], given.sizes[index]);
    touched[index].reserve();
    touched[index].add_contents(options);
    ISTHMUS_TRY(touched[index].order_after_conflicts(&queue, options.after));
  }
  auto sides = given.sides;
  auto ended = queue.run(std::make_unique<UserFunction>(call, std::move(keep), std::move(sides),
                                                        std::move(given.sizes)),
                         options.after);
  if (ended) {
    for (auto& each : touched) {
      each.publish(&queue, *ended);
    }
  }
  return ended;
}

}  // namespace

isthmus_status_t isthmus_queue_create(isthmus_context_t* context, isthmus_device_t* device,
                                      isthmus_queue_t** queue) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(device);
    ISTHMUS_NEEDS(queue);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    Ref<isthmus::Context> home{object(context)};
    if (!home) {
      auto standard = object(device)->platform().default_context();
      ISTHMUS_TRY(standard);
      home = *std::move(standard);
    }
    return give(home->create_queue(*object(device)), queue);
  });
}

isthmus_status_t isthmus_queue_default(isthmus_device_t* device, isthmus_queue_t** queue) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto* where = object(device);
    if (where == nullptr) {
      auto found = find_device("");
      ISTHMUS_TRY(found);
      where = *found;
    }
    return give(where->default_queue(), queue);
  });
}

isthmus_status_t isthmus_queue_adopt(isthmus_device_t* device, void* native, isthmus_owner_t keep,
                                     isthmus_queue_t** queue) noexcept {
  Owner kept{keep};
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(device);
    ISTHMUS_NEEDS(native);
    ISTHMUS_NEEDS(queue);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    return give(object(device)->platform().adopt_queue(*object(device), native, std::move(kept)),
                queue);
  });
}

void isthmus_queue_retain(isthmus_queue_t* queue) noexcept {
  if (queue != nullptr) {
    object(queue)->retain();
  }
}

void isthmus_queue_release(isthmus_queue_t* queue) noexcept {
  if (queue != nullptr && !os::is_forked_child()) {
    object(queue)->release();
  }
}

isthmus_device_t* isthmus_queue_device(const isthmus_queue_t* queue) noexcept {
  return queue == nullptr ? nullptr : handle(&object(queue)->device());
}

isthmus_context_t* isthmus_queue_context(const isthmus_queue_t* queue) noexcept {
  return queue == nullptr ? nullptr : handle(&object(queue)->context());
}

uintptr_t isthmus_queue_key(const isthmus_queue_t* queue) noexcept {
  return queue == nullptr ? 0 : object(queue)->key();
}

void* isthmus_queue_native(isthmus_queue_t* queue) noexcept {
  void* handle = nullptr;
  if (queue != nullptr) {
    static_cast<void>(guarded([&]() -> Result<void> {
      auto lent = object(queue)->lend();
      ISTHMUS_TRY(lent);
      handle = *lent;
      return {};
    }));
  }
  return handle;
}

int isthmus_queue_idle(isthmus_queue_t* queue) noexcept {
  return queue != nullptr && !os::is_forked_child() && object(queue)->idle() ? 1 : 0;
}

isthmus_status_t isthmus_queue_wait(isthmus_queue_t* queue, int64_t timeout_ns) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    if (timeout_ns < 0) {
      release_on_demand();  // runs releases that wait for the same work; may exceed a short timeout
    }
    return object(queue)->wait(os::deadline_after(timeout_ns));
  });
}

isthmus_status_t isthmus_queue_pending(isthmus_queue_t* queue, isthmus_event_t** event) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(event);
    release_on_demand();  // runs releases that wait for the same work
    return give(object(queue)->pending(), event);
  });
}

isthmus_status_t isthmus_queue_fence(isthmus_queue_t* queue, isthmus_event_t* const* after,
                                     size_t after_count, isthmus_event_t** event) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(event);
    auto waited = events_of(after, after_count);
    ISTHMUS_TRY(waited);
    return give(object(queue)->fence(*waited), event);
  });
}

isthmus_status_t isthmus_queue_mark(isthmus_queue_t* queue, isthmus_event_t** event) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(event);
    return give(object(queue)->mark(), event);
  });
}

isthmus_status_t isthmus_queue_close(isthmus_queue_t* queue) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    if (object(queue)->is_default()) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "the default queue of {} cannot be closed: create a queue to close",
                  object(queue)->device().properties().filter);
    }
    object(queue)->close();
    return {};
  });
}

isthmus_status_t isthmus_queue_submit(isthmus_queue_t* queue, isthmus_function_t function,
                                      isthmus_owner_t keep, isthmus_buffer_t* const* buffers,
                                      size_t buffer_count, isthmus_event_t* const* after,
                                      size_t after_count, isthmus_event_t** event) noexcept {
  Owner kept{keep};
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(queue);
    ISTHMUS_NEEDS(function);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    if (buffer_count != 0) {
      ISTHMUS_NEEDS(buffers);
    }
    auto waited = events_of(after, after_count);
    ISTHMUS_TRY(waited);
    FunctionSides given;
    for (size_t index = 0; index < buffer_count; ++index) {
      ISTHMUS_NEEDS(buffers[index]);
      ISTHMUS_TRY(given.add(*object(queue), *object(buffers[index])));
    }
    auto ended = submit_function(*object(queue), function, std::move(kept), std::move(given),
                                 *std::move(waited));
    ISTHMUS_TRY(ended);
    if (event == nullptr) {
      return (*ended)->wait(std::nullopt);
    }
    return give(std::move(ended), event);
  });
}

void isthmus_stop_functions() noexcept {
  if (!os::is_forked_child()) {
    stop_functions();
  }
}
