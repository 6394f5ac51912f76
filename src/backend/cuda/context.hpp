// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context over the primary contexts of some devices. In CUDA all contexts of a process share one
// address space, but memory of different contexts of this library is kept separate, as on every
// other backend.

#include <memory>
#include <unordered_map>

#include "backend/context.hpp"
#include "backend/cuda/chunks.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::cuda {

class Context final : public isthmus::Context {
 public:
  Context(std::vector<isthmus::Device*> devices, isthmus::Platform* platform_owner);

  [[nodiscard]] PointerFacts query(const void* pointer) noexcept override;
  [[nodiscard]] ChunkSource* chunks(isthmus::Device& device, UsmKind kind) noexcept override;
  [[nodiscard]] Result<SharedAllocation> share_memory(const void* pointer) override;
  [[nodiscard]] Result<void*> open_memory(isthmus::Device& device,
                                          const isthmus::IpcHandle& handle) override;
  void close_memory(isthmus::Device& device, void* base) noexcept override;
  // The primary context of the first device.
  [[nodiscard]] void* native() const noexcept override;

 protected:
  [[nodiscard]] Result<void*> do_allocate(isthmus::Device& device,
                                          const AllocationRequest& request) override;
  void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> make_queue(isthmus::Device& device,
                                                       bool platform_owned) override;

 private:
  [[nodiscard]] Device& any_device() const noexcept;
  [[nodiscard]] Result<void*> obtain(Device& device, const AllocationRequest& request);
  [[nodiscard]] Result<void*> obtain_overaligned(Device& device, const AllocationRequest& request);
  void free_allocation(Device& device, void* pointer, UsmKind kind, std::size_t nbytes) noexcept;

  struct ChunkSources {
    std::unique_ptr<cuda::Chunks> of_device;
    std::unique_ptr<cuda::Chunks> of_host;
  };
  std::vector<ChunkSources>
      chunk_sources_;  // parallel to `devices()`; null where memory cannot be remapped
  // CUDA's allocation functions have no alignment parameter. For a larger alignment than CUDA's
  // own, the context allocates more and aligns the start itself. `overaligned_` maps the aligned
  // start to the driver's allocation.
  struct DriverAllocation {
    void* base;
    std::size_t nbytes;
  };
  Mutex overaligned_lock_;
  std::unordered_map<void*, DriverAllocation> overaligned_ ISTHMUS_GUARDED_BY(overaligned_lock_);
  std::atomic<std::size_t> overaligned_count_{0};
};

}  // namespace isthmus::cuda
