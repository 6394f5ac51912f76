// SPDX-License-Identifier: Apache-2.0
// Memory shared between processes, by CUDA's legacy IPC: handles of whole allocations of
// cuMemAlloc. It does not support remappable, managed or pinned memory, nor memory of the driver's
// other allocators.

#include <algorithm>

#include "backend/cuda/context.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/pointer.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

// Whether the error concerns the handle and not the device.
bool is_of_handle(Code outcome) noexcept {
  return outcome == cu::k_error_INVALID_VALUE || outcome == cu::k_error_INVALID_HANDLE ||
         outcome == cu::k_error_NOT_FOUND || outcome == cu::k_error_MAP_FAILED;
}

Error not_opened(const Device& device, Code outcome) {
  const auto& filter = device.properties().filter;
  if (outcome == cu::k_error_INVALID_CONTEXT) {  // CUDA's code for this case
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} cannot open a handle in the process that created it: cuIpcOpenMemHandle: {} "
                "({}); send it to another process, and use the buffer itself here",
                filter, code_name(outcome), outcome);
  }
  if (is_of_handle(outcome)) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "{} does not know that handle: cuIpcOpenMemHandle: {} ({}); it must come unchanged from a "
        "process of this machine that still owns the memory, and be opened on the same device",
        filter, code_name(outcome), outcome);
  }
  return call_failed("cuIpcOpenMemHandle", outcome);
}

}  // namespace

Result<SharedPlace> Context::share_memory(const void* pointer) {
  auto primary = any().primary();
  ISTHMUS_TRY(primary);
  const MadeCurrent one{driver_.calls(), *primary};
  const auto told = ask_pointer(driver_.calls(), pointer);
  auto* const home = driver_.find(told.where);
  const MadeCurrent here{driver_.calls(), home != nullptr ? home->known_primary() : *primary};
  if (here.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", here.outcome());
  }
  IpcHandle made;
  const auto outcome = driver_.calls().share_memory(&made, place_of(told.base));
  if (outcome == cu::k_error_INVALID_VALUE) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "CUDA shares only device memory of cuMemAlloc with other processes, and the memory at {} "
        "has another origin: cuIpcGetMemHandle: {} ({}); memory of arrays and of a pool can move, "
        "unless the pool was created with remap=False (ISTHMUS_POOL_NO_REMAP): create the buffer "
        "without a resource, or from such a pool",
        pointer, code_name(outcome), outcome);
  }
  if (outcome != cu::k_success) {
    return call_failed("cuIpcGetMemHandle", outcome);
  }
  SharedPlace found;
  std::copy_n(made.bytes, sizeof made.bytes, found.of.bytes.begin());
  found.offset = address(pointer) - address(told.base);
  return found;
}

Result<void*> Context::open_memory(isthmus::Device& device, const isthmus::IpcHandle& handle) {
  auto& home = static_cast<Device&>(device);
  auto primary = home.primary();
  ISTHMUS_TRY(primary);
  const MadeCurrent here{home.calls(), *primary};
  if (here.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", here.outcome());
  }
  IpcHandle wanted;
  std::copy_n(handle.bytes.begin(), sizeof wanted.bytes, wanted.bytes);
  Place base = 0;
  const auto outcome = home.calls().open_memory(&base, wanted, cu::k_open_for_peers);
  if (outcome != cu::k_success) {
    return not_opened(home, outcome);
  }
  return pointer_to(base);
}

void Context::close_memory(isthmus::Device& device, void* base) noexcept {
  if (os::drivers_are_gone()) {
    return;
  }
  auto& home = static_cast<Device&>(device);
  const MadeCurrent here{home.calls(), home.known_primary()};
  if (here.outcome() == cu::k_success) {
    home.calls().close_memory(place_of(base));
  }
}

}  // namespace isthmus::cuda
