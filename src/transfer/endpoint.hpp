#pragma once
// One side of a transfer: memory of the caller's on the host, or part of an allocation.

#include <vector>

#include "core/sizes.hpp"
#include "memory/allocation.hpp"

namespace isthmus {

struct endpoint {
  std::byte* pointer = nullptr;
  ref<allocation> memory;  // null: plain memory of the host
  queue* preferred = nullptr;

  [[nodiscard]] bool host_can_touch() const noexcept { return !memory || memory->host_can_touch(); }
  // The same for the library's own copies.
  [[nodiscard]] bool host_can_copy() const noexcept {
    return host_can_touch() || memory->where().keeps_memory_on_host();
  }
  [[nodiscard]] bool in_context_of(const queue& on) const noexcept;
  // Whether operations of that queue may touch it: of its context, and no other device's own.
  [[nodiscard]] bool reached_by(const queue& on) const noexcept;
  // [pointer, pointer + nbytes) as a range of its allocation.
  [[nodiscard]] byte_range range(std::size_t nbytes) const noexcept;
};

struct transfer_use {
  allocation* memory = nullptr;
  use what;
};

// What an operation waits for and what must live till it has ended.
struct transfer_options {
  std::vector<ref<event>> after;
  std::vector<owner> owners;
  bool blocking = true;
  // Whether it depends on the copies that are to fill what it reads (memory/content_list.hpp), or
  // only comes after them.
  bool reads_contents = true;
};

}  // namespace isthmus
