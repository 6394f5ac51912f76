// SPDX-License-Identifier: Apache-2.0
// The memory resource that detects writes outside of live blocks.

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "memory/bindings.hpp"
#include "memory/budget.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

struct DebugResource : AdaptorResource {};

void init_debug(DebugResource* self, nb::handle upstream, nb::handle kept_bytes) {
  const auto size = to_bytes_for(upstream, kept_bytes, "kept_bytes");
  construct_resource(self, DebugResource{make_adaptor(upstream, isthmus_resource_debug, size)});
}

}  // namespace

void bind_debug(nb::module_& module) {
  nb::class_<DebugResource, AdaptorResource>(
      module, "DebugResource",
      "Detects writes outside of blocks and to freed blocks: DebugResource(upstream,\n"
      "kept_bytes='16MiB').\n\n"
      "For programs under test. Each block lies between red zones of 64 bytes, or of its\n"
      "alignment if that is more. `kept_bytes` of freed blocks are poisoned, and retained for a\n"
      "while to detect such writes. An allocation waits for its queue, and memory is returned\n"
      "once nothing uses it. Detected writes are reported on the standard error stream, and\n"
      "raised by verify(). Raises UnsupportedError for an upstream that may allocate device\n"
      "memory, which the host cannot inspect.")
      .def("__init__", &init_debug, nb::arg("upstream").none(),
           nb::arg("kept_bytes").none() = "16MiB",
           nb::sig("def __init__(self, upstream: MemoryResource, kept_bytes: ByteCount = '16MiB') "
                   "-> None"));
}

}  // namespace isthmus::python
