// SPDX-License-Identifier: Apache-2.0
#include "buffer/foreign.hpp"

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "memory/facts.hpp"

namespace isthmus {
namespace {

// If the driver does not report the allocation: the last byte must be memory of the same kind.
error check_last_byte(const queue& on, const foreign_memory& what, usm_kind kind) {
  const auto* const last = static_cast<const std::byte*>(what.pointer) + (what.nbytes - 1);
  if (facts_of(on.home(), last).kind == kind) {
    return {};
  }
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
              "{} bytes from {} run past the end of their allocation: the last byte is not {} "
              "memory of that context",
              what.nbytes, what.pointer, kind_name(kind));
}

error check_ends(const queue& on, const foreign_memory& what, const pointer_facts& known) {
  if (known.nbytes == 0) {
    return check_last_byte(on, what, known.kind);
  }
  const auto offset = address(what.pointer) - address(known.base);
  if (!lies_within(offset, what.nbytes, known.nbytes)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of their allocation, {} bytes at {}",
                what.nbytes, what.pointer, known.nbytes, known.base);
  }
  return {};
}

}  // namespace

result<usm_kind> check_foreign(const queue& on, const foreign_memory& what) {
  if (what.pointer == nullptr || what.nbytes == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "cannot adopt {} bytes at {}: pass a non-null pointer and a size greater than 0",
                what.nbytes, what.pointer);
  }
  if (what.nbytes > UINTPTR_MAX - address(what.pointer)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of the address space", what.nbytes,
                what.pointer);
  }
  const auto known = facts_of(on.home(), what.pointer);
  if (known.kind == ISTHMUS_KIND_UNKNOWN) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "{} is not USM of the context of this queue of {}: pass the queue or context that "
                "it was allocated on",
                what.pointer, on.where().properties().filter);
  }
  if (known.kind == ISTHMUS_KIND_DEVICE && known.home != nullptr && known.home != &on.where()) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "{} is memory of {}, not of {}: pass the device that owns it, or a queue of that device",
        what.pointer, known.home->properties().filter, on.where().properties().filter);
  }
  if (what.kind != ISTHMUS_KIND_UNKNOWN && what.kind != known.kind) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is {} memory, not {} memory", what.pointer,
                kind_name(known.kind), kind_name(what.kind));
  }
  if (auto outside = check_ends(on, what, known)) {
    return outside;
  }
  return known.kind;
}

}  // namespace isthmus
