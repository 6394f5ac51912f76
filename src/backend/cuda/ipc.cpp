// SPDX-License-Identifier: Apache-2.0
// Shares memory between processes by CUDA's legacy IPC, whose handles represent whole allocations
// of cuMemAlloc. Legacy IPC does not support remappable, managed or pinned memory, nor memory of
// the driver's other allocators.

#include <algorithm>

#include "backend/cuda/context.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/pointer.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {
namespace {

// Whether the error concerns the handle and not the device.
bool is_handle_error(CUresult outcome) noexcept {
  return outcome == cu::k_error_INVALID_VALUE || outcome == cu::k_error_INVALID_HANDLE ||
         outcome == cu::k_error_NOT_FOUND || outcome == cu::k_error_MAP_FAILED;
}

Error open_failed(const Device& device, CUresult outcome) {
  const auto& filter = device.properties().filter;
  if (outcome == cu::k_error_INVALID_CONTEXT) {  // CUDA's code for this case
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} cannot open a handle in the process that created it: cuIpcOpenMemHandle: {} "
                "({}); send it to another process, and use the buffer itself here",
                filter, code_name(outcome), outcome);
  }
  if (is_handle_error(outcome)) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "{} cannot open the IPC handle: cuIpcOpenMemHandle: {} ({}): pass it unchanged "
        "from a process of this machine that still owns the memory, and open it on the same "
        "device",
        filter, code_name(outcome), outcome);
  }
  return call_failed("cuIpcOpenMemHandle", outcome);
}

}  // namespace

Result<SharedAllocation> Context::share_memory(const void* pointer) {
  const auto& member = any_device();
  const auto& calls = member.calls();
  auto primary = member.primary();
  ISTHMUS_TRY(primary);
  const ContextGuard query_guard{calls, *primary};
  const auto attributes = query_pointer(calls, pointer);
  auto* const device = Device::find(platform(), attributes.device);
  const ContextGuard guard{calls, device != nullptr ? device->primary_or_null() : *primary};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  CUipcMemHandle handle;
  const auto outcome = calls.share_memory(&handle, to_deviceptr(attributes.base));
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
  SharedAllocation shared;
  std::copy_n(handle.reserved, sizeof handle.reserved, shared.handle.bytes.begin());
  shared.offset = address(pointer) - address(attributes.base);
  return shared;
}

Result<void*> Context::open_memory(isthmus::Device& device, const isthmus::IpcHandle& handle) {
  auto& cuda_device = static_cast<Device&>(device);
  auto primary = cuda_device.primary();
  ISTHMUS_TRY(primary);
  const ContextGuard guard{cuda_device.calls(), *primary};
  if (guard.outcome() != cu::k_success) {
    return call_failed("cuCtxSetCurrent", guard.outcome());
  }
  CUipcMemHandle ipc_handle;
  std::copy_n(handle.bytes.begin(), sizeof ipc_handle.reserved, ipc_handle.reserved);
  CUdeviceptr base = 0;
  const auto outcome =
      cuda_device.calls().open_memory(&base, ipc_handle, cu::k_ipc_lazy_peer_access);
  if (outcome != cu::k_success) {
    return open_failed(cuda_device, outcome);
  }
  return to_pointer(base);
}

void Context::close_memory(isthmus::Device& device, void* base) noexcept {
  if (os::drivers_unavailable()) {
    return;
  }
  auto& cuda_device = static_cast<Device&>(device);
  const ContextGuard guard{cuda_device.calls(), cuda_device.primary_or_null()};
  if (guard.outcome() == cu::k_success) {
    cuda_device.calls().close_memory(to_deviceptr(base));
  }
}

}  // namespace isthmus::cuda
