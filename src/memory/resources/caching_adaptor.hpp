// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of adaptors that cache upstream memory which no caller has allocated.
//
// An adaptor releases this memory whenever the driver refuses a request (memory_cache.hpp). It may
// have made that request itself, so it holds no lock while it calls upstream. It is in the
// process-wide list from its first upstream allocation until its last reference is dropped.

#include "memory/base/memory_cache.hpp"
#include "memory/resources/adaptor.hpp"

namespace isthmus {

class CachingAdaptor : public Adaptor, public MemoryCache {
 public:
  CachingAdaptor(MemoryResource& upstream, Nature nature)
      : Adaptor{upstream, nature}, MemoryCache{*this, upstream} {}

  [[nodiscard]] bool is_driver_backed() const noexcept final {
    return upstream().is_driver_backed();
  }

 protected:
  void on_last_release() noexcept override;
};

}  // namespace isthmus
