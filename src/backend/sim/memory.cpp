// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::sim {
namespace {

// Number of freed device addresses that are not reused yet, so that a late use of one is reported
// instead of crashing.
constexpr std::size_t k_graves = 64;
// A driver's fresh memory is not zero. Here as many bytes at its start are filled with `k_dirt`.
constexpr std::size_t k_soiled = std::size_t{64} << 10;
constexpr int k_dirt = 0xA5;
// Smaller requests use the C++ allocator, which sanitizers check; others get pages of their own.
constexpr std::size_t k_pages_from = std::size_t{1} << 20;

}  // namespace

void soil(std::byte* fresh, std::size_t nbytes) noexcept {
  std::memset(fresh, k_dirt, std::min(nbytes, k_soiled));
}

Result<std::shared_ptr<Allocation>> Allocation::make(const void* context, isthmus::Device& device,
                                                     const AllocationRequest& request) {
  std::shared_ptr<Allocation> made{new Allocation{context, device, request}};
  if (auto mapped = made->map(); !mapped) {
    return mapped.take_error();
  }
  soil(made->open_, request.nbytes);
  return made;
}

Result<std::shared_ptr<Allocation>> Allocation::reserve(const void* context,
                                                        isthmus::Device& device,
                                                        const AllocationRequest& request) {
  std::shared_ptr<Allocation> made{new Allocation{context, device, request}};
  made->chunks_ = std::make_unique<MappedChunks>();
  ISTHMUS_TRY(made->map_nothing());
  return made;
}

bool Allocation::small() const noexcept { return !chunks_ && request_.nbytes < k_pages_from; }

Result<void> Allocation::map_nothing() {
  auto open = os::reserve_addresses(request_.nbytes, request_.alignment);
  ISTHMUS_TRY(open);
  open_ = base_ = static_cast<std::byte*>(*open);
  if (request_.kind == ISTHMUS_KIND_DEVICE) {
    auto hidden = os::reserve_addresses(request_.nbytes, request_.alignment);
    ISTHMUS_TRY(hidden);
    base_ = static_cast<std::byte*>(*hidden);
  }
  return {};
}

Result<void> Allocation::map() {
  if (request_.kind == ISTHMUS_KIND_DEVICE) {
    auto pages = os::map_two_faced(request_.nbytes, request_.alignment);
    if (!pages) {
      return pages.take_error();
    }
    base_ = static_cast<std::byte*>(pages->hidden);
    open_ = static_cast<std::byte*>(pages->open);
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
  open_ = base_;
  return {};
}

// The inaccessible mapping of device memory belongs to the address book from `add` on.
Allocation::~Allocation() {
  if (open_ == nullptr || keeps_addresses_.load(std::memory_order_relaxed)) {
    return;
  }
  if (request_.kind == ISTHMUS_KIND_DEVICE || !small()) {
    os::unmap_pages(open_, request_.nbytes);
  } else {
    ::operator delete(base_, std::align_val_t{request_.alignment});
  }
}

AddressBook& AddressBook::only() {
  static NeverDestroyed<AddressBook> book;
  return *book;
}

void AddressBook::add(std::shared_ptr<Allocation> made) {
  const auto start = address(made->base());
  const auto nbytes = made->nbytes();
  const bool hidden = made->kind() == ISTHMUS_KIND_DEVICE;
  const auto span = hidden ? round_up(nbytes, os::page_size()) : nbytes;
  const std::lock_guard hold{lock_};
  entries_[start] = Entry{std::move(made), nbytes, span};
}

std::shared_ptr<Allocation> AddressBook::bury(Entries::iterator at) {
  auto freed = std::move(at->second.live);
  freed->mark_freed();
  if (freed->kind() != ISTHMUS_KIND_DEVICE) {
    entries_.erase(at);
    return freed;
  }
  graves_.push_back(at->first);
  if (graves_.size() > k_graves) {
    const auto oldest = entries_.find(graves_.front());
    graves_.pop_front();
    os::unmap_pages(reinterpret_cast<void*>(oldest->first), oldest->second.span);
    entries_.erase(oldest);
  }
  return freed;
}

std::shared_ptr<Allocation> AddressBook::remove(const void* pointer, const void* context) {
  const std::lock_guard hold{lock_};
  const auto at = entries_.find(address(pointer));
  if (at == entries_.end() || !at->second.live || at->second.live->context() != context) {
    return nullptr;
  }
  return bury(at);
}

std::vector<std::shared_ptr<Allocation>> AddressBook::remove_all(const void* context) {
  std::vector<std::shared_ptr<Allocation>> removed;
  const std::lock_guard hold{lock_};
  std::vector<std::uintptr_t> starts;
  for (const auto& [start, held] : entries_) {
    if (held.live && held.live->context() == context) {
      starts.push_back(start);
    }
  }
  removed.reserve(starts.size());
  for (const auto start : starts) {
    removed.push_back(bury(entries_.find(start)));
  }
  return removed;
}

// The first entry that overlaps the range.
AddressBook::Entries::iterator AddressBook::touched_by(std::uintptr_t start, std::size_t nbytes) {
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
  const std::lock_guard hold{lock_};
  const auto at = touched_by(address(pointer), 1);
  if (at == entries_.end() || !at->second.live || at->second.live->context() != context ||
      address(pointer) - at->first >= at->second.nbytes) {
    return nullptr;
  }
  return at->second.live;
}

Result<Place> AddressBook::resolve(const void* pointer, std::size_t nbytes, const void* context) {
  auto* bytes = static_cast<std::byte*>(const_cast<void*>(pointer));
  const auto start = address(pointer);
  const std::lock_guard hold{lock_};
  const auto at = touched_by(start, nbytes);
  if (at == entries_.end()) {
    return Place{bytes, nullptr, 0, 0};
  }
  const auto& [first, held] = *at;
  if (!held.live) {
    return fail(ISTHMUS_ERROR_DRIVER, "invalid pointer: {} lies in device memory that was freed",
                fmt::ptr(pointer));
  }
  if (held.live->context() != context && held.live->kind() == ISTHMUS_KIND_DEVICE) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "invalid pointer: {} is device memory of another context", fmt::ptr(pointer));
  }
  if (start < first || !lies_within(start - first, nbytes, held.nbytes)) {
    return fail(ISTHMUS_ERROR_DRIVER,
                "invalid pointer: {} bytes at {} do not lie within the {} bytes at {}", nbytes,
                fmt::ptr(pointer), held.nbytes, fmt::ptr(held.live->base()));
  }
  const auto offset = start - first;
  if (const auto* chunks = held.live->chunks();
      chunks != nullptr && !chunks->cover(offset, nbytes)) {
    return fail(ISTHMUS_ERROR_DRIVER,
                "invalid pointer: not all {} bytes at {} are backed by memory", nbytes,
                fmt::ptr(pointer));
  }
  return Place{held.live->open(bytes), held.live, offset, nbytes};
}

}  // namespace isthmus::sim
