#pragma once
// A memory resource: hands out memory of one kind, in one context, on one device.

#include "backend/context.hpp"
#include "backend/queue.hpp"

namespace isthmus {

class pool;

class memory_resource : public ref_counted {
 public:
  memory_resource(context& home, device& where, usm_kind kind, pool* self = nullptr)
      : memory_resource{home, where, kind, self, self != nullptr} {}

  [[nodiscard]] context& home() const noexcept { return *home_; }
  [[nodiscard]] device& where() const noexcept { return where_; }
  [[nodiscard]] usm_kind kind() const noexcept { return kind_; }
  // Itself, if it is a pool: a virtual call is as long as what a pool does.
  [[nodiscard]] pool* as_pool() const noexcept { return self_; }

  // Ordered by `on`, a queue of this context. Pre: nbytes > 0; alignment 0 or any number.
  [[nodiscard]] virtual result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                               queue& on) = 0;
  // Whether memory is freed behind the work on a queue, which uses it still. If not, only memory
  // that nothing uses is given back: whoever does so waits.
  [[nodiscard]] bool orders_frees() const noexcept { return orders_frees_; }
  // Behind all work on `behind`, of this context; null: nothing uses it, always so if
  // `orders_frees` is false. What did not come from here, or was given back before, is
  // INVALID_ARGUMENT as far as the resource can tell, and then nothing is done.
  virtual result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept = 0;
  // The kind of what it handed out there, which may be another than its own.
  [[nodiscard]] virtual usm_kind kind_of([[maybe_unused]] const void* pointer) noexcept {
    return kind_;
  }

  struct memory_usage {
    std::size_t held_bytes = 0;  // of the driver's
    std::size_t free_bytes = 0;  // of those, for anybody: in use by no caller, thread or slab
    std::uint64_t maps = 0;      // how often the driver gave memory so far
    std::uint64_t unmaps = 0;    // how often it got some back

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

 protected:
  memory_resource(context& home, device& where, usm_kind kind, pool* self, bool orders_frees)
      : home_{&home}, where_{where}, kind_{kind}, orders_frees_{orders_frees}, self_{self} {}

 private:
  ref<context> home_;
  device& where_;
  usm_kind kind_;
  const bool orders_frees_;
  pool* const self_;
};

}  // namespace isthmus
