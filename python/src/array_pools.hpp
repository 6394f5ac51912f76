#pragma once
// The pools that buffers and arrays come from where no resource is named and none is current: the
// library's (isthmus_default_pool), kept at hand for each kind of memory in a context of a device.
//
// Contexts come and go, so an entry beyond `k_most` replaces those whose pools hold no memory. A
// reference to one is valid until other code of Python's runs or the interpreter's lock is
// released.

#include <memory>
#include <vector>

#include "objects.hpp"

namespace isthmus::python {

// References to those of one device, for as long as it has an object of Python's; what was made of
// a pool keeps it.
class device_pools {
 public:
  device_pools() = default;
  device_pools(const device_pools&) = delete;
  device_pools& operator=(const device_pools&) = delete;
  ~device_pools() = default;

  // Gives back what is free, of a device that nobody can find again. Releases the interpreter's
  // lock.
  void trim() noexcept;
  // Where the driver refuses such memory, its errors. May release the interpreter's lock.
  [[nodiscard]] const resource& pool_for(isthmus_kind_t kind, const queue& on, pool_use use);

 private:
  static constexpr std::size_t k_most = 32;
  [[nodiscard]] const resource* known(isthmus_kind_t kind, const queue& on,
                                      pool_use use) const noexcept;
  void drop_empty() noexcept;
  struct entry {
    isthmus_kind_t kind;
    pool_use use;
    std::uintptr_t context_key;
    std::unique_ptr<resource> pool;
  };
  std::vector<entry> entries_;
};

[[nodiscard]] const resource& default_pool(isthmus_kind_t kind, const queue& on, pool_use use);

void bind_array_pools(nb::module_& module);

}  // namespace isthmus::python
