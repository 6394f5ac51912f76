#pragma once
// How copies and fills are started and waited for.

#include <memory>
#include <optional>
#include <vector>

#include "array_view.hpp"
#include "interfaces.hpp"
#include "owners.hpp"

namespace isthmus::python {

// Memory of Python's that an operation uses: a view of an object's buffer.
class pinned final : public deferred {
 public:
  pinned() = default;
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() override {
    if (view.obj != nullptr) {
      PyBuffer_Release(&view);
    }
  }
  Py_buffer view{};
};

// Where bytes lie, and what keeps them there.
struct place {
  isthmus_place_t raw{};
  std::size_t nbytes = 0;            // from the start, offset or not
  bool direct = true;                // the library can reach it without its driver
  bool submits_at_once = true;       // no submission to its queue waits for the host
  isthmus_queue_t* queue = nullptr;  // of a Buffer, borrowed
  std::unique_ptr<pinned> memory;    // of Python's
  buffer_handle adopted;             // of an object that only tells its address
  nb::object keep;                   // what else is to live
};

// Buffer, buffer protocol, one of interfaces.hpp. TypeError for anything else, ValueError
// for what is not contiguous, ReadOnlyError for a destination that cannot be written.
[[nodiscard]] place to_place(nb::handle object, access wanted, const char* role);
// An array that may have gaps, which none of its dimensions runs through backwards.
struct array_place {
  place where;
  array_layout layout;
};
// Of an Array, or as the array lies in the object's own view. Not there where the object is a
// Buffer or has no such view. ValueError for what runs backwards. Copies of any strides take
// array_sides.hpp's.
[[nodiscard]] std::optional<array_place> to_array_place(nb::handle object, access wanted,
                                                        const char* role);
// Of an array that tells its address: the box around its elements.
[[nodiscard]] place foreign_place(nb::handle object, const told_interface& told, access wanted,
                                  const char* role);
[[nodiscard]] place buffer_place(const buffer& of);
// Pre: it was asked for with its format and strides.
[[nodiscard]] array_layout layout_of(const Py_buffer& view);
// OutOfRangeError unless [offset, offset + nbytes) lies in it.
void require_range(const place& in, std::size_t nbytes, const char* role);

// The keyword arguments that operations share.
struct operation_arguments {
  operation_arguments(nb::handle on_queue, nb::handle after, bool blocks);
  nb::object queue_object;  // keeps the next
  isthmus_queue_t* queue = nullptr;
  std::vector<isthmus_event_t*> after;
  std::vector<nb::object> kept;  // the Event objects of `after`
  bool blocking;
};

struct operation {
  const operation_arguments& arguments;
  std::size_t nbytes;  // how much moves: small direct ones keep the lock
  bool direct;         // by the host itself, once nothing is pending
  place* places[2] = {nullptr, nullptr};
};

using submission = isthmus_status_t (*)(void* closure, const isthmus_operation_t* operation,
                                        isthmus_event_t** event);
// Starts it, and waits if it blocks. None, or an Event.
[[nodiscard]] nb::object run_operation(operation& what, submission submit, void* closure);
template <class Submit>
[[nodiscard]] nb::object run_operation(operation what, Submit submit) {
  return run_operation(
      what,
      [](void* closure, const isthmus_operation_t* with, isthmus_event_t** event) {
        return (*static_cast<Submit*>(closure))(with, event);
      },
      &submit);
}

// -- operations; offsets and sizes are Python's ---------------------------------------------------

struct copy_request {
  nb::handle destination, source, nbytes, destination_offset, source_offset;
};
[[nodiscard]] nb::object copy(const copy_request& what, const operation_arguments& how);

struct copy_2d_request {
  nb::handle destination, source, width, height;
  nb::handle destination_pitch, source_pitch, destination_offset, source_offset;
};
[[nodiscard]] nb::object copy_2d(const copy_2d_request& what, const operation_arguments& how);

using sizes = std::vector<std::size_t>;
// Pre: none is negative.
[[nodiscard]] inline sizes as_sizes(number_span numbers) {
  return {numbers.begin(), numbers.end()};
}
// Elements at one and at another place, as isthmus_copy_nd has them.
struct strided_copy {
  place& to;
  place& from;
  sizes to_strides;
  sizes from_strides;
  sizes shape;
  std::size_t item;
};
// Pre: all of them lie within the places.
[[nodiscard]] nb::object copy_strided(const strided_copy& what, const operation_arguments& how);

struct part_request {
  nb::handle buffer, offset, nbytes;
};
[[nodiscard]] nb::object fill(const part_request& what, nb::handle value,
                              const operation_arguments& how);
[[nodiscard]] nb::object prefetch(const part_request& what, bool to_host,
                                  const operation_arguments& how);
[[nodiscard]] nb::object advise(const part_request& what, nb::handle advice,
                                const operation_arguments& how);
// Copies the first bytes of one to those of the other; waits. Pre: both have so many.
void copy_places(place& to, place& from, std::size_t nbytes);
// Copies the elements, packed in C order, to where as many bytes lie; waits.
void copy_packed(const array_view& from, place& to);
// The same into host memory that nobody else knows yet and that `keep`, if valid, keeps.
void copy_out(const array_view& from, void* to, nb::object keep);
// Python's bytes for `copy_out` to fill. MemoryError.
[[nodiscard]] nb::object make_bytes(std::size_t nbytes);

// True while functions given to queues are under way: then nothing may wait with the lock held.
[[nodiscard]] bool functions_under_way() noexcept;

}  // namespace isthmus::python
