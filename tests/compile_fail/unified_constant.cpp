// expect: T is trivially copyable and not const
// SPDX-License-Identifier: Apache-2.0
// Both sides write the memory: read-only access is a host_read.
#include <isthmus/isthmus.hpp>

isthmus::unified_buffer<const float> make() { return isthmus::unified_buffer<const float>(3); }
