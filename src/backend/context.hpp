// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context: what USM belongs to. A pointer is valid on the queues of its own context only.
//
// Thread-safe. Checks arguments here and leaves driver calls to the backend's `do_` functions.

#include <array>
#include <span>
#include <vector>

#include "backend/chunk_source.hpp"
#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/owner.hpp"

namespace isthmus {

class platform;
class queue;

// What a driver reports about a pointer.
struct pointer_facts {
  usm_kind kind = ISTHMUS_KIND_UNKNOWN;
  void* base = nullptr;    // null if the driver does not report it
  std::size_t nbytes = 0;  // of the whole allocation; 0 if the driver does not report it
  device* home = nullptr;
};

struct allocation_request {
  usm_kind kind = ISTHMUS_KIND_DEVICE;
  std::size_t nbytes = 0;
  std::size_t alignment = 0;  // 0: the device's base alignment
  bool write_combined = false;
};

// Identifies an allocation in other processes.
struct ipc_handle {
  std::array<unsigned char, 64> bytes{};
};
// An address within an exported allocation.
struct shared_place {
  ipc_handle of;
  std::size_t offset = 0;  // from the allocation's base
};

class context : public ref_counted {
 public:
  // A part of the platform `whole`, which outlives it. If `whole` is null, a separate object that
  // keeps its platform alive.
  context(std::vector<device*> devices, platform* whole);
  ~context() override;

  [[nodiscard]] std::span<device* const> devices() const noexcept { return devices_; }
  [[nodiscard]] platform& home() const noexcept { return devices_.front()->home(); }
  [[nodiscard]] bool has(const device& candidate) const noexcept;
  [[nodiscard]] bool is_default() const noexcept { return !keep_; }

  // The error that `allocate` would return without calling the driver.
  [[nodiscard]] error check(const device& where, const allocation_request& request) const;
  // Every argument is checked. Post: the pointer is aligned, and valid in this context only.
  // Errors: INVALID_ARGUMENT, UNSUPPORTED (kind), OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] result<void*> allocate(device& where, const allocation_request& request);
  // Pre: `pointer` came from `allocate` with this kind and size, and nothing uses it any more. Not
  // called from a continuation: it may call the driver, which may block.
  void deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept;
  // What the driver knows of a pointer, which may point inside an allocation. Kind UNKNOWN if the
  // driver does not know it.
  [[nodiscard]] virtual pointer_facts query(const void* pointer) noexcept = 0;

  // Whether all host memory counts as host-kind USM here. True on the host itself.
  [[nodiscard]] virtual bool takes_host_memory() const noexcept { return false; }
  // The address at which a function run by a queue may access the bytes at `pointer`. Differs from
  // `pointer` if device memory has a second mapping for the device's own accesses.
  [[nodiscard]] virtual void* function_address(void* pointer) noexcept { return pointer; }

  // The source of movable memory of this kind, owned by the context. Null if the driver has none.
  [[nodiscard]] virtual chunk_source* chunks(device&, usm_kind) noexcept { return nullptr; }

  [[nodiscard]] result<ref<queue>> create_queue(device& where);

  // Pre of these three: ISTHMUS_CAN_IPC. UNSUPPORTED for memory that the driver cannot share.
  [[nodiscard]] virtual result<shared_place> share_memory(const void* pointer);
  // The base of memory that another process exported. Opening the same memory again returns the
  // same base, and every open needs a close. INVALID_ARGUMENT if `of` is not a handle, and for a
  // handle that this process exported.
  [[nodiscard]] virtual result<void*> open_memory(device& where, const ipc_handle& of);
  // Waits for all work on the device. Pre: nothing uses the memory any more.
  virtual void close_memory(device& where, void* base) noexcept;

  // Pre: `native` is a live event of this driver, of this context.
  [[nodiscard]] virtual result<ref<event>> adopt_event(void* native, owner keep);

  // Contexts with the same key are the same driver context.
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  [[nodiscard]] bool is_same_as(const context& other) const noexcept {
    return this == &other || key() == other.key();
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  // The cl_context that underlies this context of another backend, retained once for the caller.
  [[nodiscard]] virtual result<void*> retain_opencl() const;

 protected:
  // Pre: the kind is offered, 0 < nbytes <= max_allocation_bytes, alignment a power of two within
  // the device's, never 0.
  [[nodiscard]] virtual result<void*> do_allocate(device& where,
                                                  const allocation_request& request) = 0;
  virtual void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept = 0;
  // `part`: the queue becomes a part of the platform, like a device's default queue.
  [[nodiscard]] virtual result<ref<queue>> make_queue(device& where, bool part) = 0;

 private:
  friend class platform;
  std::vector<device*> devices_;
  ref<platform> keep_;
};

}  // namespace isthmus
