// SPDX-License-Identifier: Apache-2.0
// Queue's operations: copies, fills, prefetch, advice, fences, and functions submitted to it.

#include "core/arguments.hpp"
#include "core/gil.hpp"
#include "transfer/bindings.hpp"
#include "transfer/submit.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

nb::object fence(const Queue& self, nb::handle after) {
  const OperationArguments arguments{nb::handle{}, after, false};
  EventHandle event;
  check(without_lock(
      [&] {
        return isthmus_queue_fence(self.raw.get(), arguments.after.data(), arguments.after.size(),
                                   event.out());
      },
      !arguments.after.empty() || !self.submits_at_once));
  return wrap(std::move(event));
}

nb::object queue_copy(nb::handle self, nb::handle dst, nb::handle src, nb::handle nbytes,
                      nb::handle dst_offset, nb::handle src_offset, nb::handle after,
                      nb::handle blocking) {
  return copy({dst, src, nbytes, dst_offset, src_offset},
              {self, after, to_flag(blocking, "blocking")});
}

nb::object queue_copy_2d(nb::handle self, nb::handle dst, nb::handle src, nb::handle width,
                         nb::handle height, nb::handle dst_pitch, nb::handle src_pitch,
                         nb::handle dst_offset, nb::handle src_offset, nb::handle after,
                         nb::handle blocking) {
  return copy_2d({dst, src, width, height, dst_pitch, src_pitch, dst_offset, src_offset},
                 {self, after, to_flag(blocking, "blocking")});
}

nb::object queue_fill(nb::handle self, nb::handle dst, nb::handle value, nb::handle offset,
                      nb::handle nbytes, nb::handle after, nb::handle blocking) {
  return fill({dst, offset, nbytes}, value, {self, after, to_flag(blocking, "blocking")});
}

nb::object queue_memcpy(nb::handle self, nb::handle dest, nb::handle src, nb::handle count) {
  return copy({dest, src, count, nb::int_(0), nb::int_(0)}, {self, nb::handle{}, true});
}

nb::object queue_memcpy_async(nb::handle self, nb::handle dest, nb::handle src, nb::handle count,
                              nb::handle after) {
  return copy({dest, src, count, nb::int_(0), nb::int_(0)}, {self, after, false});
}

// By dpctl's rule, a count of 0, or one above the size, means all bytes.
nb::object count_or_all(nb::handle buffer, nb::handle count) {
  const auto nbytes = to_size(count, "count");
  return nbytes == 0 || nbytes > require_buffer(buffer).nbytes ? nb::none() : nb::borrow(count);
}

void queue_prefetch(nb::handle self, nb::handle buffer, nb::handle count) {
  const nb::object nbytes = count_or_all(buffer, count);
  static_cast<void>(prefetch({buffer, nb::int_(0), nbytes}, false, {self, nb::handle{}, true}));
}

void queue_advise(nb::handle self, nb::handle buffer, nb::handle count, nb::handle advice) {
  const nb::object nbytes = count_or_all(buffer, count);
  static_cast<void>(advise({buffer, nb::int_(0), nbytes}, advice, {self, nb::handle{}, true}));
}

void bind_order(nb::class_<Queue>& bound) {
  bound
      .def("fence", &fence, nb::arg("after").none() = nb::make_tuple(),
           nb::sig("def fence(self, after: Event | Sequence[Event] = ()) -> Event"),
           "An event that completes after all work submitted so far, and all of `after`, has\n"
           "completed.")
      .def(
          "submit",
          [](const Queue& self, nb::handle fn, nb::args buffers, nb::handle after) {
            return submit_function(self, fn, buffers, after);
          },
          nb::arg("fn").none(), nb::arg("buffers"), nb::arg("after").none() = nb::make_tuple(),
          nb::sig("def submit(self, fn: Callable[..., object], *buffers: Buffer, after: Event | "
                  "Sequence[Event] = ()) -> Event"),
          "Runs fn(*views) in the queue's order, on a library thread, with a memoryview of the\n"
          "bytes of each buffer. Returns its event at once.\n\n"
          "The views, writable unless the buffer is read-only, are valid only during the call: a\n"
          "function that retains one, or an array created from it, fails with BufferError. An\n"
          "exception of `fn` is raised by event.wait(), as the same object; later work on the\n"
          "queue continues. `fn` must not wait for later work on the queue. It sees the\n"
          "contextvars of the caller. Buffers of device kind need the capability\n"
          "\"run_functions\" (UnsupportedError). When the interpreter ends, functions that have\n"
          "not begun fail with CallbackError, and running functions are waited for.");
}

