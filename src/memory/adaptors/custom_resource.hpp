// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that the caller implements as a table of functions. The memory that they return is
// checked.

#include "core/owner.hpp"
#include "memory/memory_resource.hpp"

namespace isthmus {

class custom_resource final : public memory_resource {
 public:
  using operations = isthmus_resource_operations_t;

  custom_resource(context& home, device& where, usm_kind kind, const operations& how, owner keep)
      : memory_resource{home, where, kind}, how_{how}, keep_{std::move(keep)} {}

  [[nodiscard]] bool cuts() const noexcept override { return true; }
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] memory_usage usage() noexcept override;
  std::size_t trim(std::size_t keep) noexcept override;

 private:
  [[nodiscard]] result<void> check(const void* pointer, const allocation_request& asked) noexcept;
  [[nodiscard]] result<void> check_place(const pointer_facts& known, const void* pointer,
                                         const allocation_request& asked);

  const operations how_;
  const owner keep_;
};

}  // namespace isthmus
