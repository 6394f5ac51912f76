#include "backend/cuda/kernel.hpp"

#include "backend/cuda/device.hpp"
#include "backend/cuda/errors.hpp"
#include "backend/cuda/pointer.hpp"

namespace isthmus::cuda {

function_handle kernel::loaded(const api& calls) noexcept {
  if (!asked_.load(std::memory_order_acquire)) {
    const std::lock_guard hold{loading_};
    if (!asked_.load(std::memory_order_relaxed)) {
      module_handle whole = nullptr;
      function_handle found = nullptr;
      auto outcome = calls.load_module(&whole, text_);
      if (outcome == cu::k_success) {
        outcome = calls.find_function(&found, whole, name_);
      }
      if (outcome == cu::k_error_OUT_OF_MEMORY || is_of_capture(outcome)) {
        return nullptr;  // it may be there next time
      }
      function_.store(outcome == cu::k_success ? found : nullptr, std::memory_order_relaxed);
      asked_.store(true, std::memory_order_release);
    }
  }
  return function_.load(std::memory_order_relaxed);
}

namespace {

bool is_seen(const device& where, const pointer_answer& told, place at) noexcept {
  if (told.kind == ISTHMUS_KIND_UNKNOWN ||
      (told.kind == ISTHMUS_KIND_DEVICE && told.where != where.index())) {
    return false;
  }
  number what = cu::k_pointer_on_device;
  place seen = 0;
  void* answer = &seen;
  return where.calls().pointer_attributes(1, &what, &answer, at) == cu::k_success && seen == at;
}

}  // namespace

// Host memory that moves is a piece to the driver for each chunk.
bool kernels_reach(const device& where, const void* pointer, std::size_t nbytes) noexcept {
  const auto end = place_of(pointer) + nbytes;
  for (auto at = place_of(pointer); at < end;) {
    const auto told = ask_pointer(where.calls(), pointer_to(at));
    if (!is_seen(where, told, at)) {
      return false;
    }
    if (told.kind != ISTHMUS_KIND_HOST) {
      return true;
    }
    const auto behind = place_of(told.base) + told.nbytes;
    if (behind <= at) {
      return false;
    }
    at = behind;
  }
  return true;
}

}  // namespace isthmus::cuda
