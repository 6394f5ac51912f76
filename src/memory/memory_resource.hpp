#pragma once
// A memory resource: hands out memory of one kind, in one context, on one device.

#include "backend/context.hpp"
#include "backend/queue.hpp"

namespace isthmus {

class memory_resource : public ref_counted {
 public:
  memory_resource(context& home, device& where, usm_kind kind)
      : home_{&home}, where_{where}, kind_{kind} {}

  [[nodiscard]] context& home() const noexcept { return *home_; }
  [[nodiscard]] device& where() const noexcept { return where_; }
  [[nodiscard]] usm_kind kind() const noexcept { return kind_; }

  // Ordered by `on`, a queue of this context. Pre: nbytes > 0; alignment 0 or any number.
  [[nodiscard]] virtual result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                               queue& on) = 0;
  // Pre: `pointer` came from here with this size, and nothing uses it any more.
  virtual void deallocate(void* pointer, std::size_t nbytes) noexcept = 0;

 private:
  ref<context> home_;
  device& where_;
  usm_kind kind_;
};

}  // namespace isthmus
