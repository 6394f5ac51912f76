// SPDX-License-Identifier: Apache-2.0
// Queues, and functions submitted to them.

#include "backend/library_threads.hpp"
#include "c/common.hpp"
#include "core/threads.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"

using namespace isthmus;
using namespace isthmus::c;

namespace {

// A user's function with the memory that it accesses, which is kept alive until the function has
// run.
class UserFunction final : public HostFunction {
 public:
  UserFunction(isthmus_function_t function, Owner owner, std::vector<Endpoint> endpoints,
               std::vector<std::size_t> sizes)
      : function_{function},
        owner_{std::move(owner)},
        endpoints_{std::move(endpoints)},
        sizes_{std::move(sizes)} {}

  Error run(Context& context) noexcept override {
    if (!try_begin_function()) {
      return functions_stopped_error();
    }
    Error outcome = invoke(context);
    // Releases the owner first: it may belong to an interpreter, which may be finalized as soon as
    // no function runs.
    owner_ = Owner{};
    end_function();
    return outcome;
  }

 private:
  Error invoke(Context& context) noexcept try {
    std::vector<isthmus_view_t> views;
    for (std::size_t index = 0; index < endpoints_.size(); ++index) {
      views.push_back({context.function_address(endpoints_[index].pointer), sizes_[index]});
    }
    const char* message = nullptr;
    const SignalsOfStarter starter_signals;
    const auto code = function_(owner_.object(), views.data(), views.size(), &message);
    return code == ISTHMUS_OK
               ? Error{}
               : Error{is_error(code) && code != ISTHMUS_ERROR_TIMEOUT ? code
                                                                       : ISTHMUS_ERROR_CALLBACK,
                       message == nullptr ? "a function submitted to a queue failed" : message};
  } catch (...) {
    return fail(ISTHMUS_ERROR_CALLBACK, "a function submitted to a queue threw an exception");
  }

  isthmus_function_t function_;
  Owner owner_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::size_t> sizes_;
};

Error check_function_access(const Queue& queue, const Buffer& buffer) {
  if (buffer.kind() != ISTHMUS_KIND_DEVICE || queue.device().can(ISTHMUS_CAN_RUN_FUNCTIONS)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "functions cannot access device memory of {}: use shared or host memory",
              queue.device().properties().filter);
}

// The memory that a function accesses, checked and kept alive.
struct FunctionArguments {
  std::vector<Endpoint> endpoints;
  std::vector<std::size_t> sizes;

  [[nodiscard]] Result<void> add(const Queue& queue, Buffer& buffer) {
    if (auto error = check_function_access(queue, buffer)) {
      return error;
    }
    auto endpoint = buffer.at(0, buffer.nbytes(), false);
    ISTHMUS_TRY(endpoint);
    if (!endpoint->is_reachable_by(queue)) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "a function on a queue of {} cannot access device memory of {}: use a queue of "
                  "that device and context",
                  queue.device().properties().filter,
                  endpoint->memory->device().properties().filter);
    }
    endpoints.push_back(*std::move(endpoint));
    sizes.push_back(buffer.nbytes());
    return {};
  }
};

// Begins `wait`, if it is not null, for the function and all that it follows. If that fails,
// nothing was submitted.
Result<Ref<Event>> submit_function(Queue& queue, isthmus_function_t function, Owner owner,
                                   FunctionArguments arguments, std::vector<Ref<Event>> after,
                                   FunctionWait* wait) {
  std::vector<TouchedMemory> touched(arguments.endpoints.size());
  TransferOptions options;
  options.after = std::move(after);
  for (std::size_t index = 0; index < touched.size(); ++index) {
    touched[index].add_read_and_written(arguments.endpoints[index], arguments.sizes[index]);
    touched[index].reserve();
    touched[index].add_contents(options);
    ISTHMUS_TRY(touched[index].order_after_conflicts(&queue, options.after));
  }
  if (wait != nullptr) {
    ISTHMUS_TRY(queue.begin_wait(*wait, options.after));
  }
  auto endpoints = arguments.endpoints;
  auto completion =
      queue.run(std::make_unique<UserFunction>(function, std::move(owner), std::move(endpoints),
                                               std::move(arguments.sizes)),
                options.after);
  if (completion) {
    for (auto& memory : touched) {
      memory.publish(&queue, *completion);
    }
  }
  return completion;
}

}  // namespace

isthmus_status_t isthmus_queue_create(isthmus_context_t* context, isthmus_device_t* device,
                                      isthmus_queue_t** queue) noexcept {
  return driver_entry(ISTHMUS_NEEDS(device, queue), [&]() -> Result<void> {
    Ref<isthmus::Context> actual_context{object(context)};
    if (!actual_context) {
      auto default_context = object(device)->platform().default_context();
      ISTHMUS_TRY(default_context);
      actual_context = *std::move(default_context);
    }
    return return_handle(Queue::create(*actual_context, *object(device)), queue);
  });
}

