// SPDX-License-Identifier: Apache-2.0
#include "life_scopes.hpp"

#include <algorithm>

#include "context_stack.hpp"

namespace isthmus::python {

std::size_t open_life_scopes = 0;

namespace {

// -- scratch --------------------------------------------------------------------------------------

struct Scratch {
  nb::object alive{};   // a set of weak references to Buffers
  nb::object forget{};  // the discard method of `alive`
  bool is_open = false;
};
ContextStack scratches;

// Not valid if there is none. A task may outlive the block in which it was started.
nb::object open_scratch() {
  const nb::object stack = scratches.all();
  for (nb::handle at = stack; !at.is_none(); at = ContextStack::below(at)) {
    const nb::handle top = ContextStack::top_of(at);
    if (nb::inst_ptr<Scratch>(top)->is_open) {
      return nb::borrow(top);
    }
  }
  return {};
}

void put_in_scratch(const Buffer& made) {
  const nb::object found = open_scratch();
  if (!found.is_valid()) {
    return;
  }
  auto& in = *nb::inst_ptr<Scratch>(found);
  const nb::object entry = nb::steal(PyWeakref_NewRef(nb::find(&made).ptr(), in.forget.ptr()));
  if (!entry.is_valid() || PySet_Add(in.alive.ptr(), entry.ptr()) != 0) {
    raise_set();
  }
}

nb::object enter_scratch(nb::pointer_and_handle<Scratch> self) {
  if (self.p->alive.is_valid()) {
    raise_python(PyExc_RuntimeError,
                 "a scratch scope can be entered once: call scratch() for a new one");
  }
  self.p->alive = nb::steal(PySet_New(nullptr));
  self.p->forget = self.p->alive.attr("discard");
  scratches.push(self.h);
  self.p->is_open = true;
  ++open_life_scopes;
  return nb::borrow(self.h);
}

void leave_scratch(nb::pointer_and_handle<Scratch> self, nb::args) {
  scratches.pop(self.h, "scratches");
  self.p->is_open = false;
  --open_life_scopes;
  const nb::object all = std::exchange(self.p->alive, nb::none());
  self.p->forget.reset();
  for (nb::handle each : nb::list(all)) {
    const nb::object made = each();  // None: gone meanwhile
    if (!made.is_none()) {
      free_buffer(*buffer_of(made));
    }
  }
}

// -- allocated ------------------------------------------------------------------------------------

struct Allocated {
  std::uint64_t count = 0, bytes = 0;
  std::uint64_t frees = 0, freed_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::chrono::nanoseconds taken{0};
  bool is_open = false, was_entered = false;
};
ContextStack counters;

template <class Tell>
void tell_each(nb::handle stack, Tell tell) {
  for (nb::handle at = stack; !at.is_none(); at = ContextStack::below(at)) {
    auto& each = *nb::inst_ptr<Allocated>(ContextStack::top_of(at));
    if (each.is_open) {
      tell(each);
    }
  }
}

// What the buffer keeps to report its end: its number of bytes and the stack of these scopes.
void count_in_scopes(const Buffer& made, std::chrono::nanoseconds taken) {
  const nb::object stack = counters.all();
  if (stack.is_none()) {
    return;
  }
  const auto nbytes = made.nbytes;
  tell_each(stack, [&](Allocated& each) {
    ++each.count;
    each.bytes += nbytes;
    each.peak_bytes = std::max(each.peak_bytes, each.bytes - each.freed_bytes);
    each.taken += taken;
  });
  made.counted_by = nb::make_tuple(nbytes, stack);
}

nb::object enter_allocated(nb::pointer_and_handle<Allocated> self) {
  if (self.p->was_entered) {
    raise_python(PyExc_RuntimeError,
                 "an allocated scope can be entered once: call allocated() for a new one");
  }
  counters.push(self.h);
  self.p->is_open = self.p->was_entered = true;
  ++open_life_scopes;
  return nb::borrow(self.h);
}

void leave_allocated(nb::pointer_and_handle<Allocated> self, nb::args) {
  counters.pop(self.h, "counts");
  self.p->is_open = false;
  --open_life_scopes;
}

double seconds_of(const Allocated& self) {
  return std::chrono::duration<double>(self.taken).count();
}

nb::object repr_of(const Allocated& self) {
  const nb::object milliseconds = nb::float_(seconds_of(self) * 1e3).attr("__format__")(".3f");
  return nb::steal(PyUnicode_FromFormat(
      "<isthmus.allocated: %llu bytes in %llu allocations, %llu freed, at most %llu bytes at a "
      "time, %U ms in allocation>",
      static_cast<unsigned long long>(self.bytes), static_cast<unsigned long long>(self.count),
      static_cast<unsigned long long>(self.frees), static_cast<unsigned long long>(self.peak_bytes),
      milliseconds.ptr()));
}

void bind_counts(nb::class_<Allocated>& bound) {
  bound.def_ro("count", &Allocated::count, "Allocations so far.")
      .def_ro("bytes", &Allocated::bytes, "Bytes of these allocations.")
      .def_ro("frees", &Allocated::frees, "Number of these that were freed, by any thread.")
      .def_ro("freed_bytes", &Allocated::freed_bytes, "Bytes of the freed ones.")
      .def_prop_ro(
          "live_bytes", [](const Allocated& self) { return self.bytes - self.freed_bytes; },
          "Bytes of those that are not freed.")
      .def_ro("peak_bytes", &Allocated::peak_bytes, "The most live bytes at a time.")
      .def_prop_ro("seconds", &seconds_of, "Time spent in allocation, in seconds.")
      .def("__repr__", &repr_of, nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void tell_scopes(const Buffer& made, std::chrono::nanoseconds taken) {
  count_in_scopes(made, taken);
  put_in_scratch(made);
}

void tell_of_free(nb::object& counted_by) noexcept {
  const nb::object told = std::exchange(counted_by, nb::object{});
  const auto nbytes = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(told.ptr(), 0));
  tell_each(PyTuple_GET_ITEM(told.ptr(), 1), [nbytes](Allocated& each) {
    ++each.frees;
    each.freed_bytes += nbytes;
  });
}

void bind_life_scopes(nb::module_& module) {
  scratches.create("isthmus.scratch");
  counters.create("isthmus.allocated");
  nb::class_<Scratch>(
      module, "scratch",
      "`with isthmus.scratch():` - arrays and buffers that this thread or asyncio task, and\n"
      "tasks started within it, allocate in the block are freed at its end, as by\n"
      "Buffer.free(): those that are still referenced, and their views, raise ClosedError when\n"
      "used. Memory is returned when the last operation on it has ended and the last export (a\n"
      "NumPy array, a memoryview, DLPack) is gone; the end of the block waits for neither. What\n"
      "is no longer referenced is freed at once, as usual. Scratch scopes nest; each frees its\n"
      "own. Buffers created elsewhere, for example by native code of a library, are not\n"
      "included. A scope can be entered once.")
      .def(nb::init<>())
      .def("__enter__", &enter_scratch, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_scratch, nb::sig("def __exit__(self, *exc: object) -> None"));
  nb::class_<Allocated> counts(
      module, "allocated",
      "`with isthmus.allocated() as a:` counts the arrays and buffers that this thread or\n"
      "asyncio task, and tasks started within it, allocate in the block, from any resource, in\n"
      "bytes as requested. Scopes nest: the outer ones include what an inner one counts. May be\n"
      "read at any time; nothing is counted after its end. A free counts when the buffer is\n"
      "freed or no longer referenced, though work in flight may hold the memory longer. A scope\n"
      "can be entered once. What a resource allocates for other libraries is counted by its\n"
      "StatisticsResource.");
  counts.def(nb::init<>())
      .def("__enter__", &enter_allocated, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_allocated, nb::sig("def __exit__(self, *exc: object) -> None"));
  bind_counts(counts);
}

}  // namespace isthmus::python
