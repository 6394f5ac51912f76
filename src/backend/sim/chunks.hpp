// SPDX-License-Identifier: Apache-2.0
#pragma once
// Movable memory of a simulated device. Thread-safe.

#include "backend/chunk_source.hpp"
#include "backend/device.hpp"

namespace isthmus::sim {

class chunks final : public chunk_source {
 public:
  // `context` is compared, never dereferenced.
  chunks(const void* context, isthmus::device& where, usm_kind kind) noexcept
      : context_{context}, where_{where}, kind_{kind} {}

  [[nodiscard]] bool are_of(const isthmus::device& where, usm_kind kind) const noexcept {
    return &where == &where_ && kind == kind_;
  }

  [[nodiscard]] std::size_t granularity() const noexcept override { return std::size_t{64} << 10; }
  [[nodiscard]] result<void*> reserve(std::size_t nbytes, std::size_t alignment) override;
  void release(void* base, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<void> create(void* at, std::size_t nbytes) override;
  [[nodiscard]] result<void> move(void* from, void* to, std::size_t nbytes, bool& to_lost) override;
  void destroy(void* at, std::size_t nbytes) noexcept override;

 private:
  const void* context_;
  isthmus::device& where_;
  const usm_kind kind_;
};

}  // namespace isthmus::sim
