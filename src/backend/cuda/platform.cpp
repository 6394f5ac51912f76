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

platform::platform(platform_properties properties, const api& calls, std::string& reasons)
    : isthmus::platform{std::move(properties)}, calls_{calls} {
  int count = 0;
  if (const auto outcome = calls_.device_count(&count); outcome != cu::k_success) {
    reasons = call_failed("cuDeviceGetCount", outcome).message();
  }
  for (int index = 0; index < count; ++index) {
    ordinal found_at = 0;
    const auto outcome = calls_.get_device(&found_at, index);
    auto found =
        outcome == cu::k_success ? describe(calls_, found_at) : call_failed("cuDeviceGet", outcome);
    if (found) {
      add(std::make_unique<device>(*this, calls_, *std::move(found), found_at));
    } else {
      reasons += (reasons.empty() ? "" : "; ") + std::string{found.failure().message()};
    }
  }
}

device* platform::find(ordinal index) const noexcept {
  const auto all = devices();
  const auto found = std::find_if(all.begin(), all.end(), [=](const auto& member) {
    return static_cast<const device&>(*member).index() == index;
  });
  return found != all.end() ? static_cast<device*>(found->get()) : nullptr;
}

result<ref<isthmus::context>> platform::make_context(std::vector<isthmus::device*> members,
                                                     isthmus::platform* whole) {
  return ref<isthmus::context>{make_ref<cuda::context>(*this, std::move(members), whole)};
}

result<ref<isthmus::context>> platform::adopt_context(isthmus::device& member, void* native,
                                                      owner) {
  auto primary = static_cast<device&>(member).primary();
  ISTHMUS_TRY(primary);
  if (native != *primary) {
    return fail(native == nullptr ? ISTHMUS_ERROR_INVALID_ARGUMENT : ISTHMUS_ERROR_UNSUPPORTED,
                "{} is not the primary context of {}, {}: no other can be adopted", native,
                member.properties().filter, static_cast<void*>(*primary));
  }
  return default_context();
}

namespace {

result<ref<isthmus::queue>> own_queue(device& where, stream_handle handle) {
  if (auto known = where.streams().find(handle)) {
    return known;
  }
  return fail(ISTHMUS_ERROR_CLOSED,
              "the stream {} of {} belonged to a queue of this library that no longer exists",
              static_cast<void*>(handle), where.properties().filter);
}

error refuse_stream(const device& where, context_handle primary, stream_handle handle) {
  const made_current here{where.calls(), primary};
  context_handle home = nullptr;
  const auto outcome = where.calls().stream_context(handle, &home);
  if (outcome == cu::k_error_INVALID_CONTEXT || outcome == cu::k_error_INVALID_HANDLE ||
      outcome == cu::k_error_CONTEXT_IS_DESTROYED) {  // belongs to another context, which is valid
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a stream of {}, or was destroyed: cuStreamGetCtx: {} ({})",
                static_cast<void*>(handle), where.properties().filter, code_name(outcome), outcome);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuStreamGetCtx", outcome);
  }
  if (home != primary) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the stream {} does not belong to the primary context of {}",
                static_cast<void*>(handle), where.properties().filter);
  }
  return {};
}

}  // namespace

result<ref<isthmus::queue>> platform::adopt_queue(isthmus::device& member, void* native,
                                                  owner keep) {
  auto& where = static_cast<device&>(member);
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} means the legacy or the per-thread default stream, depending on how the "
                "program was compiled: pass CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2)",
                native);
  }
  auto* const handle = static_cast<stream_handle>(native);
  if (where.streams().has(handle)) {
    return own_queue(where, handle);
  }
  auto primary = where.primary();
  ISTHMUS_TRY(primary);
  auto shared = default_context();
  ISTHMUS_TRY(shared);
  auto& home = static_cast<cuda::context&>(**shared);
  if (handle == per_thread_stream()) {
    return own_thread_queue(home, where);
  }
  if (auto refused = refuse_stream(where, *primary, handle)) {
    return refused;
  }
  return ref<isthmus::queue>{make_ref<cuda::queue>(home, where, handle, std::move(keep))};
}

result<std::vector<ref<isthmus::platform>>> open() {
  const auto named = driver_library("cuda");
  auto opened = open_library(named.empty() ? "libcuda.so.1" : named.c_str());
  ISTHMUS_TRY(opened);
  int version = 0;
  static_cast<void>(opened->calls.driver_version(&version));
  platform_properties told{.backend = "cuda",
                           .name = "NVIDIA CUDA",
                           .vendor = "NVIDIA",
                           .version = formatted("{}.{}", version / 1000, version % 1000 / 10),
                           .library = opened->path};
  std::string reasons;
  // Never deleted: this first reference is never released.
  auto* made = new platform(std::move(told), opened->calls, reasons);
  if (made->devices().empty()) {
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}: {}", opened->path,
                reasons.empty() ? "it lists no device" : reasons);
  }
  return std::vector<ref<isthmus::platform>>{ref<isthmus::platform>{made}};
}

bool made(event& candidate) noexcept { return dynamic_cast<operation*>(&candidate) != nullptr; }

}  // namespace isthmus::cuda
