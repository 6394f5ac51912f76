#pragma once
// Device memory that can move: handles of memory, mapped where it is needed.
//
// A chunk is one handle, whatever its size: mapping costs by the handle, about 45 us with access.
// The calls do not wait for the device.

#include <memory>
#include <mutex>
#include <unordered_map>

#include "backend/chunk_source.hpp"
#include "backend/cuda/device.hpp"

namespace isthmus::cuda {

class chunks final : public chunk_source {
 public:
  // Null where the driver has none.
  [[nodiscard]] static std::unique_ptr<chunks> make(const device& where);
  chunks(const device& where, std::size_t granularity) noexcept
      : where_{where}, granularity_{granularity} {}

  [[nodiscard]] std::size_t granularity() const noexcept override { return granularity_; }
  [[nodiscard]] result<void*> reserve(std::size_t nbytes, std::size_t alignment) override;
  void release(void* base, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<void> create(void* at, std::size_t nbytes) override;
  [[nodiscard]] result<void> move(void* from, void* to, std::size_t nbytes, bool& to_lost) override;
  // One handle may lie at two places. What is put to a queue later uses the new one and sees what
  // was written at the old one before.
  [[nodiscard]] bool stays_behind() const noexcept override { return true; }
  void leave(void* from, std::size_t nbytes) noexcept override;
  void destroy(void* at, std::size_t nbytes) noexcept override;

 private:
  [[nodiscard]] const api& calls() const noexcept { return where_.calls(); }
  [[nodiscard]] result<void> map(void* at, std::size_t nbytes, memory_handle what) noexcept;

  const device& where_;
  std::size_t granularity_;
  std::mutex lock_;                                   // never held over a driver call
  std::unordered_map<void*, memory_handle> handles_;  // by where they are mapped
};

}  // namespace isthmus::cuda
