// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/platform.hpp"

#include "backend/cuda/context.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/device.hpp"
#include "backend/cuda/event.hpp"
#include "backend/cuda/library.hpp"
#include "backend/cuda/open.hpp"
#include "backend/cuda/queue.hpp"
#include "backend/cuda/thread_queues.hpp"
#include "backend/driver_library.hpp"
#include "core/sizes.hpp"
#include "core/text.hpp"

namespace isthmus::cuda {

Platform::Platform(PlatformProperties properties, const Api& calls, std::string& reasons)
    : isthmus::Platform{std::move(properties)}, calls_{calls} {
  int count = 0;
  if (const auto outcome = calls_.device_count(&count); outcome != cu::k_success) {
    reasons = call_failed("cuDeviceGetCount", outcome).message();
  }
  for (int index = 0; index < count; ++index) {
    CUdevice ordinal = 0;
    const auto outcome = calls_.get_device(&ordinal, index);
    auto description =
        outcome == cu::k_success ? describe(calls_, ordinal) : call_failed("cuDeviceGet", outcome);
    if (description) {
      add(std::make_unique<Device>(*this, calls_, *std::move(description), ordinal));
    } else {
      reasons += (reasons.empty() ? "" : "; ") + std::string{description.failure().message()};
    }
  }
}

Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* platform_owner) {
  return Ref<isthmus::Context>{make_ref<cuda::Context>(std::move(members), platform_owner)};
}

Result<Ref<isthmus::Context>> Platform::adopt_context(isthmus::Device& member, void* native,
                                                      Owner) {
  auto primary = static_cast<Device&>(member).primary();
  ISTHMUS_TRY(primary);
  if (native != *primary) {
    return fail(
        native == nullptr ? ISTHMUS_ERROR_INVALID_ARGUMENT : ISTHMUS_ERROR_UNSUPPORTED,
        "{} is not the primary context of {}, which is {}: only a primary context can be adopted",
        native, member.properties().filter, static_cast<void*>(*primary));
  }
  return default_context();
}

namespace {

Result<Ref<isthmus::Queue>> own_queue(Device& device, CUstream handle) {
  if (auto queue = device.streams().find(handle)) {
    return queue;
  }
  return fail(ISTHMUS_ERROR_CLOSED,
              "the stream {} of {} belonged to a queue of this library that no longer exists: keep "
              "the queue alive while its handle is in use",
              static_cast<void*>(handle), device.properties().filter);
}

Error check_stream(const Device& device, CUcontext primary, CUstream handle) {
  const ContextGuard guard{device.calls(), primary};
  CUcontext context = nullptr;
  const auto outcome = device.calls().stream_context(handle, &context);
  // These errors concern the stream, not the primary context.
  if (outcome == cu::k_error_INVALID_CONTEXT || outcome == cu::k_error_INVALID_HANDLE ||
      outcome == cu::k_error_CONTEXT_IS_DESTROYED) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a stream of {}, or was destroyed: cuStreamGetCtx: {} ({})",
                static_cast<void*>(handle), device.properties().filter, code_name(outcome),
                outcome);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuStreamGetCtx", outcome);
  }
  if (context != primary) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the stream {} does not belong to the primary context of {}",
                static_cast<void*>(handle), device.properties().filter);
  }
  return {};
}

// Always the same queue until it is closed.
Result<Ref<isthmus::Queue>> current_thread_queue(isthmus::Context& context, Device& device) {
  auto own_queues = ThreadQueues::current(device);
  ISTHMUS_TRY(own_queues);
  if (auto queue = (*own_queues)->find_open(device)) {
    return queue;
  }
  Ref<isthmus::Queue> queue{
      make_ref<cuda::Queue>(context, device, OwnerThread{(*own_queues)->thread()})};
  (*own_queues)->put(queue);
  return queue;
}

}  // namespace

Result<Ref<isthmus::Queue>> Platform::adopt_queue(isthmus::Device& member, void* native,
                                                  Owner owner) {
  auto& device = static_cast<Device&>(member);
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} means the legacy or the per-thread default stream, depending on how the "
                "program was compiled: pass CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2)",
                native);
  }
  auto* const handle = static_cast<CUstream>(native);
  if (device.streams().has(handle)) {
    return own_queue(device, handle);
  }
  auto primary = device.primary();
  ISTHMUS_TRY(primary);
  auto shared = default_context();
  ISTHMUS_TRY(shared);
  if (handle == per_thread_stream()) {
    return current_thread_queue(**shared, device);
  }
  if (auto error = check_stream(device, *primary, handle)) {
    return error;
  }
  return Ref<isthmus::Queue>{make_ref<cuda::Queue>(**shared, device, handle, std::move(owner))};
}

Result<std::vector<Ref<isthmus::Platform>>> open() {
  const auto configured = driver_library("cuda");
  auto opened = open_library(configured.empty() ? "libcuda.so.1" : configured.c_str());
  ISTHMUS_TRY(opened);
  int version = 0;
  static_cast<void>(opened->calls.driver_version(&version));
  PlatformProperties platform_properties{
      .backend = "cuda",
      .name = "NVIDIA CUDA",
      .vendor = "NVIDIA",
      .version = formatted("{}.{}", version / 1000, version % 1000 / 10),
      .library = opened->path};
  std::string reasons;
  // Never deleted: this first reference is never released.
  auto* platform = new Platform(std::move(platform_properties), opened->calls, reasons);
  if (platform->devices().empty()) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}: {}", opened->path,
                reasons.empty() ? "the driver lists no device" : reasons);
  }
  return std::vector<Ref<isthmus::Platform>>{Ref<isthmus::Platform>{platform}};
}

bool owns_event(Event& candidate) noexcept {
  return dynamic_cast<Operation*>(&candidate) != nullptr;
}

}  // namespace isthmus::cuda
