#pragma once
// Memory of simulated devices, and the book of who owns which address.
//
// Device memory has two faces: the address that users get faults on any access by the host, as on
// hardware, and the simulated device reaches the bytes through the other one. One book for the
// process, so that memory of one device is told apart from memory of another's and from the
// caller's own.

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

// Fills fresh memory as a driver's is: not with zeros.
void soil(std::byte* fresh, std::size_t nbytes) noexcept;

class allocation {
 public:
  // `context` and `home` are compared, never looked into.
  [[nodiscard]] static result<std::shared_ptr<allocation>> make(const void* context, device& home,
                                                                const allocation_request& request);
  // Addresses alone, for chunks.
  [[nodiscard]] static result<std::shared_ptr<allocation>> reserve(
      const void* context, device& home, const allocation_request& request);
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;
  ~allocation();

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  // Where the bytes are reached that users know at `pointer`.
  [[nodiscard]] std::byte* open(const void* pointer) const noexcept {
    return open_ + (static_cast<const std::byte*>(pointer) - base_);
  }
  [[nodiscard]] std::size_t nbytes() const noexcept { return request_.nbytes; }
  [[nodiscard]] usm_kind kind() const noexcept { return request_.kind; }
  [[nodiscard]] const void* context() const noexcept { return context_; }
  [[nodiscard]] device& home() const noexcept { return home_; }

  // Bytes with memory behind them.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return chunks_ ? chunks_->total_bytes() : request_.nbytes;
  }
  // Null for memory that is one piece.
  [[nodiscard]] mapped_chunks* chunks() const noexcept { return chunks_.get(); }
  // They may be somebody else's in part: they stay mapped for ever.
  void keep_addresses() noexcept { keeps_addresses_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t offset_of(const void* pointer) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
  }

  // Operations that use it and have not ended, from an offset on.
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
  std::byte* base_ = nullptr;
  std::byte* open_ = nullptr;
  std::unique_ptr<mapped_chunks> chunks_;
  std::atomic<std::uint32_t> uses_{0};
  std::atomic<bool> freed_{false};
  std::atomic<bool> keeps_addresses_{false};
};

// One end of an operation: where its bytes are, and what must stay mapped for it; null for memory
// of the caller's.
struct place {
  std::byte* at = nullptr;
  std::shared_ptr<allocation> of;
  std::size_t offset = 0;  // in it
  std::size_t nbytes = 0;
};

class address_book {
 public:
  // Never destroyed: exits find it.
  [[nodiscard]] static address_book& only();

  void add(std::shared_ptr<allocation> made);
  // What starts at `pointer`, if `context` owns it; its address is remembered as freed for a while.
  [[nodiscard]] std::shared_ptr<allocation> remove(const void* pointer, const void* context);
  [[nodiscard]] std::vector<std::shared_ptr<allocation>> remove_all(const void* context);

  // What holds `pointer`, live and of `context`; null otherwise.
  [[nodiscard]] std::shared_ptr<allocation> find(const void* pointer, const void* context);
  // For an operation on [pointer, pointer + nbytes) in `context`. DRIVER: not wholly within one
  // live allocation. WRONG_CONTEXT: device memory of another's.
  [[nodiscard]] result<place> resolve(const void* pointer, std::size_t nbytes, const void* context);

 private:
  struct entry {
    std::shared_ptr<allocation> live;  // null: freed
    std::size_t nbytes = 0;
    std::size_t span = 0;  // with what faults behind it
  };
  using entries = std::map<std::uintptr_t, entry>;

  friend never_destroyed<address_book>;
  address_book() = default;
  [[nodiscard]] entries::iterator touched_by(std::uintptr_t start, std::size_t nbytes);
  std::shared_ptr<allocation> bury(entries::iterator at);

  std::mutex lock_;
  entries entries_;  // by first address; they do not overlap
  std::deque<std::uintptr_t> graves_;
};

}  // namespace isthmus::sim
