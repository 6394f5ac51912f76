// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context: the scope of USM allocations. A pointer is valid only on queues of the context in
// which it was allocated.
//
// Thread-safe. The public functions check arguments; the backend's `do_` functions call the driver.

#include <array>
#include <span>
#include <vector>

#include "backend/chunk_source.hpp"
#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/owner.hpp"

namespace isthmus {

class Platform;
class Queue;

// The attributes of a pointer that a driver reports.
struct PointerFacts {
  UsmKind kind = ISTHMUS_KIND_UNKNOWN;
  void* base = nullptr;    // null if the driver does not report it
  std::size_t nbytes = 0;  // of the whole allocation; 0 if the driver does not report it
  Device* device = nullptr;
};

struct AllocationRequest {
  UsmKind kind = ISTHMUS_KIND_DEVICE;
  std::size_t nbytes = 0;
  std::size_t alignment = 0;  // 0: the device's base alignment
  bool write_combined = false;
};

// Identifies an allocation in other processes.
struct IpcHandle {
  std::array<unsigned char, 64> bytes{};
};
// An address within an exported allocation.
struct SharedAllocation {
  IpcHandle handle;
  std::size_t offset = 0;  // from the allocation's base
};

class Context : public RefCounted {
 public:
  // `owning_platform`: the platform of the devices if it owns the context and outlives it. If null,
  // the context is a separate object that keeps its platform alive.
  Context(std::vector<Device*> devices, Platform* owning_platform);
  ~Context() override;

  [[nodiscard]] std::span<Device* const> devices() const noexcept { return devices_; }
  [[nodiscard]] Platform& platform() const noexcept { return devices_.front()->platform(); }
  [[nodiscard]] bool has(const Device& candidate) const noexcept;
  [[nodiscard]] bool is_default() const noexcept { return !device_ref_; }

  // The error that `allocate` would return without calling the driver.
  [[nodiscard]] Error check(const Device& device, const AllocationRequest& request) const;
  // Checks every argument. Post: the pointer is aligned, and valid in this context only. Errors:
  // INVALID_ARGUMENT, UNSUPPORTED (kind), OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] Result<void*> allocate(Device& device, const AllocationRequest& request);
  // `allocate` returned `pointer` for this kind and size, and no operation uses the memory any
  // more. Must not be called from a continuation, since the driver call may block.
  void deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept;
  // Queries the driver for a pointer, which may point inside an allocation. The kind is UNKNOWN if
  // the driver does not recognize the pointer.
  [[nodiscard]] virtual PointerFacts query(const void* pointer) noexcept = 0;

  // Whether this context treats all host memory as USM of host kind. True for the host backend.
  [[nodiscard]] virtual bool takes_host_memory() const noexcept { return false; }
  // The address at which a host function of a queue accesses the bytes at `pointer`. Differs from
  // `pointer` if device memory has a second, accessible mapping.
  [[nodiscard]] virtual void* function_address(void* pointer) noexcept { return pointer; }

  // The source of movable memory of this kind. The context owns it. Null if the driver cannot move
  // memory of this kind.
  [[nodiscard]] virtual ChunkSource* chunks(Device&, UsmKind) noexcept { return nullptr; }

  // For devices with ISTHMUS_CAN_IPC. UNSUPPORTED for memory that the driver cannot share.
  [[nodiscard]] virtual Result<SharedAllocation> share_memory(const void* pointer);
  // Opens memory that another process exported and returns its base. Opening the same memory again
  // returns the same base; every open requires a matching `close_memory`. INVALID_ARGUMENT if
  // `handle` is not a handle, and for a handle that this process exported.
  [[nodiscard]] virtual Result<void*> open_memory(Device& device, const IpcHandle& handle);
  // Waits for all work on the device. No operation uses the memory any more.
  virtual void close_memory(Device& device, void* base) noexcept;

  // `native` is a live event of this driver, of this context.
  [[nodiscard]] virtual Result<Ref<Event>> adopt_event(void* native, Owner owner);

  // Contexts with the same key are the same driver context.
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  [[nodiscard]] bool is_same_as(const Context& other) const noexcept {
    return this == &other || key() == other.key();
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  // The cl_context that underlies this context of another backend, retained once for the caller.
  [[nodiscard]] virtual Result<void*> retain_opencl() const;

 protected:
  // The device supports the request (`check`): kind, size and alignment, which is not 0.
  [[nodiscard]] virtual Result<void*> do_allocate(Device& device,
                                                  const AllocationRequest& request) = 0;
  virtual void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept = 0;
  // `platform_owned`: the platform owns the queue, like a device's default queue.
  [[nodiscard]] virtual Result<Ref<Queue>> make_queue(Device& device, bool platform_owned) = 0;

 private:
  friend class Platform;
  friend class Queue;
  std::vector<Device*> devices_;
  Ref<Device> device_ref_;  // keeps the platform alive; null if the platform owns the context
};

}  // namespace isthmus
