// SPDX-License-Identifier: Apache-2.0
#pragma once
// Support for tests of adaptors: the upstreams they are tested over, and a comparison of
// statistics.
#include "support/backends.hpp"
#include "support/eventually.hpp"

namespace support {

class on_upstreams : public on_backend {
 protected:
  // A pool, whose frees are ordered by a queue, and a provider, whose frees are not.
  std::vector<im::resource> upstreams(im::kind kind) const {
    const im::context test_context = queue_.context();
    return {im::resource::pool(test_context, kind, {}, device_),
            im::resource::provider(test_context, kind, device_)};
  }
};

inline ::testing::AssertionResult counts(const im::statistics& got, const im::statistics& wanted) {
  if (got == wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "current " << got.current_count << "x" << got.current_bytes << ", peak "
         << got.peak_count << "x" << got.peak_bytes << ", total " << got.total_count << "x"
         << got.total_bytes << "; wanted " << wanted.current_count << "x" << wanted.current_bytes
         << ", " << wanted.peak_count << "x" << wanted.peak_bytes << ", " << wanted.total_count
         << "x" << wanted.total_bytes;
}

}  // namespace support
