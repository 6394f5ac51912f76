#pragma once
// The pieces of memory that resources cut into blocks, by address.
//
// Such a resource may stand on another: its piece then is a block of the resource below. So areas
// nest, and each lies one level deeper than the area around it. A look-up takes a lock that readers
// share and a search at each level; it is made only for memory whose record says that other
// allocations lie in it, or that has no record.
//
// Lock order: this table's, then those of the resource that cuts. An area is entered and removed
// with none of the latter held.

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "memory/allocation.hpp"
#include "memory/cut_block.hpp"

namespace isthmus {

class cut_areas {
 public:
  struct area {
    std::byte* base = nullptr;
    std::size_t nbytes = 0;
    memory_resource* cutter = nullptr;
    // Where the area has one block: which. Else the resource is queried.
    std::optional<cut_block> only;
    // Of a pool's block, and not below a pool. Set by `add`.
    bool is_above_pool = false;
    // An order (core/order.hpp): of what is noted with one, the blocks in the area have greater
    // ones, and the memory around it lesser ones. Set by `add`.
    std::uint64_t since = 0;
  };

 private:
  using level = std::map<std::uintptr_t, area>;

 public:
  // A place in the table. Copies of it stand for the same area; one of them removes it.
  struct entry {
    std::size_t depth = 0;
    level::iterator at;
  };
  // An area that was taken out, to be put back without memory.
  struct taken {
    std::size_t depth = 0;
    level::node_type node;
  };

  // Pre: the area is the resource's until it is removed, and the resource lives as long. Throws
  // std::bad_alloc, and then nothing is done.
  [[nodiscard]] entry add(area of);
  [[nodiscard]] taken take(const entry& which) noexcept;
  [[nodiscard]] entry put_back(taken which) noexcept;
  void remove(const entry& which) noexcept { static_cast<void>(take(which)); }
  // The one block of such an area is not live from here on.
  void end_block(const entry& which) noexcept;

  [[nodiscard]] bool is_empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }

  struct found {
    memory_resource* cutter = nullptr;  // borrowed from the owner of the memory
    cut_block block;                    // not live: no caller has the address
    std::uint64_t since = 0;            // of the area
  };
  // In the innermost area that holds `pointer`; none: it lies in none. `above_pool`: of those that
  // lie in a pool's block, for an address of which the page map knows.
  [[nodiscard]] std::optional<found> look(const void* pointer, bool above_pool) noexcept;
  // The same with a reference to the resource; null where that has none left.
  [[nodiscard]] ref<memory_resource> cutter_at(const void* pointer, bool above_pool) noexcept;
  // Whether `pointer` lies in an area of `cutter`, in which no other area holds it.
  enum class place { outside, innermost, below_another };
  [[nodiscard]] place place_of(const void* pointer, const memory_resource& cutter,
                               bool in_pool) noexcept;

 private:
  // Pre for these: the lock is held.
  [[nodiscard]] const area* innermost(const void* pointer, bool above_pool) const noexcept;
  [[nodiscard]] static const area* in_level(const level& in, const void* pointer) noexcept;

  std::shared_mutex lock_;
  std::vector<level> levels_;  // those around others first
  std::atomic<std::size_t> count_{0};
};

// Of the whole process; never destroyed.
[[nodiscard]] cut_areas& process_cut_areas() noexcept;

// A chunk of upstream's memory that a resource cuts: its record and its area. Pre of its end: none
// of the resource's locks is held.
class cut_chunk {
 public:
  cut_chunk() noexcept = default;
  // Throws std::bad_alloc, and then the memory is released.
  cut_chunk(ref<allocation> memory, memory_resource& cutter);
  cut_chunk(cut_chunk&& other) noexcept : memory_{std::move(other.memory_)}, area_{other.area_} {}
  cut_chunk& operator=(cut_chunk&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(area_, other.area_);
    return *this;
  }
  ~cut_chunk();

  [[nodiscard]] allocation* operator->() const noexcept { return memory_.get(); }
  [[nodiscard]] allocation& operator*() const noexcept { return *memory_; }
  // Its memory stays allocated for the rest of the process: nobody can tell what uses it.
  void lose() noexcept;

 private:
  void leave() noexcept;

  ref<allocation> memory_;
  cut_areas::entry area_;
};

}  // namespace isthmus
