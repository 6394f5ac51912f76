// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/errors.hpp"

namespace isthmus::cuda {
namespace {

// Whether the error is permanent: every later call on the context fails with the same code.
bool is_device_lost(CUresult failure) noexcept {
  switch (failure) {
    case cu::k_error_INVALID_CONTEXT:
    case cu::k_error_ECC_UNCORRECTABLE:
    case cu::k_error_NVLINK_UNCORRECTABLE:
    case cu::k_error_CONTAINED:
    case cu::k_error_ILLEGAL_ADDRESS:
    case cu::k_error_LAUNCH_TIMEOUT:
    case cu::k_error_CONTEXT_IS_DESTROYED:
    case cu::k_error_ASSERT:
    case cu::k_error_HARDWARE_STACK_ERROR:
    case cu::k_error_ILLEGAL_INSTRUCTION:
    case cu::k_error_MISALIGNED_ADDRESS:
    case cu::k_error_INVALID_ADDRESS_SPACE:
    case cu::k_error_INVALID_PC:
    case cu::k_error_LAUNCH_FAILED:
    case cu::k_error_TENSOR_MEMORY_LEAK:
    case cu::k_error_MPS_RPC_FAILURE:
    case cu::k_error_MPS_CLIENT_TERMINATED:
    case cu::k_error_EXTERNAL_DEVICE: return true;
    default: return false;
  }
}

const char* advice(CUresult failure) noexcept {
  if (is_device_lost(failure)) {
    return "; an earlier operation, of this library or of other code, corrupted the device's "
           "context, or the device was reset: its memory is lost and this process cannot use the "
           "device again: start a new process";
  }
  if (is_capture_error(failure)) {
    return "; a stream is being captured into a graph: allocate, copy and wait before the capture "
           "begins or after it has ended";
  }
  if (failure == cu::k_error_DEINITIALIZED) {
    return "; the driver was shut down, as the process is ending";
  }
  return "";
}

}  // namespace

bool is_capture_error(CUresult failure) noexcept {
  return failure >= cu::k_error_STREAM_CAPTURE_UNSUPPORTED &&
         failure <= cu::k_error_STREAM_CAPTURE_WRONG_THREAD;
}

const char* code_name(CUresult outcome) noexcept {
  switch (outcome) {
    case cu::k_success: return "CUDA_SUCCESS";
#define ISTHMUS_CUDA_NAME(name, number) \
  case number: return "CUDA_ERROR_" #name;
      ISTHMUS_CUDA_ERRORS(ISTHMUS_CUDA_NAME)
#undef ISTHMUS_CUDA_NAME
    default: return "an unknown code";
  }
}

Status status_of(CUresult failure) noexcept {
  if (is_device_lost(failure) || failure == cu::k_error_DEINITIALIZED) {
    return ISTHMUS_ERROR_DEVICE_LOST;
  }
  if (is_capture_error(failure) || failure == cu::k_error_NOT_SUPPORTED) {
    return ISTHMUS_ERROR_UNSUPPORTED;
  }
  return failure == cu::k_error_OUT_OF_MEMORY ? ISTHMUS_ERROR_OUT_OF_MEMORY : ISTHMUS_ERROR_DRIVER;
}

Error call_failed(const char* call, CUresult failure) {
  return fail(status_of(failure), "{} failed: {} ({}){}", call, code_name(failure), failure,
              advice(failure));
}

}  // namespace isthmus::cuda
