// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of the primary contexts of some devices. In CUDA all contexts of a process share one
// address space; our contexts keep their memory apart all the same, as on every other backend.

#include <memory>
#include <mutex>
#include <unordered_map>

#include "backend/context.hpp"
#include "backend/cuda/chunks.hpp"
#include "backend/cuda/platform.hpp"

namespace isthmus::cuda {

class Context final : public isthmus::Context {
 public:
  Context(Platform& platform, std::vector<isthmus::Device*> devices, isthmus::Platform* whole);

  [[nodiscard]] Platform& driver() const noexcept { return driver_; }
  [[nodiscard]] PointerFacts query(const void* pointer) noexcept override;
  [[nodiscard]] ChunkSource* chunks(isthmus::Device& device, UsmKind kind) noexcept override;
  [[nodiscard]] Result<SharedPlace> share_memory(const void* pointer) override;
  [[nodiscard]] Result<void*> open_memory(isthmus::Device& device,
                                          const isthmus::IpcHandle& handle) override;
  void close_memory(isthmus::Device& device, void* base) noexcept override;
  // The primary context of the first device.
  [[nodiscard]] void* native() const noexcept override;

 protected:
  [[nodiscard]] Result<void*> do_allocate(isthmus::Device& device,
                                          const AllocationRequest& request) override;
  void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> make_queue(isthmus::Device& device, bool part) override;

 private:
  [[nodiscard]] Device& any() const noexcept;
  [[nodiscard]] Result<void*> obtain(Device& device, const AllocationRequest& request);
  [[nodiscard]] Result<void*> obtain_larger(Device& device, const AllocationRequest& request);
  void give_back(Device& device, void* pointer, UsmKind kind, std::size_t nbytes) noexcept;

  struct Movable {
    std::unique_ptr<cuda::Chunks> of_device;
    std::unique_ptr<cuda::Chunks> of_host;
  };
  Platform& driver_;
  std::vector<Movable>
      movable_;  // parallel to `devices()`; members are null where memory cannot be remapped
  // CUDA takes no alignment: to exceed its own, the context allocates more and aligns the start
  // itself. Maps the aligned start to the driver's allocation.
  struct WholeBlock {
    void* start;
    std::size_t nbytes;
  };
  std::mutex larger_lock_;
  std::unordered_map<void*, WholeBlock> larger_;
  std::atomic<std::size_t> larger_count_{0};
};

}  // namespace isthmus::cuda
