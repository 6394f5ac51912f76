#pragma once
// A memory resource: hands out memory of one kind, in one context, on one device.

#include <algorithm>
#include <vector>

#include "backend/context.hpp"
#include "backend/queue.hpp"
#include "memory/cut_block.hpp"

namespace isthmus {

class pool;

class memory_resource : public ref_counted {
 public:
  memory_resource(context& home, device& where, usm_kind kind, pool* self = nullptr)
      : memory_resource{home, where, kind, {self != nullptr, set_of(kind)}, self} {}

  [[nodiscard]] context& home() const noexcept { return *home_; }
  [[nodiscard]] device& where() const noexcept { return where_; }
  [[nodiscard]] usm_kind kind() const noexcept { return kind_; }
  // A set of kinds: the bit 1 << kind of each.
  using kind_set = std::uint32_t;
  [[nodiscard]] static constexpr kind_set set_of(usm_kind kind) noexcept {
    return kind_set{1} << static_cast<unsigned>(kind);
  }
  // Those that it may hand out.
  [[nodiscard]] kind_set kinds() const noexcept { return nature_.kinds; }
  // Itself, if it is a pool: a virtual call is as long as what a pool does.
  [[nodiscard]] pool* as_pool() const noexcept { return self_; }
  // Those at the bottom of what it stands on, each once; its own if it stands on none.
  virtual void collect_bases(std::vector<memory_resource*>& out) {
    if (std::find(out.begin(), out.end(), this) == out.end()) {
      out.push_back(this);
    }
  }

  // Ordered by `on`, a queue of this context. Pre: nbytes > 0; alignment 0 or any number.
  [[nodiscard]] virtual result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                               queue& on) = 0;
  // The same where it takes as little as a pool's warm path: null, or false, where it takes more,
  // as for whatever is an error. Pre: not in a forked child.
  [[nodiscard]] virtual void* allocate_warm([[maybe_unused]] std::size_t nbytes,
                                            [[maybe_unused]] std::size_t alignment,
                                            [[maybe_unused]] queue* on) noexcept {
    return nullptr;
  }
  [[nodiscard]] virtual bool deallocate_warm([[maybe_unused]] void* pointer,
                                             [[maybe_unused]] std::size_t nbytes,
                                             [[maybe_unused]] queue* on) noexcept {
    return false;
  }
  // Whether all memory is freed behind the work on a queue, which uses it still. Else that of a
  // giver that does not is given back only where nothing uses it: whoever does so waits.
  [[nodiscard]] bool orders_frees() const noexcept { return nature_.orders_frees; }
  // Behind all work on `behind`, of this context; null: nothing uses it, always so if
  // `orders_frees` is false. What did not come from here, or was given back before, is
  // INVALID_ARGUMENT as far as the resource can tell, and then nothing is done.
  virtual result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept = 0;
  // Which resource at the bottom gave what it handed out there.
  [[nodiscard]] virtual memory_resource& giver_of([[maybe_unused]] const void* pointer,
                                                  [[maybe_unused]] std::size_t nbytes) noexcept {
    return *this;
  }
  // Whether what it gives may be a piece of an allocation that the library knows.
  [[nodiscard]] virtual bool cuts() const noexcept { return false; }
  // The block at an address in a piece that it entered into the table of such areas
  // (cut_areas.hpp), under whose lock it is called: calls no driver, takes its own locks alone.
  [[nodiscard]] virtual cut_block block_at([[maybe_unused]] const void* pointer) noexcept {
    return {};
  }

  // Whether what it has is the driver's memory, or a pool's whose memory is: then a free calls no
  // other resource, and locks of those may be held.
  [[nodiscard]] virtual bool is_drivers_own() const noexcept { return false; }
  // Whether blocks that nobody freed may go all the same.
  [[nodiscard]] virtual bool may_take_back() const noexcept { return false; }

  struct memory_usage {
    std::size_t held_bytes = 0;  // of the driver's
    std::size_t free_bytes = 0;  // of those, for anybody: in use by no caller, thread or slab
    std::uint64_t maps = 0;    // how often the driver gave memory so far, or mapped some elsewhere
    std::uint64_t unmaps = 0;  // how often it got some back, or took some from where it was

    memory_usage& operator+=(const memory_usage& other) noexcept {
      held_bytes += other.held_bytes;
      free_bytes += other.free_bytes;
      maps += other.maps;
      unmaps += other.unmaps;
      return *this;
    }
  };
  [[nodiscard]] virtual memory_usage usage() noexcept { return {}; }
  // Gives what is free back to the driver while more than `keep` bytes are held; bytes given back.
  virtual std::size_t trim([[maybe_unused]] std::size_t keep) noexcept { return 0; }
  // Looks at all that the resource knows of itself, for damage: INTERNAL for its own,
  // INVALID_ARGUMENT for the caller's. Takes long, and may hold others up.
  [[nodiscard]] virtual result<void> verify() { return {}; }

 protected:
  struct nature {
    bool orders_frees;
    kind_set kinds;
  };
  memory_resource(context& home, device& where, usm_kind kind, nature of, pool* self = nullptr)
      : home_{&home}, where_{where}, kind_{kind}, nature_{of}, self_{self} {}

 private:
  ref<context> home_;
  device& where_;
  usm_kind kind_;
  const nature nature_;
  pool* const self_;
};

}  // namespace isthmus
