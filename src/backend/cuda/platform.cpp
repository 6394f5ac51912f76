// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/platform.hpp"

#include <algorithm>

#include "backend/cuda/context.hpp"
#include "backend/cuda/current.hpp"
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
    Ordinal found_at = 0;
    const auto outcome = calls_.get_device(&found_at, index);
    auto found =
        outcome == cu::k_success ? describe(calls_, found_at) : call_failed("cuDeviceGet", outcome);
    if (found) {
      add(std::make_unique<Device>(*this, calls_, *std::move(found), found_at));
    } else {
      reasons += (reasons.empty() ? "" : "; ") + std::string{found.failure().message()};
    }
  }
}

Device* Platform::find(Ordinal index) const noexcept {
  const auto all = devices();
  const auto found = std::find_if(all.begin(), all.end(), [=](const auto& member) {
    return static_cast<const Device&>(*member).index() == index;
  });
  return found != all.end() ? static_cast<Device*>(found->get()) : nullptr;
}

Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* whole) {
  return Ref<isthmus::Context>{make_ref<cuda::Context>(*this, std::move(members), whole)};
}

Result<Ref<isthmus::Context>> Platform::adopt_context(isthmus::Device& member, void* native,
                                                      Owner) {
  auto primary = static_cast<Device&>(member).primary();
  ISTHMUS_TRY(primary);
  if (native != *primary) {
    return fail(native == nullptr ? ISTHMUS_ERROR_INVALID_ARGUMENT : ISTHMUS_ERROR_UNSUPPORTED,
                "{} is not the primary context of {}, {}: no other can be adopted", native,
                member.properties().filter, static_cast<void*>(*primary));
  }
  return default_context();
}

namespace {

Result<Ref<isthmus::Queue>> own_queue(Device& device, StreamHandle handle) {
  if (auto known = device.streams().find(handle)) {
    return known;
  }
  return fail(ISTHMUS_ERROR_CLOSED,
              "the stream {} of {} belonged to a queue of this library that no longer exists",
              static_cast<void*>(handle), device.properties().filter);
}

Error refuse_stream(const Device& device, ContextHandle primary, StreamHandle handle) {
  const MadeCurrent here{device.calls(), primary};
  ContextHandle home = nullptr;
  const auto outcome = device.calls().stream_context(handle, &home);
  if (outcome == cu::k_error_INVALID_CONTEXT || outcome == cu::k_error_INVALID_HANDLE ||
      outcome == cu::k_error_CONTEXT_IS_DESTROYED) {  // belongs to another context, which is valid
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a stream of {}, or was destroyed: cuStreamGetCtx: {} ({})",
                static_cast<void*>(handle), device.properties().filter, code_name(outcome),
                outcome);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuStreamGetCtx", outcome);
  }
  if (home != primary) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the stream {} does not belong to the primary context of {}",
                static_cast<void*>(handle), device.properties().filter);
  }
  return {};
}

}  // namespace

Result<Ref<isthmus::Queue>> Platform::adopt_queue(isthmus::Device& member, void* native,
                                                  Owner keep) {
  auto& where = static_cast<Device&>(member);
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} means the legacy or the per-thread default stream, depending on how the "
                "program was compiled: pass CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2)",
                native);
  }
  auto* const handle = static_cast<StreamHandle>(native);
  if (where.streams().has(handle)) {
    return own_queue(where, handle);
  }
  auto primary = where.primary();
  ISTHMUS_TRY(primary);
  auto shared = default_context();
  ISTHMUS_TRY(shared);
  auto& home = static_cast<cuda::Context&>(**shared);
  if (handle == per_thread_stream()) {
    return own_thread_queue(home, where);
  }
  if (auto refused = refuse_stream(where, *primary, handle)) {
    return refused;
  }
  return Ref<isthmus::Queue>{make_ref<cuda::Queue>(home, where, handle, std::move(keep))};
}

Result<std::vector<Ref<isthmus::Platform>>> open() {
  const auto named = driver_library("cuda");
  auto opened = open_library(named.empty() ? "libcuda.so.1" : named.c_str());
  ISTHMUS_TRY(opened);
  int version = 0;
  static_cast<void>(opened->calls.driver_version(&version));
  PlatformProperties told{.backend = "cuda",
                          .name = "NVIDIA CUDA",
                          .vendor = "NVIDIA",
                          .version = formatted("{}.{}", version / 1000, version % 1000 / 10),
                          .library = opened->path};
  std::string reasons;
  // Never deleted: this first reference is never released.
  auto* made = new Platform(std::move(told), opened->calls, reasons);
  if (made->devices().empty()) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}: {}", opened->path,
                reasons.empty() ? "it lists no device" : reasons);
  }
  return std::vector<Ref<isthmus::Platform>>{Ref<isthmus::Platform>{made}};
}

bool made(Event& candidate) noexcept { return dynamic_cast<Operation*>(&candidate) != nullptr; }

}  // namespace isthmus::cuda
