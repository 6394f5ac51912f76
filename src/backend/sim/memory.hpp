// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of simulated devices, and the address book that maps addresses to allocations.
//
// Device memory has two mappings. Users receive the address of one mapping, which faults on any
// access by the host, as on hardware. The simulated device accesses the bytes through the other
// mapping. The process has one book, which distinguishes the memory of each device from that of
// other devices and of the caller. Thread-safe.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/context.hpp"
#include "backend/sim/mapped_chunks.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/status.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sim {

// Fills the beginning of a new allocation with a pattern: drivers do not guarantee zeroed memory.
void fill_with_pattern(std::byte* base, std::size_t nbytes) noexcept;

class Allocation {
 public:
  // `context` is compared, never dereferenced.
  [[nodiscard]] static Result<std::shared_ptr<Allocation>> make(const void* context, Device& device,
                                                                const AllocationRequest& request);
  // Reserves addresses only, for chunks.
  [[nodiscard]] static Result<std::shared_ptr<Allocation>> reserve(
      const void* context, Device& device, const AllocationRequest& request);
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation();

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  // The accessible address of the bytes that users address by `pointer`.
  [[nodiscard]] std::byte* accessible_address(const void* pointer) const noexcept {
    return accessible_base_ + (static_cast<const std::byte*>(pointer) - base_);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return request_.nbytes; }
  [[nodiscard]] UsmKind kind() const noexcept { return request_.kind; }
  [[nodiscard]] const void* context() const noexcept { return context_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }

  // Bytes backed by memory.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return chunks_ ? chunks_->total_bytes() : request_.nbytes;
  }
  // Null for memory that does not consist of chunks.
  [[nodiscard]] MappedChunks* chunks() const noexcept { return chunks_.get(); }
  // Called if other code may own part of the addresses: they are then never unmapped.
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
  Allocation(const void* context, Device& device, const AllocationRequest& request) noexcept
      : context_{context}, device_{device}, request_{request} {}
  [[nodiscard]] Result<void> map();
  [[nodiscard]] Result<void> reserve_ranges();
  [[nodiscard]] bool small() const noexcept;

  const void* context_;
  Device& device_;
  AllocationRequest request_;
  // The address that users receive, and the accessible address. They differ only for device memory.
  std::byte* base_ = nullptr;
  std::byte* accessible_base_ = nullptr;
  std::unique_ptr<MappedChunks> chunks_;
  std::atomic<std::uint32_t> uses_{0};
  std::atomic<bool> freed_{false};
  std::atomic<bool> keeps_addresses_{false};
};

// The source or destination of an operation: its address, and its allocation, which remains mapped
// until the operation has ended. The allocation is null for the caller's memory.
struct Endpoint {
  std::byte* address = nullptr;
  std::shared_ptr<Allocation> allocation;
  std::size_t offset = 0;  // in the allocation
  std::size_t nbytes = 0;
};

class AddressBook {
 public:
  // Never destroyed, since it is used during exit.
  [[nodiscard]] static AddressBook& instance();

  void add(std::shared_ptr<Allocation> allocation);
  // Removes the allocation that starts at `pointer` if `context` owns it. A freed device address
  // remains recorded while it is withheld from reuse, so that later uses are detected.
  [[nodiscard]] std::shared_ptr<Allocation> remove(const void* pointer, const void* context);
  [[nodiscard]] std::vector<std::shared_ptr<Allocation>> remove_all(const void* context);

  // The live allocation of `context` that contains `pointer`, else null.
  [[nodiscard]] std::shared_ptr<Allocation> find(const void* pointer, const void* context);
  // Finds the allocation for an operation on [pointer, pointer + nbytes) in `context`. DRIVER if
  // the range does not lie wholly within one live allocation, WRONG_CONTEXT for device memory of
  // another context.
  [[nodiscard]] Result<Endpoint> resolve(const void* pointer, std::size_t nbytes,
                                         const void* context);

 private:
  struct Entry {
    std::shared_ptr<Allocation> live;  // null if freed
    std::size_t nbytes = 0;
    std::size_t span = 0;  // including the inaccessible rest of its last page
  };
  using Entries = std::map<std::uintptr_t, Entry>;

  friend NeverDestroyed<AddressBook>;
  AddressBook() = default;
  [[nodiscard]] Entries::iterator find_overlap(std::uintptr_t start, std::size_t nbytes)
      ISTHMUS_REQUIRES(lock_);
  std::shared_ptr<Allocation> quarantine(Entries::iterator entry) ISTHMUS_REQUIRES(lock_);

  Mutex lock_;
  Entries entries_ ISTHMUS_GUARDED_BY(lock_);  // by first address; they do not overlap
  std::deque<std::uintptr_t> quarantine_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus::sim
