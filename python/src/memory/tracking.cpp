// SPDX-License-Identifier: Apache-2.0
// Attributes memory to code: the allocation tracker, which records every live block, and tags.

#include <cstring>
#include <string>
#include <vector>

#include "core/arguments.hpp"
#include "core/context_stack.hpp"
#include "memory/bindings.hpp"
#include "memory/callbacks.hpp"
#include "memory/resources.hpp"
#include "memory/scopes.hpp"

namespace isthmus::python {

bool tags_in_use = false;

namespace {

struct TrackingResource : AdaptorResource {};
struct Tag {
  const char* name;
};

ContextStack tags;  // of the `tag` objects

// The number of Python frames that a resource records.
struct FrameCount final : Deferred {
  explicit FrameCount(std::size_t max) : count{max} {}
  const std::size_t count;
};

const char* utf8_of(PyObject* text) {
  const char* found = PyUnicode_AsUTF8(text);
  if (found == nullptr) {
    PyErr_Clear();
  }
  return found != nullptr ? found : "?";
}

void append_frame(std::string& text, PyFrameObject* frame) {
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto* raw = reinterpret_cast<PyCodeObject*>(code.ptr());
  text += text.empty() ? "" : "\n";
  text += utf8_of(raw->co_filename);
  text += ':';
  text += std::to_string(PyFrame_GetLineNumber(frame));
  text += ' ';
  text += utf8_of(raw->co_name);
}

void append_frames(std::string& text, std::size_t count) {
  nb::object frame =
      nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  for (; frame.is_valid() && count != 0; --count) {
    auto* at = reinterpret_cast<PyFrameObject*>(frame.ptr());
    append_frame(text, at);
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
}

// The Python stack of the allocating thread; empty if the thread runs no Python code.
const char* frames_of_python(void* owner) noexcept try {
  thread_local std::string text;
  text.clear();
  if (PyGILState_GetThisThreadState() == nullptr) {
    return nullptr;
  }
  const CallbackLock lock;
  if (lock) {
    append_frames(text, static_cast<FrameCount*>(static_cast<Deferred*>(owner))->count);
  }
  return text.c_str();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void init_tracking(TrackingResource* self, nb::handle upstream, nb::handle frames,
                   nb::handle native_frames) {
  static_cast<void>(require_resource(upstream, "upstream"));
  const auto python = to_size(frames, "frames");
  const auto native = to_size(native_frames, "native_frames");
  if (python > ISTHMUS_MAX_FRAMES || native > ISTHMUS_MAX_FRAMES) {
    raise_python(PyExc_ValueError, "%s must be at most %d, not %zu",
                 python > ISTHMUS_MAX_FRAMES ? "frames" : "native_frames",
                 static_cast<int>(ISTHMUS_MAX_FRAMES),
                 python > ISTHMUS_MAX_FRAMES ? python : native);
  }
  construct_resource(
      self, TrackingResource{make_adaptor(
                upstream, isthmus_resource_allocation_tracker, static_cast<std::uint32_t>(native),
                python != 0 ? &frames_of_python : nullptr,
                python != 0 ? defer_owner(new FrameCount{python}) : isthmus_owner_t{})});
}

struct VisitedBlock {
  isthmus_tracked_allocation_t record;
  std::string stack;
};
using VisitedUsage = std::pair<const char*, isthmus_statistics_info_t>;

// The records that a function of the library passes to a callback, which must not throw.
template <class Record>
class Visited {
 public:
  template <class... Members>
  void add(Members&&... members) noexcept {
    try {
      all_.push_back({std::forward<Members>(members)...});
    } catch (const std::bad_alloc&) {
      is_complete_ = false;
    }
  }
  // Throws std::bad_alloc if a record is missing.
  [[nodiscard]] const std::vector<Record>& all() const {
    return is_complete_ ? all_ : throw std::bad_alloc{};
  }

 private:
  std::vector<Record> all_;
  bool is_complete_ = true;
};

nb::object lines_of(const std::string& text) {
  return nb::tuple(nb::str(text.c_str()).attr("splitlines")());
}

nb::object live_blocks(const TrackingResource& self) {
  Visited<VisitedBlock> visited;
  const auto add = [](void* object, const isthmus_tracked_allocation_t* each) {
    static_cast<Visited<VisitedBlock>*>(object)->add(*each, each->stack);
  };
  check(without_lock(
      [&] { return isthmus_allocation_tracker_visit(self.raw.get(), add, &visited); }));
  const nb::object block = nb::module_::import_("isthmus._pressure").attr("TrackedBlock");
  nb::list blocks;
  for (const auto& [what, stack] : visited.all()) {
    blocks.append(block(reinterpret_cast<std::uintptr_t>(what.pointer), what.nbytes, what.queue_key,
                        what.order, what.thread, tag_name(what.tag), lines_of(stack)));
  }
  return blocks;
}

nb::object usage_by_tag(const TrackingResource& self) {
  Visited<VisitedUsage> visited;
  const auto add = [](void* object, const char* tag, const isthmus_statistics_info_t* usage) {
    static_cast<Visited<VisitedUsage>*>(object)->add(tag, *usage);
  };
  check(isthmus_allocation_tracker_usage(self.raw.get(), add, &visited));
  const nb::object usage = nb::module_::import_("isthmus._pressure").attr("TagUsage");
  nb::dict by_tag;
  for (const auto& [tag, of] : visited.all()) {
    by_tag[tag_name(tag)] = usage(of.current_bytes, of.current_count, of.peak_bytes, of.peak_count,
                                  of.total_bytes, of.total_count);
  }
  return by_tag;
}

nb::object report(const TrackingResource& self) {
  std::string text(4096, '\0');
  std::size_t length = 0;
  check(without_lock([&] {
    isthmus_status_t status;
    while ((status = isthmus_allocation_tracker_report(self.raw.get(), text.data(), text.size(),
                                                       &length)) == ISTHMUS_OK &&
           length >= text.size()) {
      text.resize(length + length / 4 + 1);  // it may have grown meanwhile
    }
    return status;
  }));
  return nb::str(text.c_str(), length);
}

void init_tag(Tag* self, nb::handle name) {
  Py_ssize_t length = 0;
  const char* text =
      PyUnicode_Check(name.ptr()) != 0 ? PyUnicode_AsUTF8AndSize(name.ptr(), &length) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    raise_wrong_type(name, "name must be a str that UTF-8 can encode");
  }
  if (std::strlen(text) != static_cast<std::size_t>(length)) {
    raise_python(PyExc_ValueError, "name must not contain a NUL character");
  }
  const char* found = nullptr;
  check(isthmus_tag_find(text, &found));
  new (self) Tag{found};
}

nb::object enter_tag(nb::handle self) {
  tags.push(self);
  tags_in_use = true;
  return nb::borrow(self);
}

void leave_tag(nb::handle self, nb::args) { tags.pop(self, "tags"); }

void bind_tag(nb::module_& module) {
  tags.create("isthmus.tag");
  nb::class_<Tag>(
      module, "tag",
      "`with isthmus.tag(\"layer1\"):` - allocations of this thread or asyncio task, and of tasks\n"
      "started within it, are reported under this name: by TrackingResource.live() and report(),\n"
      "and as a holder in the snapshot of an exhausted pool. The innermost tag applies. An object\n"
      "may be entered many times.")
      .def("__init__", &init_tag, nb::arg("name").none(),
           nb::sig("def __init__(self, name: str) -> None"))
      .def_prop_ro(
          "name", [](const Tag& self) { return tag_name(self.name); },
          nb::sig("def name(self) -> str"), "The name as it was passed.")
      .def("__enter__", &enter_tag, nb::sig("def __enter__(self) -> Self"))
      .def("__exit__", &leave_tag, nb::sig("def __exit__(self, *exc: object) -> None"))
      .def(
          "__repr__",
          [](const Tag& self) {
            return nb::steal(PyUnicode_FromFormat("isthmus.tag(%R)", tag_name(self.name).ptr()));
          },
          nb::sig("def __repr__(self) -> str"));
}

}  // namespace

const char* current_tag() {
  const nb::object top = tags.top();
  return top.is_none() ? nullptr : nb::inst_ptr<Tag>(top)->name;
}

nb::object tag_name(const char* tag) {
  return tag != nullptr ? nb::object{nb::str(tag)} : nb::none();
}

void bind_tracking(nb::module_& module) {
  bind_tag(module);
  nb::class_<TrackingResource, AdaptorResource>(
      module, "TrackingResource",
      "Records every live block that was allocated through it: TrackingResource(upstream,\n"
      "frames=0, native_frames=0).\n\n"
      "Records the requested size, queue, tag, thread and order; with `frames` also that many of\n"
      "the innermost Python frames, with `native_frames` those of native code; at most 64 each. A\n"
      "free of an unknown block is rejected. Costs some ten nanoseconds an allocation without\n"
      "frames, however many blocks are live, and 64 to 256 bytes for each.")
      .def("__init__", &init_tracking, nb::arg("upstream").none(), nb::arg("frames").none() = 0,
           nb::arg("native_frames").none() = 0,
           nb::sig("def __init__(self, upstream: MemoryResource, frames: int = 0, native_frames: "
                   "int = 0) -> None"))
      .def("live", &live_blocks, nb::sig("def live(self) -> list[TrackedBlock]"),
           "The live blocks that were allocated since the last reset, the oldest first.")
      .def("usage_by_tag", &usage_by_tag, nb::sig("def usage_by_tag(self) -> dict[str, TagUsage]"),
           "For each isthmus.tag that memory was allocated under, most live bytes first: the live\n"
           "bytes, their peak, and the total so far. Allocations without a tag are not counted.")
      .def("report", &report, nb::sig("def report(self) -> str"),
           "A text about these blocks, grouped by stack and tag of their allocation, most bytes\n"
           "first.")
      .def(
          "reset",
          [](const TrackingResource& self) {
            check(isthmus_allocation_tracker_reset(self.raw.get()));
          },
          "Blocks that are live now are no longer reported, but can still be freed. In the usage\n"
          "of tags the peaks are set to the live bytes, and the totals to 0.");
}

}  // namespace isthmus::python
