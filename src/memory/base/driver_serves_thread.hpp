// SPDX-License-Identifier: Apache-2.0
#pragma once
// Marks calls of the program's allocation functions, within which the driver serves buffers.

#include "core/tls.hpp"
#include "memory/base/using_block.hpp"

namespace isthmus {

// While an object of this class exists, buffers that the calling thread creates without a resource
// are allocated by the driver, except in `using` blocks that it enters meanwhile. A resource
// creates one while it calls the program's allocation functions, because that resource may be the
// upstream of a pool.
class DriverServesThread {
 public:
  DriverServesThread() noexcept { ++depth_; }
  DriverServesThread(const DriverServesThread&) = delete;
  DriverServesThread& operator=(const DriverServesThread&) = delete;
  ~DriverServesThread() { --depth_; }
  [[nodiscard]] static bool is_active() noexcept { return depth_ != 0; }

 private:
  const WithoutCurrentResource without_current_;
  ISTHMUS_TLS_MODEL static inline thread_local constinit int depth_ = 0;
};

}  // namespace isthmus
