#pragma once
// What a memory object of isthmus.compat.dpctl stands on, and keeps alive.
//
// It lies where dpctl keeps the owner of its memory, a std::shared_ptr, so that views of dpctl's
// and C++ programs share it.

#include <atomic>

#include "dpctl_layout.hpp"
#include "transfers.hpp"

namespace isthmus::python {

// New memory is used on a queue of our own, where nothing of others waits. Once dpctl or anybody
// else is told its address there may be work on its SYCL queue that we do not know: from then on
// our operations come behind that, and so does whoever gets the memory next.
//
// Memory of dpctl's own objects is adopted when it is first used: most objects are made to be
// handed on.
struct dpctl_block {
  isthmus_buffer_t* memory;  // null: `adopted` keeps it, and nobody has used it yet
  isthmus_queue_t* theirs;   // the SYCL queue; null for memory of somebody else's, already there
  isthmus_buffer_t* told = nullptr;  // the memory on `theirs`, once its address was told
  std::shared_ptr<void> adopted{};   // of dpctl's

  // The end of the last shared pointer, on any thread.
  void operator()(void*) noexcept;
};

// Null for memory that is dpctl's own.
[[nodiscard]] dpctl_block* dpctl_block_of(const dpctl_memory& object) noexcept;
// ValueError where there is none.
[[nodiscard]] dpctl_block& require_block(const dpctl_memory& object);
// Any thread. If it cannot be told there is no memory for that, and it is never given back.
void tell_address(dpctl_block& of) noexcept;

// Where it lies, for an operation that blocks.
[[nodiscard]] place dpctl_place(const dpctl_memory& object);
// A Buffer of isthmus.memory over it, on the queue that it is used on now.
[[nodiscard]] nb::object memory_of(const dpctl_memory& object);

}  // namespace isthmus::python
