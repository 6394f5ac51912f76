// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/caching_adaptor.hpp"

namespace isthmus {

void CachingAdaptor::on_last_release() noexcept {
  unlist();
  Adaptor::on_last_release();
}

}  // namespace isthmus
