#pragma once
// Memory that can move, of a device or pinned on the host: handles of memory, mapped where it is
// needed.
//
// A device's chunks are made so that they can be exported as descriptors, if the driver does that,
// and mapped for the peers of the device that are in use.
//
// A chunk is one handle, whatever its size: mapping costs by the handle, about 45 us with access;
// of pinned memory 0.2 ms for 2 MiB, 0.3 for 8, and to make it 0.2 and 0.9 (H100). The calls do not
// wait for the device, as the end of what cuMemHostAlloc gave does.

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/chunk_source.hpp"
#include "backend/cuda/device.hpp"

namespace isthmus::cuda {

class chunks final : public chunk_source {
 public:
  // Each null where the driver has none.
  [[nodiscard]] static std::unique_ptr<chunks> of_device(const device& where);
  // Near that device if there is room; for all of `users`, one of which it is, and the host.
  [[nodiscard]] static std::unique_ptr<chunks> of_host(const device& near,
                                                       std::span<isthmus::device* const> users);

  // Whether the driver gives one. What it says of itself is not all: it may refuse a place, or one
  // of several devices. True where it only has no memory left.
  [[nodiscard]] bool works() noexcept;

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
  struct what {
    usm_kind kind;
    bool for_network_cards;
    std::vector<location> places;  // the next where one has no room
    std::vector<access_rights> users;
  };
  [[nodiscard]] static std::unique_ptr<chunks> make(const device& where, what of);
  chunks(const device& where, what of, std::size_t granularity) noexcept
      : where_{where}, of_{std::move(of)}, granularity_{granularity} {}
  [[nodiscard]] const api& calls() const noexcept { return where_.calls(); }
  [[nodiscard]] code obtain(memory_handle& made, std::size_t nbytes) const noexcept;
  [[nodiscard]] code obtain_at(memory_handle& made, std::size_t nbytes,
                               const location& where) const noexcept;
  // To the device, or devices, and to peers of the device's.
  [[nodiscard]] code open(void* at, std::size_t nbytes) const noexcept;
  [[nodiscard]] result<void> map(void* at, std::size_t nbytes, memory_handle handle) noexcept;

  const device& where_;
  const what of_;
  std::size_t granularity_;
  std::atomic<bool> works_{false};
  mutable std::atomic<bool> refuses_export_{false};
  std::mutex lock_;                                   // never held over a driver call
  std::unordered_map<void*, memory_handle> handles_;  // by where they are mapped
};

}  // namespace isthmus::cuda
