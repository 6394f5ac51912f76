// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/lingering_queue.hpp"

#include <memory>
#include <utility>

#include "backend/call_of_any_thread.hpp"
#include "backend/lingering.hpp"
#include "backend/opencl/gate.hpp"
#include "core/sizes.hpp"

namespace isthmus::opencl {

void lingering_queue::begin(ref<context> home, const device& where, queue_handle handle,
                            wait_list running) {
  begin(std::move(home), where, handle, running, false);
}

void lingering_queue::begin(ref<context> home, const device& where, queue_handle handle,
                            wait_list running, bool is_over) {
  const auto held = std::make_shared<lingering_queue>(std::move(home), where, handle, is_over);
  try {
    linger(address(handle), running, held);
  } catch (const std::bad_alloc&) {
    held->handle_ = nullptr;
    throw;
  }
}

lingering_queue::lingering_queue(ref<context> home, const device& where, queue_handle handle,
                                 bool is_over) noexcept
    : home_{std::move(home)}, where_{where}, handle_{handle}, is_over_{is_over} {
  if (where.traits().wants_farewell) {
    farewell::only().add(*this);
  }
}

lingering_queue::~lingering_queue() {
  const call_of_any_thread counted;
  if (handle_ != nullptr && counted) {
    if (!is_over_ && is_last()) {
      begin_again();
    } else {
      calls().release_queue(handle_);
    }
  }
  farewell::only().remove(*this);
}

bool lingering_queue::is_last() const noexcept {
  number references = 1;
  calls().get_queue_info(handle_, cl::k_queue_references, sizeof references, &references, nullptr);
  return references == 1;
}

// Its owner may have submitted work before releasing the queue, and can no longer wait for it. A
// barrier reports the end of that work.
void lingering_queue::begin_again() noexcept try {
  std::vector<ref<event>> running;
  auto made = make_ref<operation>(home_->driver(), home_->handle(), where_, gate_list{});
  running.reserve(1);
  operation_events barrier;
  if (calls().enqueue_barrier(handle_, 0, nullptr, &barrier.last) == cl::k_success) {
    calls().flush(handle_);
    made->submitted(barrier);
    running.push_back(std::move(made));
  }
  begin(home_, where_, handle_, running, true);
} catch (const std::bad_alloc&) {  // the reference is leaked
}

}  // namespace isthmus::opencl
