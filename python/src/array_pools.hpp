#pragma once
// The pools that arrays come out of where no resource is named and none is current: one for each
// kind of memory in a context of a device, made when it is first asked for.

#include <memory>
#include <vector>

#include "objects.hpp"

namespace isthmus::python {

// Of one device, which has them for as long as it has an object of Python's. That of a simulated
// device may go: what was made of a pool keeps it.
class device_pools {
 public:
  device_pools();
  device_pools(const device_pools&) = delete;
  device_pools& operator=(const device_pools&) = delete;
  ~device_pools();

  // Where the driver refuses such memory, its errors. Stays where it is.
  [[nodiscard]] const resource& pool_for(isthmus_kind_t kind, const queue& on);
  // All that it has so far.
  void add_to(std::vector<resource_handle>& all) const;

 private:
  struct entry {
    isthmus_kind_t kind;
    std::uintptr_t context_key;
    std::unique_ptr<resource> pool;
  };
  std::vector<entry> entries_;
};

[[nodiscard]] const resource& default_pool(isthmus_kind_t kind, const queue& on);

void bind_array_pools(nb::module_& module);

}  // namespace isthmus::python
