// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of an object of isthmus.compat.dpctl, as a block that the object keeps alive.
//
// The block is owned as dpctl owns its memory, by a std::shared_ptr, so that views and C++ programs
// share it.

#include <atomic>

#include "dpctl/layout.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {

// New memory is used on an internal queue, which has no external work. Once its address was passed
// to dpctl or to other code, its SYCL queue may have external work: from then on, operations of
// Isthmus and uses by the next owner of the memory are ordered after that work.
//
// Memory of dpctl's own objects is adopted on first use: most objects are created only to be passed
// on.
//
// `memory` (if it was null) and `exported_view` are each set once, by a compare-exchange; the
// thread that loses releases its own result. The exchange releases and readers acquire, so a reader
// of the pointer sees the finished object.
struct DpctlBlock {
  isthmus_buffer_t* memory;     // null while `adopted` owns it and it was not used yet
  isthmus_queue_t* sycl_queue;  // the SYCL queue; null for adopted memory, which is on it already
  isthmus_buffer_t* exported_view =
      nullptr;                      // the memory on `sycl_queue`, once its address was exported
  std::shared_ptr<void> adopted{};  // dpctl's owner

  // Runs when the last shared pointer is destroyed, on any thread.
  void operator()(void*) noexcept;
};

// The owner of the object's memory: its own or, for a view of dpctl's classes, that of the object
// of Isthmus that it refers to. Null for memory without a shared owner.
[[nodiscard]] const std::shared_ptr<void>* owner_of(DpctlMemory& object) noexcept;
// The block of the object's memory; null for memory that dpctl owns.
[[nodiscard]] DpctlBlock* dpctl_block_of(DpctlMemory& object) noexcept;
// The same, but throws ValueError if there is no block.
[[nodiscard]] DpctlBlock& require_block(DpctlMemory& object);
// Records that the address was exported. Thread-safe. If the record cannot be allocated, the block
// is never freed.
void expose_address(DpctlBlock& block) noexcept;

// The object's memory as the endpoint of a blocking operation.
[[nodiscard]] Endpoint dpctl_endpoint(DpctlMemory& object);
// An object of isthmus.memory over the same memory, on the queue that currently uses it.
[[nodiscard]] nb::object memory_of(DpctlMemory& object);

}  // namespace isthmus::python
