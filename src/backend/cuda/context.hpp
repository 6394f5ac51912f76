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

class context final : public isthmus::context {
 public:
  context(platform& home, std::vector<isthmus::device*> devices, isthmus::platform* whole);

  [[nodiscard]] platform& driver() const noexcept { return driver_; }
  [[nodiscard]] pointer_facts query(const void* pointer) noexcept override;
  [[nodiscard]] chunk_source* chunks(isthmus::device& where, usm_kind kind) noexcept override;
  [[nodiscard]] result<shared_place> share_memory(const void* pointer) override;
  [[nodiscard]] result<void*> open_memory(isthmus::device& where,
                                          const isthmus::ipc_handle& of) override;
  void close_memory(isthmus::device& where, void* base) noexcept override;
  // The primary context of the first device.
  [[nodiscard]] void* native() const noexcept override;

 protected:
  [[nodiscard]] result<void*> do_allocate(isthmus::device& where,
                                          const allocation_request& request) override;
  void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<ref<isthmus::queue>> make_queue(isthmus::device& where, bool part) override;

 private:
  [[nodiscard]] device& any() const noexcept;
  [[nodiscard]] result<void*> obtain(device& where, const allocation_request& request);
  [[nodiscard]] result<void*> obtain_larger(device& where, const allocation_request& request);
  void give_back(device& where, void* pointer, usm_kind kind, std::size_t nbytes) noexcept;

  struct movable {
    std::unique_ptr<cuda::chunks> of_device;
    std::unique_ptr<cuda::chunks> of_host;
  };
  platform& driver_;
  std::vector<movable>
      movable_;  // parallel to `devices()`; members are null where memory cannot be remapped
  // CUDA takes no alignment: to exceed its own, the context allocates more and aligns the start
  // itself. Maps the aligned start to the driver's allocation.
  struct whole_block {
    void* start;
    std::size_t nbytes;
  };
  std::mutex larger_lock_;
  std::unordered_map<void*, whole_block> larger_;
  std::atomic<std::size_t> larger_count_{0};
};

}  // namespace isthmus::cuda
