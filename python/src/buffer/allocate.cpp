// SPDX-License-Identifier: Apache-2.0
// MemoryResource.allocate.

#include "buffer/bindings.hpp"
#include "buffer/buffer.hpp"
#include "core/arguments.hpp"
#include "core/current.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

nb::object allocate(const Resource& self, nb::handle nbytes, nb::handle alignment,
                    nb::handle queue) {
  const nb::object queue_object =
      queue.is_none() ? self.queue_object : to_queue(queue, nb::handle{});
  return make_buffer(types.buffer, [&](Buffer* buffer) {
    construct_buffer(
        buffer, to_allocation_size(nbytes, "nbytes", self.kind, *queue_of(queue_object)), self.kind,
        to_exact_alignment(alignment), queue_object, &self, KindsAllowed::any);
  });
}

}  // namespace

void bind_allocate(nb::class_<Resource>& bound) {
  bound.def(
      "allocate", &allocate, nb::arg("nbytes").none(), nb::arg("alignment").none() = 0,
      nb::arg("queue") = nb::none(),
      nb::sig("def allocate(self, nbytes: ByteCount, alignment: int = 0, queue: Queue | None = "
              "None) -> "
              "Buffer"),
      "Buffer(nbytes, kind=..., queue=queue, alignment=alignment, resource=self).\n"
      "`alignment` 0: the device's default. Raises ValueError if it is neither 0 nor a power\n"
      "of two.");
}

}  // namespace isthmus::python
