// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::sim {
namespace {

// The number of freed device addresses that are withheld from reuse, so that a use after free is
// reported instead of crashing.
constexpr std::size_t k_max_quarantined = 64;
// Drivers do not guarantee zeroed memory. The first bytes of an allocation, up to this many, are
// filled with `k_pattern_byte`.
constexpr std::size_t k_pattern_bytes = std::size_t{64} << 10;
constexpr int k_pattern_byte = 0xA5;
// Smaller requests use the C++ allocator, which sanitizers check; larger ones map separate pages.
constexpr std::size_t k_min_mapped_bytes = std::size_t{1} << 20;

}  // namespace

void fill_with_pattern(std::byte* base, std::size_t nbytes) noexcept {
  std::memset(base, k_pattern_byte, std::min(nbytes, k_pattern_bytes));
}

Result<std::shared_ptr<Allocation>> Allocation::make(const void* context, isthmus::Device& device,
                                                     const AllocationRequest& request) {
  std::shared_ptr<Allocation> allocation{new Allocation{context, device, request}};
  if (auto mapped = allocation->map(); !mapped) {
    return mapped.take_error();
  }
  fill_with_pattern(allocation->accessible_base_, request.nbytes);
  return allocation;
}

Result<std::shared_ptr<Allocation>> Allocation::reserve(const void* context,
                                                        isthmus::Device& device,
                                                        const AllocationRequest& request) {
  std::shared_ptr<Allocation> allocation{new Allocation{context, device, request}};
  allocation->chunks_ = std::make_unique<MappedChunks>();
  ISTHMUS_TRY(allocation->reserve_ranges());
  return allocation;
}

bool Allocation::small() const noexcept { return !chunks_ && request_.nbytes < k_min_mapped_bytes; }

Result<void> Allocation::reserve_ranges() {
  auto accessible = os::reserve_addresses(request_.nbytes, request_.alignment);
  ISTHMUS_TRY(accessible);
  accessible_base_ = base_ = static_cast<std::byte*>(*accessible);
  if (request_.kind == ISTHMUS_KIND_DEVICE) {
    auto hidden = os::reserve_addresses(request_.nbytes, request_.alignment);
    ISTHMUS_TRY(hidden);
    base_ = static_cast<std::byte*>(*hidden);
  }
  return {};
}

Result<void> Allocation::map() {
  if (request_.kind == ISTHMUS_KIND_DEVICE) {
    auto pages = os::map_inaccessible(request_.nbytes, request_.alignment);
    if (!pages) {
      return pages.take_error();
    }
    base_ = static_cast<std::byte*>(pages->inaccessible);
    accessible_base_ = static_cast<std::byte*>(pages->accessible);
    return {};
  }
  if (small()) {
    base_ = static_cast<std::byte*>(
        ::operator new(request_.nbytes, std::align_val_t{request_.alignment}, std::nothrow));
  } else if (auto pages = os::map_pages(request_.nbytes, request_.alignment)) {
    base_ = static_cast<std::byte*>(*pages);
  }
  if (base_ == nullptr) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "no host memory for {} of simulated {} memory",
                describe_bytes(request_.nbytes), kind_name(request_.kind));
  }
  accessible_base_ = base_;
  return {};
}

// The inaccessible mapping of device memory is not unmapped here: the address book owns it after
// `add`.
Allocation::~Allocation() {
  if (accessible_base_ == nullptr || keeps_addresses_.load(std::memory_order_relaxed)) {
    return;
  }
  if (request_.kind == ISTHMUS_KIND_DEVICE || !small()) {
    os::unmap_pages(accessible_base_, request_.nbytes);
  } else {
    ::operator delete(base_, std::align_val_t{request_.alignment});
  }
}

AddressBook& AddressBook::instance() {
  static NeverDestroyed<AddressBook> book;
  return *book;
}

void AddressBook::add(std::shared_ptr<Allocation> allocation) {
  const auto start = address(allocation->base());
  const auto nbytes = allocation->nbytes();
  const bool hidden = allocation->kind() == ISTHMUS_KIND_DEVICE;
  const auto span = hidden ? round_up(nbytes, os::page_size()) : nbytes;
  const LockGuard hold{lock_};
  entries_[start] = Entry{std::move(allocation), nbytes, span};
}

