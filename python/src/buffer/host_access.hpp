// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which memory is exported to the host: by the buffer protocol, NumPy's interface and DLPack. Needs
// the interpreter's lock.
//
// Memory of device kind of the host device is ordinary host memory. It is exported with a
// PortabilityWarning, because the same program fails on every other device. Strict mode refuses the
// export on the host device, too.

#include "core/objects.hpp"

namespace isthmus::python {

// Whether the host can access memory of that kind on every device.
[[nodiscard]] inline bool host_reachable(isthmus_kind_t kind) noexcept {
  return kind != ISTHMUS_KIND_DEVICE;
}
[[nodiscard]] bool is_strict();
// Whether memory of that kind and queue may be exported to the host now.
[[nodiscard]] inline bool host_may_access(isthmus_kind_t kind, const Queue& queue) {
  return host_reachable(kind) || (queue.is_on_host && !is_strict());
}
// Call before an export to the host. Issues PortabilityWarning for device kind, and throws it if a
// warning filter makes it an error.
void warn_if_not_portable(isthmus_kind_t kind);

}  // namespace isthmus::python
