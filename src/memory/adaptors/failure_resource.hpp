#pragma once
// Asks the caller's function what to do where there is no memory: it may free some for another try.

#include "core/owner.hpp"
#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class failure_resource final : public adaptor {
 public:
  failure_resource(memory_resource& upstream, isthmus_failure_function_t function, owner keep)
      : adaptor{upstream}, function_{function}, keep_{std::move(keep)} {}
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;

 private:
  const isthmus_failure_function_t function_;
  const owner keep_;
};

}  // namespace isthmus
