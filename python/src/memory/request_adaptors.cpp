// SPDX-License-Identifier: Apache-2.0
// Memory resources that inspect each request: aligned, binning, prefetch, log.

#include <algorithm>
#include <vector>

#include "core/arguments.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "memory/bindings.hpp"
#include "memory/budget.hpp"
#include "memory/resources.hpp"

namespace isthmus::python {
namespace {

struct AlignedResource : AdaptorResource {};
struct LogResource : AdaptorResource {};
struct PrefetchResource : AdaptorResource {};
struct BinningResource : AdaptorResource {
  nb::object bins;
};

void init_aligned(AlignedResource* self, nb::handle upstream, nb::handle alignment,
                  nb::handle min_bytes) {
  const auto aligned_to = to_bytes_for(upstream, alignment, "alignment");
  const auto threshold = to_bytes_for(upstream, min_bytes, "min_bytes");
  construct_resource(self, AlignedResource{make_adaptor(upstream, isthmus_resource_aligned,
                                                        aligned_to, threshold)});
}

void init_prefetch(PrefetchResource* self, nb::handle upstream) {
  construct_resource(self, PrefetchResource{make_adaptor(upstream, isthmus_resource_prefetch)});
}

void init_binning(BinningResource* self, nb::handle upstream, nb::handle argument) {
  static_cast<void>(require_resource(upstream, "upstream"));
  if (!PyDict_Check(argument.ptr())) {
    raise_python(PyExc_TypeError, "bins must be a dict of sizes and resources, not %R",
                 argument.ptr());
  }
  const nb::dict bins = nb::borrow<nb::dict>(argument);
  std::vector<isthmus_bin_t> raw;
  nb::dict by_bytes;
  for (const auto& [max_bytes, bin] : bins) {
    const auto& bin_resource = require_resource(bin, "a bin");
    const auto bytes = to_bytes_for(upstream, max_bytes, "size of a bin");
    raw.push_back({bytes, bin_resource.raw.get()});
    by_bytes[nb::int_(bytes)] = bin;
  }
  std::sort(raw.begin(), raw.end(),
            [](const auto& a, const auto& b) { return a.max_bytes < b.max_bytes; });
  construct_resource(self, BinningResource{make_adaptor(upstream, isthmus_resource_binning,
                                                        raw.data(), raw.size()),
                                           by_bytes});
}

void init_log(LogResource* self, nb::handle upstream, nb::handle path) {
  static_cast<void>(require_resource(upstream, "upstream"));  // before the path is converted
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) {
    raise_set();
  }
  const nb::object bytes = nb::steal(encoded);
  construct_resource(
      self, LogResource{make_adaptor(upstream, isthmus_resource_log, PyBytes_AS_STRING(encoded))});
}

void flush(const LogResource& self) {
  check(without_lock([&] { return isthmus_log_flush(self.raw.get()); }));
}

}  // namespace

void bind_request_adaptors(nb::module_& module) {
  nb::class_<AlignedResource, AdaptorResource>(
      module, "AlignedResource",
      "Aligns requests of at least `min_bytes` to `alignment`, a power of two, or to more if\n"
      "requested: AlignedResource(upstream, alignment, min_bytes=0). Both are integers or text:\n"
      "\"4KiB\".")
      .def("__init__", &init_aligned, nb::arg("upstream").none(), nb::arg("alignment").none(),
           nb::arg("min_bytes").none() = 0,
           nb::sig("def __init__(self, upstream: MemoryResource, alignment: ByteCount, "
                   "min_bytes: ByteCount = 0) -> None"));
  nb::class_<BinningResource, AdaptorResource>(
      module, "BinningResource",
      "Chooses a resource by size: BinningResource(upstream, {256: small, \"64KiB\": medium}).\n\n"
      "A request is served by the resource with the smallest size that it does not exceed, else\n"
      "by upstream. All must belong to one context (else WrongContextError), and may be of any\n"
      "kind.")
      .def("__init__", &init_binning, nb::arg("upstream").none(), nb::arg("bins").none(),
           nb::sig("def __init__(self, upstream: MemoryResource, bins: dict[int, MemoryResource] "
                   "| dict[str, MemoryResource] | dict[ByteCount, MemoryResource]) -> None"))
      .def_prop_ro(
          "bins",
          [](const BinningResource& self) { return nb::steal(PyDict_Copy(self.bins.ptr())); },
          nb::sig("def bins(self) -> dict[int, MemoryResource]"),
          "A copy of the dictionary, with sizes in bytes.");
  nb::class_<PrefetchResource, AdaptorResource>(
      module, "PrefetchResource",
      "Requests that the driver move shared memory to the device when it is allocated:\n"
      "PrefetchResource(upstream).\n\n"
      "The request is submitted to the Buffer's queue. It is a hint: it does nothing for other\n"
      "kinds, nor on a device without the capability \"prefetch\", and errors of the driver are\n"
      "ignored.")
      .def("__init__", &init_prefetch, nb::arg("upstream").none(),
           nb::sig("def __init__(self, upstream: MemoryResource) -> None"));
  nb::class_<LogResource, AdaptorResource>(
      module, "LogResource",
      "Writes a row for each allocation, failure and free to a CSV file, in the columns of\n"
      "RMM's logs: LogResource(upstream, path).\n\n"
      "Thread,Time,Action,Pointer,Size,Stream. An existing file is truncated. Rows are written\n"
      "some thousands at a time, by flush(), with the last reference, and when the process\n"
      "exits. Raises InvalidArgumentError for a file that cannot be created, or that another\n"
      "log, of this process or another one, is writing to.")
      .def("__init__", &init_log, nb::arg("upstream").none(), nb::arg("path").none(),
           nb::sig("def __init__(self, upstream: MemoryResource, path: str | PathLike[str]) -> "
                   "None"))
      .def("flush", &flush,
           "Writes all rows up to the first free that is in progress on another thread. Raises\n"
           "DriverError, once, if rows were lost since the last call because the file could not\n"
           "be written.");
}

}  // namespace isthmus::python