std::shared_ptr<Allocation> AddressBook::quarantine(Entries::iterator entry) {
  auto freed = std::move(entry->second.live);
  freed->mark_freed();
  if (freed->kind() != ISTHMUS_KIND_DEVICE) {
    entries_.erase(entry);
    return freed;
  }
  quarantine_.push_back(entry->first);
  if (quarantine_.size() > k_max_quarantined) {
    const auto oldest = entries_.find(quarantine_.front());
    quarantine_.pop_front();
    os::unmap_pages(reinterpret_cast<void*>(oldest->first), oldest->second.span);
    entries_.erase(oldest);
  }
  return freed;
}

std::shared_ptr<Allocation> AddressBook::remove(const void* pointer, const void* context) {
  const LockGuard hold{lock_};
  const auto found = entries_.find(address(pointer));
  if (found == entries_.end() || !found->second.live || found->second.live->context() != context) {
    return nullptr;
  }
  return quarantine(found);
}

std::vector<std::shared_ptr<Allocation>> AddressBook::remove_all(const void* context) {
  std::vector<std::shared_ptr<Allocation>> removed;
  const LockGuard hold{lock_};
  std::vector<std::uintptr_t> starts;
  for (const auto& [start, entry] : entries_) {
    if (entry.live && entry.live->context() == context) {
      starts.push_back(start);
    }
  }
  removed.reserve(starts.size());
  for (const auto start : starts) {
    removed.push_back(quarantine(entries_.find(start)));
  }
  return removed;
}

// The first entry that overlaps the range.
AddressBook::Entries::iterator AddressBook::find_overlap(std::uintptr_t start, std::size_t nbytes) {
  auto after = entries_.upper_bound(start);
  if (after != entries_.begin()) {
    const auto before = std::prev(after);
    if (start - before->first < before->second.span) {
      return before;
    }
  }
  return after != entries_.end() && after->first - start < nbytes ? after : entries_.end();
}

std::shared_ptr<Allocation> AddressBook::find(const void* pointer, const void* context) {
  const LockGuard hold{lock_};
  const auto found = find_overlap(address(pointer), 1);
  if (found == entries_.end() || !found->second.live || found->second.live->context() != context ||
      address(pointer) - found->first >= found->second.nbytes) {
    return nullptr;
  }
  return found->second.live;
}

Result<Endpoint> AddressBook::resolve(const void* pointer, std::size_t nbytes,
                                      const void* context) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(pointer));
  const auto start = address(pointer);
  const LockGuard hold{lock_};
  const auto found = find_overlap(start, nbytes);
  if (found == entries_.end()) {
    return Endpoint{bytes, nullptr, 0, 0};
  }
  const auto& [first, entry] = *found;
  if (!entry.live) {
    return fail(ISTHMUS_ERROR_DRIVER, "invalid pointer: {} lies in device memory that was freed",
                fmt::ptr(pointer));
  }
  if (entry.live->context() != context && entry.live->kind() == ISTHMUS_KIND_DEVICE) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "invalid pointer: {} is device memory of another context", fmt::ptr(pointer));
  }
  if (start < first || !lies_within(start - first, nbytes, entry.nbytes)) {
    return fail(ISTHMUS_ERROR_DRIVER,
                "invalid pointer: {} bytes at {} do not lie within the {} bytes at {}", nbytes,
                fmt::ptr(pointer), entry.nbytes, fmt::ptr(entry.live->base()));
  }
  const auto offset = start - first;
  if (const auto* chunks = entry.live->chunks();
      chunks != nullptr && !chunks->cover(offset, nbytes)) {
    return fail(ISTHMUS_ERROR_DRIVER,
                "invalid pointer: not all {} bytes at {} are backed by memory", nbytes,
                fmt::ptr(pointer));
  }
  return Endpoint{entry.live->accessible_address(bytes), entry.live, offset, nbytes};
}

}  // namespace isthmus::sim
