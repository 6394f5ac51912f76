// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context of simulated devices, which memory and queues belong to. Thread-safe.

#include "backend/context.hpp"
#include "backend/sim/chunks.hpp"
#include "backend/sim/device.hpp"

namespace isthmus::sim {

class context final : public isthmus::context {
 public:
  context(std::vector<isthmus::device*> devices, isthmus::platform* whole);
  // Pre: its queues are destroyed. Ends their remaining operations and frees memory that the caller
  // did not.
  ~context() override;

  [[nodiscard]] pointer_facts query(const void* pointer) noexcept override;
  [[nodiscard]] void* function_address(void* pointer) noexcept override;
  [[nodiscard]] chunk_source* chunks(isthmus::device& where, usm_kind kind) noexcept override;

 protected:
  [[nodiscard]] result<void*> do_allocate(isthmus::device& where,
                                          const allocation_request& request) override;
  void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<ref<isthmus::queue>> make_queue(isthmus::device& where, bool part) override;

 private:
  std::vector<std::unique_ptr<sim::chunks>> chunks_;
};

}  // namespace isthmus::sim
