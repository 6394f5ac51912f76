// SPDX-License-Identifier: Apache-2.0
#include "buffer/foreign.hpp"

#include "core/sizes.hpp"
#include "memory/records/facts.hpp"

namespace isthmus {
namespace {

// Used if the driver does not report the size of the allocation: checks that the last byte is
// memory of the same kind.
Error check_last_byte(const Queue& queue, const ForeignMemory& memory, UsmKind kind) {
  const auto* const last = static_cast<const std::byte*>(memory.pointer) + (memory.nbytes - 1);
  if (facts_of(queue.context(), last).kind == kind) {
    return {};
  }
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
              "{} bytes from {} run past the end of their allocation: the last byte is not {} "
              "memory of that context",
              memory.nbytes, memory.pointer, kind_name(kind));
}

Error check_ends(const Queue& queue, const ForeignMemory& memory, const PointerFacts& facts) {
  if (facts.nbytes == 0) {
    return check_last_byte(queue, memory, facts.kind);
  }
  const auto offset = address(memory.pointer) - address(facts.base);
  if (!lies_within(offset, memory.nbytes, facts.nbytes)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of their allocation, {} bytes at {}",
                memory.nbytes, memory.pointer, facts.nbytes, facts.base);
  }
  return {};
}

}  // namespace

Result<UsmKind> check_foreign(const Queue& queue, const ForeignMemory& memory) {
  if (memory.pointer == nullptr || memory.nbytes == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "cannot adopt {} bytes at {}: pass a non-null pointer and a size greater than 0",
                memory.nbytes, memory.pointer);
  }
  if (memory.nbytes > UINTPTR_MAX - address(memory.pointer)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of the address space", memory.nbytes,
                memory.pointer);
  }
  const auto facts = facts_of(queue.context(), memory.pointer);
  if (facts.kind == ISTHMUS_KIND_UNKNOWN) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "{} is not USM of the context of this queue of {}: pass the queue or context that "
                "it was allocated on",
                memory.pointer, queue.device().properties().filter);
  }
  if (facts.kind == ISTHMUS_KIND_DEVICE && facts.device != nullptr &&
      facts.device != &queue.device()) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "{} is memory of {}, not of {}: pass the device that owns it, or a queue of that device",
        memory.pointer, facts.device->properties().filter, queue.device().properties().filter);
  }
  if (memory.kind != ISTHMUS_KIND_UNKNOWN && memory.kind != facts.kind) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is {} memory, not {} memory: pass the kind of the memory, or unknown",
                memory.pointer, kind_name(facts.kind), kind_name(memory.kind));
  }
  if (auto error = check_ends(queue, memory, facts)) {
    return error;
  }
  return facts.kind;
}

}  // namespace isthmus
