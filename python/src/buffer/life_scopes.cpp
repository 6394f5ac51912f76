// SPDX-License-Identifier: Apache-2.0
#include "buffer/life_scopes.hpp"

#include <algorithm>

#include "buffer/bindings.hpp"
#include "core/context_stack.hpp"

namespace isthmus::python {

std::size_t open_scope_count = 0;

namespace {

// -- scratch --------------------------------------------------------------------------------------

struct Scratch {
  nb::object alive{};    // a set of weak references to Buffers
  nb::object discard{};  // the discard method of `alive`
  bool is_open = false;
};
ContextStack scratches;

// The innermost open scratch scope; not valid if there is none. A task may outlive the block in
// which it was started.
nb::object open_scratch() {
  const nb::object stack = scratches.all();
  for (nb::handle node = stack; !node.is_none(); node = ContextStack::below(node)) {
    const nb::handle top = ContextStack::top_of(node);
    if (nb::inst_ptr<Scratch>(top)->is_open) {
      return nb::borrow(top);
    }
  }
  return {};
}

void add_to_scratch(const Buffer& buffer) {
  const nb::object scope = open_scratch();
  if (!scope.is_valid()) {
    return;
  }
  auto& scratch = *nb::inst_ptr<Scratch>(scope);
  const nb::object entry =
      nb::steal(PyWeakref_NewRef(nb::find(&buffer).ptr(), scratch.discard.ptr()));
  if (!entry.is_valid() || PySet_Add(scratch.alive.ptr(), entry.ptr()) != 0) {
    raise_set();
  }
}

nb::object enter_scratch(nb::pointer_and_handle<Scratch> self) {
  if (self.p->alive.is_valid()) {
    raise_python(PyExc_RuntimeError,
                 "a scratch() scope can be entered only once: call scratch() again");
  }
  self.p->alive = nb::steal(PySet_New(nullptr));
  self.p->discard = self.p->alive.attr("discard");
  scratches.push(self.h);
  self.p->is_open = true;
  ++open_scope_count;
  return nb::borrow(self.h);
}

void leave_scratch(nb::pointer_and_handle<Scratch> self, nb::args) {
  scratches.pop(self.h, "scratches");
  self.p->is_open = false;
  --open_scope_count;
  const nb::object all = std::exchange(self.p->alive, nb::none());
  self.p->discard.reset();
  for (nb::handle each : nb::list(all)) {
    const nb::object object = each();  // None: destroyed meanwhile
    if (!object.is_none()) {
      free_buffer(*buffer_of(object));
    }
  }
}

// -- allocated ------------------------------------------------------------------------------------

struct Allocated {
  std::uint64_t count = 0, bytes = 0;
  std::uint64_t frees = 0, freed_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::chrono::nanoseconds duration{0};
  bool is_open = false, was_entered = false;
};
ContextStack counters;

template <class Tell>
void for_each_open(nb::handle stack, Tell update) {
  for (nb::handle node = stack; !node.is_none(); node = ContextStack::below(node)) {
    auto& each = *nb::inst_ptr<Allocated>(ContextStack::top_of(node));
    if (each.is_open) {
      update(each);
    }
  }
}

// Counts a new buffer in the open scopes, and stores in it the data for reporting its free: the
// number of bytes and the stack of scopes.
void count_in_scopes(const Buffer& buffer, std::chrono::nanoseconds duration) {
  const nb::object stack = counters.all();
  if (stack.is_none()) {
    return;
  }
  const auto nbytes = buffer.nbytes;
  for_each_open(stack, [&](Allocated& each) {
    ++each.count;
    each.bytes += nbytes;
    each.peak_bytes = std::max(each.peak_bytes, each.bytes - each.freed_bytes);
    each.duration += duration;
  });
  buffer.counted_by = nb::make_tuple(nbytes, stack);
}

nb::object enter_allocated(nb::pointer_and_handle<Allocated> self) {
  if (self.p->was_entered) {
    raise_python(PyExc_RuntimeError,
                 "an allocated() scope can be entered only once: call allocated() again");
  }
  counters.push(self.h);
  self.p->is_open = self.p->was_entered = true;
  ++open_scope_count;
  return nb::borrow(self.h);
}

void leave_allocated(nb::pointer_and_handle<Allocated> self, nb::args) {
  counters.pop(self.h, "counts");
  self.p->is_open = false;
  --open_scope_count;
}

double seconds_of(const Allocated& self) {
  return std::chrono::duration<double>(self.duration).count();
}

void bind_counts(nb::class_<Allocated>& bound) {
  bound.def_ro("count", &Allocated::count, "Number of allocations so far.")
      .def_ro("bytes", &Allocated::bytes, "Bytes of these allocations.")
      .def_ro("frees", &Allocated::frees, "Number of these that were freed, by any thread.")
      .def_ro("freed_bytes", &Allocated::freed_bytes, "Bytes of the freed allocations.")
      .def_prop_ro(
          "live_bytes", [](const Allocated& self) { return self.bytes - self.freed_bytes; },
          "Bytes of the allocations that were not freed.")
      .def_ro("peak_bytes", &Allocated::peak_bytes, "The maximum of live_bytes so far.")
      .def_prop_ro("seconds", &seconds_of, "Time spent in allocation, in seconds.");
  bind_repr(bound, "allocation_counts");
}

}  // namespace

void record_allocation(const Buffer& buffer, std::chrono::nanoseconds duration) {
  count_in_scopes(buffer, duration);
  add_to_scratch(buffer);
}

void record_free(nb::object& counted_by) noexcept {
  const nb::object record = std::exchange(counted_by, nb::object{});
  const auto nbytes = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(record.ptr(), 0));
  for_each_open(PyTuple_GET_ITEM(record.ptr(), 1), [nbytes](Allocated& each) {
    ++each.frees;
    each.freed_bytes += nbytes;
  });
}

void bind_allocation_scopes(nb::module_& module) {
  scratches.create("isthmus.scratch");
  counters.create("isthmus.allocated");
  nb::class_<Scratch>(
      module, "scratch",
      "`with isthmus.scratch():` - arrays and buffers that this thread or asyncio task, and tasks\n"
      "started within it, allocate in the block are freed at its end, as by Buffer.free(): using\n"
      "them or their views afterwards raises ClosedError. Memory is returned after the last\n"
      "operation on it has completed and the last export (a NumPy array, a memoryview, DLPack)\n"
      "was released; the end of the block waits for neither. Buffers that are no longer\n"
      "referenced are freed at once, as usual. Scratch scopes nest; each frees only its own\n"
      "buffers. Buffers created elsewhere, for example by native code of a library, are not\n"
      "included. A scope can be entered only once.")
      .def(nb::init<>())
      .def("__enter__", &enter_scratch, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_scratch, nb::sig("def __exit__(self, *exc: object) -> None"));
  nb::class_<Allocated> counts(
      module, "allocated",
      "`with isthmus.allocated() as a:` counts the arrays and buffers that this thread or asyncio\n"
      "task, and tasks started within it, allocate in the block, from any resource, in bytes as\n"
      "requested. Scopes nest: outer scopes include the counts of inner ones. May be read at any\n"
      "time; nothing is counted after the end of a scope. A free counts when the buffer is freed\n"
      "or no longer referenced, though work in flight may hold the memory longer. A scope can be\n"
      "entered only once. Allocations of a resource for other libraries are counted by its\n"
      "StatisticsResource.");
  counts.def(nb::init<>())
      .def("__enter__", &enter_allocated, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_allocated, nb::sig("def __exit__(self, *exc: object) -> None"));
  bind_counts(counts);
}

}  // namespace isthmus::python
