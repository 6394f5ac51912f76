#include "backend/opencl/lingering_queue.hpp"

#include "backend/library_threads.hpp"
#include "os/process.hpp"

namespace isthmus::opencl {
namespace {

// Not finished where its owner still has it, who may wait for it meanwhile, which Intel's CPU
// runtime cannot take (`is_asked_on_demand`).
void finish_and_release_here(const api& calls, queue_handle handle) noexcept {
  const os::driver_call call;
  if (!call) {
    return;
  }
  number references = 1;
  calls.get_queue_info(handle, cl::k_queue_references, sizeof references, &references, nullptr);
  if (references == 1) {
    calls.finish(handle);
  }
  calls.release_queue(handle);
}

}  // namespace

void finish_and_release(const api& calls, queue_handle handle) noexcept try {
  run_on_library_thread([&calls, handle] { finish_and_release_here(calls, handle); }, [](error) {});
} catch (const std::bad_alloc&) {  // as without a thread: it is not given back
}

}  // namespace isthmus::opencl
