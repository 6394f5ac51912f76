// SPDX-License-Identifier: Apache-2.0
// The native module isthmus._core.

#include <dlfcn.h>
#include <pthread.h>

#include "array/bindings.hpp"
#include "buffer/bindings.hpp"
#include "core/bindings.hpp"
#include "core/current.hpp"
#include "core/errors.hpp"
#include "core/gil.hpp"
#include "core/interned.hpp"
#include "core/owners.hpp"
#include "interop/bindings.hpp"
#include "layout/dtype.hpp"
#include "memory/bindings.hpp"
#include "memory/pressure.hpp"
#include "memory/resources.hpp"
#include "transfer/bindings.hpp"
#include "transfer/submit.hpp"
#include "unified/bindings.hpp"

namespace isthmus::python {
namespace {

std::atomic<bool> forked{false};

// Runs before the interpreter ends: no library thread may take its lock afterwards. A forked child
// has none of these threads.
void at_exit() {
  if (is_forked_child()) {
    return;
  }
  close_oom_callbacks();
  stop_callbacks();
  {
    const GilRelease released;
    isthmus_shutdown_host_functions();
  }
  stop_deferring();
  drain_deferred();
  clear_current();
  clear_resources();
}

const char* library_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&isthmus_version), &info) == 0) {
    return "";
  }
  return info.dli_fname;
}

}  // namespace

bool is_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

}  // namespace isthmus::python

NB_MODULE(_core, module) {
  using namespace isthmus::python;
  nb::set_leak_warnings(false);  // pending operations may hold objects that are never released
  module.doc() = "The native part of isthmus.";
  module.attr("__version__") = isthmus_version();
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  intern_names();
  bind_errors(module);
  bind_platform(module);
  bind_device(module);
  bind_context(module);
  bind_event(module);
  auto queue = bind_queue(module);
  bind_queue_operations(queue);
  bind_submit(module);
  bind_current(module);
  bind_budget(module);
  auto resource = bind_resource(module);
  bind_oom_callbacks(module);
  bind_current_resource(module);
  bind_replay(module);
  auto buffer = bind_buffer(module);
  bind_allocate(resource);
  bind_buffer_operations(buffer);
  bind_buffer_exchange(module, buffer);
  bind_dtype(module);
  bind_default_pools(module);
  bind_allocation_scopes(module);
  bind_host_access(module);
  bind_array(module);
  bind_array_make(module);
  bind_ipc(module, buffer);
  bind_ranges(module);
  bind_nd(module);
  bind_numpy_items(module);
  bind_usm_memory(module);
  bind_pin(module);
  bind_unified(module);
  bind_sim(module);
  bind_byte_counts(module);
  bind_c_api(module);
  bind_signatures(module.attr("copyto"), buffer, "copy_from");
  module.def("_library_path", &library_path, "The file that libisthmus was loaded from.");
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&at_exit));
}
