#pragma once
// The processors that threads may run on: how many, and which of them are near a device.

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

namespace isthmus::os {

// By the kernel's numbers; empty: not told.
using processor_set = std::bitset<1024>;

// Of a set as the kernel writes it, "0-3,8\n"; empty where the text is damaged.
[[nodiscard]] processor_set processors_in(std::string_view list) noexcept;

// Those that the calling thread may run on.
[[nodiscard]] processor_set processors_of_thread() noexcept;

// As many processors' time as the control groups of the process, versions 1 and 2, leave it, a part
// of one counted in full; SIZE_MAX without a limit. `root` stands before the path of each file.
// Throws std::bad_alloc.
[[nodiscard]] std::size_t processor_limit(const std::string& root);

// Those nearest to the device at that address of the PCI bus ("0000:17:00.0"). Throws
// std::bad_alloc.
[[nodiscard]] processor_set processors_near(const std::string& pci_address,
                                            const std::string& root);

// While it lives the calling thread runs on those processors, or where it ran if that cannot be.
class bound_thread {
 public:
  explicit bound_thread(const processor_set& wanted) noexcept;
  ~bound_thread();
  bound_thread(const bound_thread&) = delete;
  bound_thread& operator=(const bound_thread&) = delete;

 private:
  processor_set before_;  // empty: nothing was changed
};

}  // namespace isthmus::os
