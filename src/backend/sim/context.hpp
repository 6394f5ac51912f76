// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context of simulated devices and its memory. Thread-safe.

#include "backend/context.hpp"
#include "backend/sim/chunks.hpp"
#include "backend/sim/device.hpp"

namespace isthmus::sim {

class Context final : public isthmus::Context {
 public:
  Context(std::vector<isthmus::Device*> devices, isthmus::Platform* owning_platform);
  // Its queues were destroyed. Completes their remaining operations and frees all memory that
  // the caller has not freed.
  ~Context() override;

  [[nodiscard]] PointerFacts query(const void* pointer) noexcept override;
  [[nodiscard]] void* function_address(void* pointer) noexcept override;
  [[nodiscard]] ChunkSource* chunks(isthmus::Device& device, UsmKind kind) noexcept override;

 protected:
  [[nodiscard]] Result<void*> do_allocate(isthmus::Device& device,
                                          const AllocationRequest& request) override;
  void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> make_queue(isthmus::Device& device,
                                                       bool platform_owned) override;

 private:
  std::vector<std::unique_ptr<sim::Chunks>> chunks_;
};

}  // namespace isthmus::sim
