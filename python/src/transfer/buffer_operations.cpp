// SPDX-License-Identifier: Apache-2.0
// Buffer's copies, fills, prefetch and advice.

#include "core/arguments.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

nb::object copy_from(nb::handle self, nb::handle src, nb::handle nbytes, nb::handle offset,
                     nb::handle src_offset, nb::handle queue, nb::handle after,
                     nb::handle blocking) {
  return copy({self, src, nbytes, offset, src_offset},
              {queue, after, to_flag(blocking, "blocking")});
}

nb::object copy_to(nb::handle self, nb::handle dst, nb::handle nbytes, nb::handle offset,
                   nb::handle dst_offset, nb::handle queue, nb::handle after, nb::handle blocking) {
  return copy({dst, self, nbytes, dst_offset, offset},
              {queue, after, to_flag(blocking, "blocking")});
}

nb::object copy_from_2d(nb::handle self, nb::handle other, nb::handle width, nb::handle height,
                        nb::handle pitch, nb::handle other_pitch, nb::handle offset,
                        nb::handle other_offset, nb::handle queue, nb::handle after,
                        nb::handle blocking) {
  return copy_2d({self, other, width, height, pitch, other_pitch, offset, other_offset},
                 {queue, after, to_flag(blocking, "blocking")});
}

nb::object copy_to_2d(nb::handle self, nb::handle other, nb::handle width, nb::handle height,
                      nb::handle pitch, nb::handle other_pitch, nb::handle offset,
                      nb::handle other_offset, nb::handle queue, nb::handle after,
                      nb::handle blocking) {
  return copy_2d({other, self, width, height, other_pitch, pitch, other_offset, offset},
                 {queue, after, to_flag(blocking, "blocking")});
}

nb::object fill_buffer(nb::handle self, nb::handle value, nb::handle offset, nb::handle nbytes,
                       nb::handle queue, nb::handle after, nb::handle blocking) {
  return fill({self, offset, nbytes}, value, {queue, after, to_flag(blocking, "blocking")});
}

nb::object prefetch_buffer(nb::handle self, nb::handle offset, nb::handle nbytes,
                           nb::handle to_host, nb::handle queue, nb::handle after,
                           nb::handle blocking) {
  return prefetch({self, offset, nbytes}, to_flag(to_host, "to_host"),
                  {queue, after, to_flag(blocking, "blocking")});
}

nb::object advise_buffer(nb::handle self, nb::handle advice, nb::handle offset, nb::handle nbytes,
                         nb::handle queue, nb::handle after, nb::handle blocking) {
  return advise({self, offset, nbytes}, advice, {queue, after, to_flag(blocking, "blocking")});
}

void bind_copies(nb::class_<Buffer>& bound) {
  const auto none = nb::none();
  def_operation(
      bound, "copy_from", &copy_from, nb::arg("src").none(), nb::kw_only(),
      nb::arg("nbytes") = none, nb::arg("offset").none() = 0, nb::arg("src_offset").none() = 0,
      nb::sig("def copy_from(self, src: object, *, nbytes: ByteCount | None = None, offset: int = "
              "0, "
              "src_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = "
              "(), blocking: bool = True) -> Event | None"),
      "Copies bytes into this buffer.\n\n"
      "`src`: a Buffer of any kind and device, an object with the buffer protocol of any\n"
      "type and shape, contiguous in C or Fortran order (bytes, numpy.ndarray, ...), or\n"
      "one with __sycl_usm_array_interface__. `nbytes` None: all of `src` from\n"
      "`src_offset`. Offsets are in bytes. `queue` None: this buffer's. The copy is\n"
      "ordered after earlier work on the queue, after other work on the two buffers, and\n"
      "after the events `after`.\n\n"
      "With blocking=False it returns an Event at once, and source and destination are\n"
      "kept alive until the copy has completed. Raises OutOfRangeError past either end,\n"
      "ValueError for an object that is not contiguous, TypeError for one without bytes.\n"
      "Ctrl-C interrupts the wait, not the copy.");
  def_operation(
      bound, "copy_to", &copy_to, nb::arg("dst").none(), nb::kw_only(), nb::arg("nbytes") = none,
      nb::arg("offset").none() = 0, nb::arg("dst_offset").none() = 0,
      nb::sig("def copy_to(self, dst: object, *, nbytes: ByteCount | None = None, offset: int = 0, "
              "dst_offset: int = 0, queue: Queue | None = None, after: Event | Sequence[Event] = "
              "(), blocking: bool = True) -> Event | None"),
      "Copies bytes of this buffer into `dst`: copy_from in the other direction. `nbytes`\n"
      "None: all of this buffer from `offset`; later bytes of `dst` are unchanged.\n"
      "Raises ReadOnlyError for a destination that cannot be written.");
}

