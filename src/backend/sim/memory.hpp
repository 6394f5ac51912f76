// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of simulated devices, and the address book that records which allocation owns which
// address.
//
// Device memory has two mappings. The one whose address users receive faults on any access by the
// host, as on hardware; the simulated device accesses the bytes through the other one. The process
// has one book, so that a device's memory is distinguished from that of other devices and from the
// caller's. Thread-safe.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/context.hpp"
#include "backend/sim/mapped_chunks.hpp"
#include "core/never_destroyed.hpp"
#include "core/status.hpp"

namespace isthmus::sim {

// Fills fresh memory with a pattern, since a driver's fresh memory is not zero.
void soil(std::byte* fresh, std::size_t nbytes) noexcept;

class allocation {
 public:
  // `context` and `home` are compared, never dereferenced.
  [[nodiscard]] static result<std::shared_ptr<allocation>> make(const void* context, device& home,
                                                                const allocation_request& request);
  // Reserves addresses only, for chunks.
  [[nodiscard]] static result<std::shared_ptr<allocation>> reserve(
      const void* context, device& home, const allocation_request& request);
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;
  ~allocation();

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  // The accessible address of the bytes that users know at `pointer`.
  [[nodiscard]] std::byte* open(const void* pointer) const noexcept {
    return open_ + (static_cast<const std::byte*>(pointer) - base_);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return request_.nbytes; }
  [[nodiscard]] usm_kind kind() const noexcept { return request_.kind; }
  [[nodiscard]] const void* context() const noexcept { return context_; }
  [[nodiscard]] device& home() const noexcept { return home_; }

  // Bytes backed by memory.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return chunks_ ? chunks_->total_bytes() : request_.nbytes;
  }
  // Null for memory that does not consist of chunks.
  [[nodiscard]] mapped_chunks* chunks() const noexcept { return chunks_.get(); }
  // Other code may own part of the addresses, so they are never unmapped.
  void keep_addresses() noexcept { keeps_addresses_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t offset_of(const void* pointer) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  }

  // Counts operations that use the range at an offset and have not ended.
  void begin_use(std::size_t offset, std::size_t nbytes) {
    if (chunks_) {
      chunks_->begin_use(offset, nbytes);
    }
    uses_.fetch_add(1, std::memory_order_relaxed);
  }
  void end_use(std::size_t offset, std::size_t nbytes) noexcept {
    uses_.fetch_sub(1, std::memory_order_relaxed);
    if (chunks_) {
      chunks_->end_use(offset, nbytes);
    }
  }
  [[nodiscard]] bool in_use() const noexcept { return uses_.load(std::memory_order_relaxed) != 0; }
  void mark_freed() noexcept { freed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool freed() const noexcept { return freed_.load(std::memory_order_relaxed); }

 private:
  allocation(const void* context, device& home, const allocation_request& request) noexcept
      : context_{context}, home_{home}, request_{request} {}
  [[nodiscard]] result<void> map();
  [[nodiscard]] result<void> map_nothing();
  [[nodiscard]] bool small() const noexcept;

  const void* context_;
  device& home_;
  allocation_request request_;
  // The address that users know, and the accessible one. They differ for device memory only.
  std::byte* base_ = nullptr;
  std::byte* open_ = nullptr;
  std::unique_ptr<mapped_chunks> chunks_;
  std::atomic<std::uint32_t> uses_{0};
  std::atomic<bool> freed_{false};
  std::atomic<bool> keeps_addresses_{false};
};

// An endpoint of an operation: where its bytes are, and the allocation that must stay mapped for
// it; null for the caller's memory.
struct place {
  std::byte* at = nullptr;
  std::shared_ptr<allocation> of;
  std::size_t offset = 0;  // in the allocation
  std::size_t nbytes = 0;
};

class address_book {
 public:
  // Never destroyed, since it is used during exit.
  [[nodiscard]] static address_book& only();

  void add(std::shared_ptr<allocation> made);
  // Removes the allocation that starts at `pointer` if `context` owns it. A device address is
  // remembered as freed for a while.
  [[nodiscard]] std::shared_ptr<allocation> remove(const void* pointer, const void* context);
  [[nodiscard]] std::vector<std::shared_ptr<allocation>> remove_all(const void* context);

  // The live allocation of `context` that contains `pointer`, else null.
  [[nodiscard]] std::shared_ptr<allocation> find(const void* pointer, const void* context);
  // Finds the endpoint for an operation on [pointer, pointer + nbytes) in `context`. DRIVER if the
  // range does not lie wholly within one live allocation, WRONG_CONTEXT for device memory of
  // another context.
  [[nodiscard]] result<place> resolve(const void* pointer, std::size_t nbytes, const void* context);

 private:
  struct entry {
    std::shared_ptr<allocation> live;  // null: freed
    std::size_t nbytes = 0;
    std::size_t span = 0;  // including the inaccessible rest of its last page
  };
  using entries = std::map<std::uintptr_t, entry>;

  friend never_destroyed<address_book>;
  address_book() = default;
  [[nodiscard]] entries::iterator touched_by(std::uintptr_t start, std::size_t nbytes);
  std::shared_ptr<allocation> bury(entries::iterator at);

  // Guards all fields.
  std::mutex lock_;
  entries entries_;  // by first address; they do not overlap
  std::deque<std::uintptr_t> graves_;
};

}  // namespace isthmus::sim