void bind_operations(nb::class_<Queue>& bound) {
  const auto none = nb::none();
  bound
      .def(
          "copy", &queue_copy, nb::arg("dst").none(), nb::arg("src").none(),
          nb::arg("nbytes") = none, nb::kw_only(), nb::arg("dst_offset").none() = 0,
          nb::arg("src_offset").none() = 0, nb::arg("after").none() = nb::make_tuple(),
          nb::arg("blocking").none() = true,
          nb::sig(
              "def copy(self, dst: object, src: object, nbytes: ByteCount | None = None, *, "
              "dst_offset: "
              "int = 0, src_offset: int = 0, after: Event | Sequence[Event] = (), blocking: bool = "
              "True) -> Event | None"),
          "Copies bytes between any two endpoints on this queue; see Buffer.copy_from.")
      .def("copy_2d", &queue_copy_2d, nb::arg("dst").none(), nb::arg("src").none(),
           nb::arg("width").none(), nb::arg("height").none(), nb::kw_only(),
           nb::arg("dst_pitch") = none, nb::arg("src_pitch") = none,
           nb::arg("dst_offset").none() = 0, nb::arg("src_offset").none() = 0,
           nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
           nb::sig(
               "def copy_2d(self, dst: object, src: object, width: int, height: int, *, dst_pitch: "
               "int | None = None, src_pitch: int | None = None, dst_offset: int = 0, src_offset: "
               "int = 0, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | "
               "None"),
           "Copies `height` rows of `width` bytes on this queue; see Buffer.copy_from_2d.")
      .def("fill", &queue_fill, nb::arg("dst").none(), nb::arg("value").none() = 0, nb::kw_only(),
           nb::arg("offset").none() = 0, nb::arg("nbytes") = none,
           nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
           nb::sig("def fill(self, dst: object, value: object = 0, *, offset: int = 0, nbytes: "
                   "ByteCount "
                   "| None "
                   "= None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event | "
                   "None"),
           "Fills `dst` on this queue; see Buffer.fill.")
      .def("memcpy", &queue_memcpy, nb::arg("dest").none(), nb::arg("src").none(),
           nb::arg("count").none(),
           nb::sig("def memcpy(self, dest: object, src: object, count: int) -> None"),
           "dpctl's name for a blocking copy() of `count` bytes. Raises OutOfRangeError past\n"
           "either end.")
      .def("memcpy_async", &queue_memcpy_async, nb::arg("dest").none(), nb::arg("src").none(),
           nb::arg("count").none(), nb::arg("dEvents") = none,
           nb::sig("def memcpy_async(self, dest: object, src: object, count: int, dEvents: "
                   "Sequence[Event] | None = None) -> Event"),
           "dpctl's name for copy(blocking=False), after the events `dEvents`. Source and\n"
           "destination are kept alive until it has completed.")
      .def("prefetch", &queue_prefetch, nb::arg("buf").none(), nb::arg("count").none() = 0,
           nb::sig("def prefetch(self, buf: Buffer, count: int = 0) -> None"),
           "Buffer.prefetch of the first `count` bytes; 0, or more than there are, means all.\n"
           "Blocks.")
      .def("mem_advise", &queue_advise, nb::arg("buf").none(), nb::arg("count").none(),
           nb::arg("advice").none(),
           nb::sig("def mem_advise(self, buf: Buffer, count: int, advice: int) -> None"),
           "Buffer.advise of the first `count` bytes; 0, or more than there are, means all. "
           "Blocks.");
}

}  // namespace

void bind_queue_operations(nb::class_<Queue>& bound) {
  bind_order(bound);
  bind_operations(bound);
}

}  // namespace isthmus::python
