#include "c/places.hpp"

#include "core/sizes.hpp"
#include "memory/innermost.hpp"

namespace isthmus::c {
namespace {

// Of memory at `start`: `nbytes` that begin `before` bytes in front of `offset`.
struct bytes_at {
  std::size_t offset;
  std::size_t before;
  std::size_t nbytes;
};

bool is_in_address_space(const void* start, const bytes_at& what) noexcept {
  const auto most = UINTPTR_MAX - address(start);
  return what.offset <= most && what.before <= address(start) + what.offset &&
         what.nbytes <= UINTPTR_MAX - (address(start) + what.offset - what.before);
}

error refuse_end(const block_extent& known, const void* pointer, const bytes_at& what) {
  if (what.before != 0) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes around {}, {} of them before it, leave their allocation, {} bytes at {}",
                what.nbytes, pointer, what.before, known.nbytes, static_cast<void*>(known.base));
  }
  return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
              "{} bytes from {} run past the end of their allocation, {} bytes "
              "at {}",
              what.nbytes, pointer, known.nbytes, static_cast<void*>(known.base));
}

result<endpoint> endpoint_at(void* start, const bytes_at& what) {
  if (!is_in_address_space(start, what)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes at {} from {} run past the end of the address space", what.nbytes,
                what.offset, start);
  }
  auto* pointer = static_cast<std::byte*>(start) + what.offset;
  endpoint side{pointer - what.before, nullptr, nullptr};
  if (what.nbytes == 0) {
    return side;
  }
  auto found = innermost_at(pointer);
  ISTHMUS_TRY(found);
  if (!found->memory) {
    return side;
  }
  side.memory = found->memory;
  side.preferred = &side.memory->on();
  const auto& known = *found;
  const auto inside = address(pointer) - address(known.base);
  if (what.before <= inside && side.memory->what().is_told &&
      side.memory->home().takes_host_memory()) {
    return side;  // ordered with what is known of it; the rest is any memory of the host's
  }
  if (what.before > inside || !lies_within(inside - what.before, what.nbytes, known.nbytes)) {
    return refuse_end(known, pointer, what);
  }
  return side;
}

}  // namespace

result<endpoint> endpoint_around(const isthmus_place_t& place, std::size_t before,
                                 std::size_t nbytes, bool writes) {
  if (place.buffer != nullptr) {
    if (before > place.offset) {
      return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                  "{} bytes before offset {} lie before the beginning of their buffer", before,
                  place.offset);
    }
    return object(place.buffer)->at(place.offset - before, nbytes, writes);
  }
  if (place.pointer == nullptr && nbytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a place has neither a buffer nor a pointer");
  }
  if (place.pointer == nullptr) {
    return endpoint{};  // an offset from nowhere is not even computed
  }
  return endpoint_at(place.pointer, {place.offset, before, nbytes});
}

result<endpoint> endpoint_of(const isthmus_place_t& place, std::size_t nbytes, bool writes) {
  return endpoint_around(place, 0, nbytes, writes);
}

}  // namespace isthmus::c
