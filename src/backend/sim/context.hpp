#pragma once
// A context of simulated devices: a name that memory and queues belong to.

#include "backend/context.hpp"
#include "backend/sim/chunks.hpp"
#include "backend/sim/device.hpp"

namespace isthmus::sim {

class context final : public isthmus::context {
 public:
  context(std::vector<isthmus::device*> devices, isthmus::platform* whole);
  // Its queues are gone: their last operations end, and memory that was not freed goes.
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
