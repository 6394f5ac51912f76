// SPDX-License-Identifier: Apache-2.0
// Memory owned by a small Python object, for arrays of other libraries.

#include <cstdio>
#include <utility>

#include "arguments.hpp"
#include "gil.hpp"
#include "interruptible.hpp"
#include "resources.hpp"
#include "sizes.hpp"

namespace isthmus::python {
namespace {

// Freed in the order of its queue, since the library that uses it frees its own memory that way.
class bare_block {
 public:
  bare_block(const resource& from, const queue& on, std::size_t nbytes)
      : bare_block{resource_handle::retained(from.raw.get()), queue_handle::retained(on.raw.get()),
                   nbytes, from.is_pool} {
    const interruptible call;  // may raise even if there is memory: the destructor frees it
    isthmus_status_t status;
    {
      const gil_release released;
      status = isthmus_resource_allocate(from_.get(), nbytes_, 0, on_.get(), &pointer_);
    }
    call.check(status);
  }
  bare_block(const bare_block&) = delete;
  bare_block& operator=(const bare_block&) = delete;
  ~bare_block() {
    if (pointer_ == nullptr) {
      return;
    }
    const gil_release released{!is_pooled_};  // without a pool the driver may wait for its device
    if (isthmus_resource_deallocate(from_.get(), pointer_, nbytes_, 0, on_.get()) != ISTHMUS_OK &&
        !is_forked_child()) {
      std::fprintf(stderr, "isthmus: %zu bytes at %p were not freed: %s\n", nbytes_, pointer_,
                   isthmus_error_message());
    }
  }
  [[nodiscard]] std::uintptr_t pointer() const noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer_);
  }

 private:
  bare_block(owned_handle<isthmus_resource_t> from, owned_handle<isthmus_queue_t> on,
             std::size_t nbytes, bool is_pooled)
      : from_{std::move(from)}, on_{std::move(on)}, nbytes_{nbytes}, is_pooled_{is_pooled} {}

  owned_handle<isthmus_resource_t> from_;
  owned_handle<isthmus_queue_t> on_;
  std::size_t nbytes_;
  bool is_pooled_;
  void* pointer_ = nullptr;
};

void init_block(bare_block* self, nb::handle from, nb::handle on, nb::handle nbytes) {
  const auto* queue = queue_of(on);
  if (queue == nullptr) {
    raise_python(PyExc_TypeError, "queue must be a Queue, not %.100s", Py_TYPE(on.ptr())->tp_name);
  }
  const auto& resource = require_resource(from, "resource");
  new (self)
      bare_block{resource, *queue, to_allocation_size(nbytes, "nbytes", resource.kind, *queue)};
}

}  // namespace

void bind_bare_block(nb::module_& module) {
  nb::class_<bare_block>(
      module, "_BareBlock",
      "Memory that is returned, in the order of its queue, when this object is destroyed.")
      .def("__init__", &init_block, nb::arg("resource").none(), nb::arg("queue").none(),
           nb::arg("nbytes").none(),
           nb::sig("def __init__(self, resource: MemoryResource, queue: Queue, nbytes: int) -> "
                   "None"))
      .def_prop_ro("ptr", &bare_block::pointer, nb::sig("def ptr(self) -> int"), "Its address.");
}

}  // namespace isthmus::python
