// SPDX-License-Identifier: Apache-2.0
#pragma once
// Movable memory of a simulated device. Thread-safe.

#include "backend/chunk_source.hpp"
#include "backend/device.hpp"

namespace isthmus::sim {

class Chunks final : public ChunkSource {
 public:
  // `context` is compared, never dereferenced.
  Chunks(const void* context, isthmus::Device& device, UsmKind kind) noexcept
      : context_{context}, device_{device}, kind_{kind} {}

  [[nodiscard]] bool are_of(const isthmus::Device& device, UsmKind kind) const noexcept {
    return &device == &device_ && kind == kind_;
  }

  [[nodiscard]] std::size_t granularity() const noexcept override { return std::size_t{64} << 10; }
  [[nodiscard]] Result<void*> reserve(std::size_t nbytes, std::size_t alignment) override;
  void release(void* base, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<void> create(void* address, std::size_t nbytes) override;
  [[nodiscard]] Result<void> move(void* source, void* destination, std::size_t nbytes,
                                  bool& destination_lost) override;
  void destroy(void* address, std::size_t nbytes) noexcept override;

 private:
  const void* context_;
  isthmus::Device& device_;
  const UsmKind kind_;
};

}  // namespace isthmus::sim