isthmus_status_t isthmus_queue_default(isthmus_device_t* device, isthmus_queue_t** queue) noexcept {
  return driver_entry(ISTHMUS_NEEDS(queue), [&]() -> Result<void> {
    auto* actual_device = object(device);
    if (actual_device == nullptr) {
      auto default_device = find_device("");
      ISTHMUS_TRY(default_device);
      actual_device = *default_device;
    }
    return return_handle(Platform::default_queue(*actual_device), queue);
  });
}

isthmus_status_t isthmus_queue_adopt(isthmus_device_t* device, void* native,
                                     isthmus_owner_t raw_owner, isthmus_queue_t** queue) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(device, native, queue), [&]() -> Result<void> {
    return return_handle(
        object(device)->platform().adopt_queue(*object(device), native, std::move(owner)), queue);
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

isthmus_status_t isthmus_queue_info(const isthmus_queue_t* queue,
                                    isthmus_queue_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(queue, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    info->device = handle(&object(queue)->device());
    info->context = handle(&object(queue)->context());
    info->key = object(queue)->key();
    return {};
  });
}

uintptr_t isthmus_queue_key(const isthmus_queue_t* queue) noexcept {
  return queue == nullptr ? 0 : object(queue)->key();
}

isthmus_status_t isthmus_queue_export_native(isthmus_queue_t* queue, void** native) noexcept {
  return entry(ISTHMUS_NEEDS(queue, native), [&]() -> Result<void> {
    return return_value(object(queue)->export_handle(), native);
  });
}

int isthmus_queue_idle(isthmus_queue_t* queue) noexcept {
  return queue != nullptr && !os::is_forked_child() && object(queue)->idle() ? 1 : 0;
}

isthmus_status_t isthmus_queue_wait(isthmus_queue_t* queue, int64_t timeout_ns) noexcept {
  const auto wait = [&] { return object(queue)->wait(os::deadline_after(timeout_ns)); };
  // The releases may take longer than a timeout allows.
  return timeout_ns < 0 ? entry_after_releases(ISTHMUS_NEEDS(queue), wait)
                        : entry(ISTHMUS_NEEDS(queue), wait);
}

isthmus_status_t isthmus_queue_pending(isthmus_queue_t* queue, isthmus_event_t** event) noexcept {
  return entry_after_releases(ISTHMUS_NEEDS(queue, event), [&]() -> Result<void> {
    return return_handle(object(queue)->pending(), event);
  });
}

isthmus_status_t isthmus_queue_fence(isthmus_queue_t* queue, isthmus_event_t* const* after,
                                     size_t after_count, isthmus_event_t** event) noexcept {
  return entry(ISTHMUS_NEEDS(queue, event), [&]() -> Result<void> {
    auto dependencies = events_of(after, after_count);
    ISTHMUS_TRY(dependencies);
    return return_handle(object(queue)->fence(*dependencies), event);
  });
}

isthmus_status_t isthmus_queue_mark(isthmus_queue_t* queue, isthmus_event_t** event) noexcept {
  return entry(ISTHMUS_NEEDS(queue, event),
               [&]() -> Result<void> { return return_handle(object(queue)->mark(), event); });
}

isthmus_status_t isthmus_queue_close(isthmus_queue_t* queue) noexcept {
  return entry(ISTHMUS_NEEDS(queue), [&]() -> Result<void> {
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
                                      isthmus_owner_t raw_owner, isthmus_buffer_t* const* buffers,
                                      size_t buffer_count, isthmus_event_t* const* after,
                                      size_t after_count, isthmus_event_t** event) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(queue, function), [&]() -> Result<void> {
    ISTHMUS_TRY(check_array(buffers, "buffers", buffer_count));
    auto dependencies = events_of(after, after_count);
    ISTHMUS_TRY(dependencies);
    FunctionArguments arguments;
    for (size_t index = 0; index < buffer_count; ++index) {
      if (buffers[index] == nullptr) {
        return null_pointer_error("buffers[index]");
      }
      ISTHMUS_TRY(arguments.add(*object(queue), *object(buffers[index])));
    }
    FunctionWait wait;
    auto completion =
        submit_function(*object(queue), function, std::move(owner), std::move(arguments),
                        *std::move(dependencies), event == nullptr ? &wait : nullptr);
    ISTHMUS_TRY(completion);
    if (event == nullptr) {
      return (*completion)->wait_unchecked(std::nullopt);
    }
    (*completion)->log_if_dropped();
    return return_handle(std::move(completion), event);
  });
}

void isthmus_shutdown_host_functions() noexcept {
  if (!os::is_forked_child()) {
    stop_functions();
  }
}