void bind_pitched_copies(nb::class_<Buffer>& bound) {
  const auto none = nb::none();
  def_operation(
      bound, "copy_from_2d", &copy_from_2d, nb::arg("other").none(), nb::arg("width").none(),
      nb::arg("height").none(), nb::kw_only(), nb::arg("pitch") = none,
      nb::arg("other_pitch") = none, nb::arg("offset").none() = 0,
      nb::arg("other_offset").none() = 0,
      nb::sig("def copy_from_2d(self, other: object, width: int, height: int, *, pitch: int | None "
              "= None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, "
              "queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = "
              "True) -> Event | None"),
      "Copies `height` rows of `width` bytes into this buffer. Rows begin `pitch` bytes apart\n"
      "in this buffer and `other_pitch` bytes apart in `other`; both are at least `width`,\n"
      "the default. Otherwise like copy_from.");
  def_operation(
      bound, "copy_to_2d", &copy_to_2d, nb::arg("other").none(), nb::arg("width").none(),
      nb::arg("height").none(), nb::kw_only(), nb::arg("pitch") = none,
      nb::arg("other_pitch") = none, nb::arg("offset").none() = 0,
      nb::arg("other_offset").none() = 0,
      nb::sig("def copy_to_2d(self, other: object, width: int, height: int, *, pitch: int | None = "
              "None, other_pitch: int | None = None, offset: int = 0, other_offset: int = 0, "
              "queue: "
              "Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> "
              "Event | None"),
      "Copies `height` rows of `width` bytes of this buffer into `other`: copy_from_2d in\n"
      "the other direction.");
}

void bind_fills(nb::class_<Buffer>& bound) {
  const auto none = nb::none();
  def_operation(
      bound, "fill", &fill_buffer, nb::arg("value").none() = 0, nb::kw_only(),
      nb::arg("offset").none() = 0, nb::arg("nbytes") = none,
      nb::sig("def fill(self, value: object = 0, *, offset: int = 0, nbytes: ByteCount | None = "
              "None, "
              "queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = "
              "True) -> Event | None"),
      "Sets every byte to the integer `value` (0..255), or repeats a pattern: bytes, or a\n"
      "NumPy floating-point scalar, of 1, 2, 4, 8 or 16 bytes. `nbytes` (None: all from\n"
      "`offset`) must be a multiple of its size. Otherwise like copy_from.");
  def_operation(
      bound, "prefetch", &prefetch_buffer, nb::kw_only(), nb::arg("offset").none() = 0,
      nb::arg("nbytes") = none, nb::arg("to_host").none() = false,
      nb::sig("def prefetch(self, *, offset: int = 0, nbytes: ByteCount | None = None, to_host: "
              "bool = "
              "False, queue: Queue | None = None, after: Event | Sequence[Event] = (), blocking: "
              "bool = True) -> Event | None"),
      "Requests that the driver move shared memory to the queue's device, or to the host.\n"
      "A hint. Raises UnsupportedError on devices without the capability \"prefetch\".");
  def_operation(
      bound, "advise", &advise_buffer, nb::arg("advice").none(), nb::kw_only(),
      nb::arg("offset").none() = 0, nb::arg("nbytes") = none,
      nb::sig("def advise(self, advice: int, *, offset: int = 0, nbytes: ByteCount | None = None, "
              "queue: "
              "Queue | None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> "
              "Event | None"),
      "Passes the driver its own advice number (OpenCL: cl_mem_advice_intel). Raises\n"
      "UnsupportedError on devices without the capability \"advise\".");
}

}  // namespace

void bind_buffer_operations(nb::class_<Buffer>& bound) {
  bind_copies(bound);
  bind_pitched_copies(bound);
  bind_fills(bound);
}

}  // namespace isthmus::python
