// SPDX-License-Identifier: Apache-2.0
// Memory resources that divide memory of their upstream into blocks: monotonic, fixed size, arena.

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "memory/bindings.hpp"
#include "memory/budget.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

struct MonotonicResource : AdaptorResource {};

void init_monotonic(MonotonicResource* self, nb::handle upstream, nb::handle first_bytes) {
  const auto size = to_bytes_for(upstream, first_bytes, "first_bytes");
  construct_resource(self,
                     MonotonicResource{make_adaptor(upstream, isthmus_resource_monotonic, size)});
}

void release(const MonotonicResource& self) {
  check(without_lock([&] { return isthmus_monotonic_release(self.raw.get()); }));
}

struct FixedSizeResource : AdaptorResource {
  std::uint64_t block_bytes = 0;
};

void init_fixed_size(FixedSizeResource* self, nb::handle upstream, nb::handle block_bytes,
                     nb::handle blocks) {
  const auto size = to_bytes_for(upstream, block_bytes, "block_bytes");
  construct_resource(self, FixedSizeResource{make_adaptor(upstream, isthmus_resource_fixed_size,
                                                          size, to_size(blocks, "blocks")),
                                             size});
}

struct ArenaResource : AdaptorResource {};

void init_arena(ArenaResource* self, nb::handle upstream, nb::handle limit_bytes) {
  const auto limit = to_bytes_for(upstream, limit_bytes, "limit_bytes", PercentOf::device);
  construct_resource(self, ArenaResource{make_adaptor(upstream, isthmus_resource_arena, limit)});
}

}  // namespace

void bind_cutting(nb::module_& module) {
  nb::class_<MonotonicResource, AdaptorResource> monotonic(
      module, "MonotonicResource",
      "Allocates consecutive blocks from chunks of its upstream, and releases the chunks\n"
      "together: MonotonicResource(upstream, first_bytes=0).\n\n"
      "For memory that is allocated in steps and released together. The first chunk has\n"
      "`first_bytes` (0: 64 KiB). Each further chunk has twice the size of the previous one, or\n"
      "the size that the request needs. Freeing a Buffer returns nothing. A chunk is returned by\n"
      "release(), or when the resource is destroyed, once no Buffer lies in it and the work on it\n"
      "has completed. Raises UnsupportedError for an upstream that allocates memory of several\n"
      "kinds.\n\n"
      "As a context manager, it calls release() on exit.");
  bind_scope<MonotonicResource>(monotonic, &enter_nothing, &release);
  monotonic
      .def("__init__", &init_monotonic, nb::arg("upstream").none(),
           nb::arg("first_bytes").none() = 0,
           nb::sig("def __init__(self, upstream: MemoryResource, first_bytes: ByteCount = 0) -> "
                   "None"))
      .def("release", &release, "Releases all chunks: the next allocation comes from a new one.");
  nb::class_<FixedSizeResource, AdaptorResource>(
      module, "FixedSizeResource",
      "Allocates blocks of one size from slabs of its upstream: FixedSizeResource(upstream,\n"
      "block_bytes, blocks=0).\n\n"
      "A slab has `blocks` blocks (0: 1 MiB of them, at least 8). A larger Buffer raises\n"
      "InvalidArgumentError: use a BinningResource to serve it from another resource. A block\n"
      "that is freed after work on a queue is reused at once on that queue, and elsewhere after\n"
      "the work has completed. Slabs that are entirely free are returned by trim(), and when a\n"
      "request of any resource would otherwise fail. Raises UnsupportedError for an upstream that\n"
      "allocates memory of several kinds.")
      .def("__init__", &init_fixed_size, nb::arg("upstream").none(), nb::arg("block_bytes").none(),
           nb::arg("blocks").none() = 0,
           nb::sig("def __init__(self, upstream: MemoryResource, block_bytes: ByteCount, blocks: "
                   "int = 0) -> None"))
      .def_prop_ro(
          "block_bytes", [](const FixedSizeResource& self) { return self.block_bytes; },
          "The size of the largest Buffer that the resource allocates.");
  nb::class_<ArenaResource, AdaptorResource>(
      module, "ArenaResource",
      "Allocates from superblocks that threads do not share: ArenaResource(upstream,\n"
      "limit_bytes=0).\n\n"
      "Each thread has an arena for each queue. An arena without enough free memory obtains\n"
      "another superblock, of 1 MiB or the size that the request needs, and does not search other\n"
      "arenas; a PoolResource does, and is nearly always the better choice. Superblocks that\n"
      "are entirely free are returned by trim(), and before memory runs out. They hold at most\n"
      "`limit_bytes` (0: no limit). Raises UnsupportedError for an upstream that\n"
      "allocates memory of several kinds.")
      .def("__init__", &init_arena, nb::arg("upstream").none(), nb::arg("limit_bytes").none() = 0,
           nb::sig("def __init__(self, upstream: MemoryResource, limit_bytes: ByteCount = 0) -> "
                   "None"));
}

}  // namespace isthmus::python
