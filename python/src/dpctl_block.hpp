// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of an object of isthmus.compat.dpctl, which keeps it alive.
//
// It is stored where dpctl stores the owner of its memory, a std::shared_ptr, so that views of
// dpctl and of C++ programs share it.

#include <atomic>

#include "dpctl_layout.hpp"
#include "transfers.hpp"

namespace isthmus::python {

// New memory is used on an internal queue, which has no external work. Once its address was passed
// to dpctl or to other code, its SYCL queue may have external work: from then on operations of
// Isthmus are ordered after that, and so is the next owner of the memory.
//
// Memory of dpctl's own objects is adopted on first use: most objects are created only to be passed
// on.
//
// `memory` (if it was null) and `exported_view` are each set once, by a compare-exchange; the
// thread that loses releases its own result. The exchange releases and readers acquire, so a reader
// of the pointer sees the finished object.
struct DpctlBlock {
  isthmus_buffer_t* memory;     // null: `adopted` owns it, and it was not used yet
  isthmus_queue_t* sycl_queue;  // the SYCL queue; null for adopted memory, which is on it already
  isthmus_buffer_t* exported_view =
      nullptr;                      // the memory on `sycl_queue`, once its address was exported
  std::shared_ptr<void> adopted{};  // dpctl's owner

  // Runs when the last shared pointer is destroyed, on any thread.
  void operator()(void*) noexcept;
};

// Null for memory that dpctl owns.
[[nodiscard]] DpctlBlock* dpctl_block_of(const DpctlMemory& object) noexcept;
// ValueError if there is none.
[[nodiscard]] DpctlBlock& require_block(const DpctlMemory& object);
// Records that the address was exported. Any thread. If there is no memory to record it, the block
// is never freed.
void expose_address(DpctlBlock& block) noexcept;

// The endpoint of an operation that blocks.
[[nodiscard]] Place dpctl_place(const DpctlMemory& object);
// A Buffer of isthmus.memory over it, on the queue that it is used on now.
[[nodiscard]] nb::object memory_of(const DpctlMemory& object);

}  // namespace isthmus::python
