#pragma once
// A context: what USM belongs to. A pointer is good on the queues of its context and nowhere else.

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

// What a driver tells of a pointer.
struct pointer_facts {
  usm_kind kind = ISTHMUS_KIND_UNKNOWN;
  void* base = nullptr;    // null where the driver does not tell
  std::size_t nbytes = 0;  // of the whole allocation; 0 where the driver does not tell
  device* home = nullptr;
};

struct allocation_request {
  usm_kind kind = ISTHMUS_KIND_DEVICE;
  std::size_t nbytes = 0;
  std::size_t alignment = 0;  // 0: the device's own
  bool write_combined = false;
};

// What stands for an allocation in other processes.
struct ipc_handle {
  std::array<unsigned char, 64> bytes{};
};
// A place in one.
struct shared_place {
  ipc_handle of;
  std::size_t offset = 0;  // from its base
};

class context : public ref_counted {
 public:
  // A part of `whole`, or (null) an object of its own that keeps its platform alive.
  context(std::vector<device*> devices, platform* whole);
  ~context() override;

  [[nodiscard]] std::span<device* const> devices() const noexcept { return devices_; }
  [[nodiscard]] platform& home() const noexcept { return devices_.front()->home(); }
  [[nodiscard]] bool has(const device& candidate) const noexcept;
  [[nodiscard]] bool is_default() const noexcept { return !keep_; }

  // What `allocate` would refuse without asking the driver.
  [[nodiscard]] error check(const device& where, const allocation_request& request) const;
  // Pre: none; everything is checked. Post: the pointer is aligned, and known to this context only.
  // Errors: INVALID_ARGUMENT, UNSUPPORTED (kind), OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] result<void*> allocate(device& where, const allocation_request& request);
  // Pre: `pointer` came from `allocate` with this kind and size, and nothing uses it any more. May
  // call the driver, which may block: not from a continuation.
  void deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept;
  // What the driver knows of a pointer, an inner one too; kind UNKNOWN if nothing.
  [[nodiscard]] virtual pointer_facts query(const void* pointer) noexcept = 0;

  // Whether any memory of the host is host-kind USM here, as it is on the host itself.
  [[nodiscard]] virtual bool takes_host_memory() const noexcept { return false; }
  // Where a function that a queue runs may touch the bytes at `pointer`: elsewhere if device memory
  // has another face for the device's own side.
  [[nodiscard]] virtual void* function_address(void* pointer) noexcept { return pointer; }

  // For memory of this kind that can move; null where the driver has none. The context's own.
  [[nodiscard]] virtual chunk_source* chunks(device&, usm_kind) noexcept { return nullptr; }

  [[nodiscard]] result<ref<queue>> create_queue(device& where);

  // Pre of these three: ISTHMUS_CAN_IPC. UNSUPPORTED for memory that the driver cannot share.
  [[nodiscard]] virtual result<shared_place> share_memory(const void* pointer);
  // The base of memory that another process shared. Each is to be closed; opened again it is the
  // same. INVALID_ARGUMENT for what is no handle, and for one of this process's.
  [[nodiscard]] virtual result<void*> open_memory(device& where, const ipc_handle& of);
  // Waits for all work on the device. Pre: nothing uses it any more.
  virtual void close_memory(device& where, void* base) noexcept;

  // Pre: `native` is a live event of this driver, of this context.
  [[nodiscard]] virtual result<ref<event>> adopt_event(void* native, owner keep);

  // Contexts with the same key are the same driver context.
  [[nodiscard]] virtual std::uintptr_t key() const noexcept;
  [[nodiscard]] bool is_same_as(const context& other) const noexcept {
    return this == &other || key() == other.key();
  }
  [[nodiscard]] virtual void* native() const noexcept { return nullptr; }
  // The cl_context that another back-end's context stands on, retained once for the caller.
  [[nodiscard]] virtual result<void*> retain_opencl() const;

 protected:
  // Pre: the kind is offered, 0 < nbytes <= max_allocation_bytes, alignment a power of two within
  // the device's, never 0.
  [[nodiscard]] virtual result<void*> do_allocate(device& where,
                                                  const allocation_request& request) = 0;
  virtual void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept = 0;
  // `part`: the queue becomes a part of the platform, as a device's default queue is.
  [[nodiscard]] virtual result<ref<queue>> make_queue(device& where, bool part) = 0;

 private:
  friend class platform;
  std::vector<device*> devices_;
  ref<platform> keep_;
};

}  // namespace isthmus
