#pragma once
// The allocation record: what is known of one live piece of USM, and what keeps it alive.
//
// A record is counted: its buffer, its exports and the calls that use it now hold it. With the last
// reference the memory goes back to where it came from, but not before the operations in flight on
// it have ended; nobody waits for that, a thread of the library does it.

#include "backend/context.hpp"
#include "core/owner.hpp"
#include "memory/memory_resource.hpp"
#include "memory/use_list.hpp"

namespace isthmus {

class allocation final : public ref_counted {
 public:
  struct facts {
    void* base = nullptr;
    std::size_t nbytes = 0;
    std::size_t alignment = 0;
    usm_kind kind = ISTHMUS_KIND_DEVICE;
  };

  // For `create` and `adopt`, which also make it known.
  allocation(queue& on, const facts& what);

  // From a memory resource, or (null) from the driver. Errors as `context::allocate`.
  [[nodiscard]] static result<ref<allocation>> create(queue& on, const allocation_request& request,
                                                      memory_resource* from);
  // Memory of somebody else's, which `keep` frees. Pre: checked by the caller.
  [[nodiscard]] static result<ref<allocation>> adopt(queue& on, const facts& what, owner keep);

  [[nodiscard]] const facts& what() const noexcept { return what_; }
  [[nodiscard]] queue& on() const noexcept { return *on_; }
  [[nodiscard]] context& home() const noexcept;
  [[nodiscard]] device& where() const noexcept;
  [[nodiscard]] use_list& uses() noexcept { return uses_; }
  [[nodiscard]] bool host_can_touch() const noexcept { return what_.kind != ISTHMUS_KIND_DEVICE; }
  [[nodiscard]] bool contains(const void* pointer) const noexcept;

  // Gives the memory back now. Only for the reaper, once nothing uses the memory any more.
  void reclaim() noexcept;

 private:
  friend class reaper;
  friend class registry;
  ~allocation() override;
  void last_reference_gone() noexcept override;
  [[nodiscard]] result<std::vector<ref<event>>> still_running();
  void retire();

  facts what_;
  ref<queue> on_;
  ref<memory_resource> from_;
  owner keep_;
  // Until it is in the registry its maker still holds the memory.
  enum class origin { unregistered, ours, foreign } origin_ = origin::unregistered;
  use_list uses_;
  allocation* next_in_cell_ = nullptr;  // the registry's
  allocation* next_ready_ = nullptr;    // the reaper's
};

}  // namespace isthmus
