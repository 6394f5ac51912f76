// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processors that threads may run on: how many, and which of them are near a device.
// Thread-safe.

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

namespace isthmus::os {

// Processors by the kernel's numbers. An empty set means that they are unknown.
using ProcessorSet = std::bitset<1024>;

// Parses a set as the kernel writes it, "0-3,8\n"; empty if the text is damaged.
[[nodiscard]] ProcessorSet processors_in(std::string_view list) noexcept;

// Returns the processors that the calling thread may run on.
[[nodiscard]] ProcessorSet processors_of_thread() noexcept;

// Returns the number of processors whose time the control groups of the process, versions 1 and 2,
// allow, rounded up; SIZE_MAX without a limit. `root` is prepended to the path of each file. Throws
// std::bad_alloc.
[[nodiscard]] std::size_t processor_limit(const std::string& root);

// Returns the processors nearest to the device at an address of the PCI bus ("0000:17:00.0").
// Throws std::bad_alloc.
[[nodiscard]] ProcessorSet processors_near(const std::string& pci_address, const std::string& root);

// Restricts the calling thread to these processors while the object exists. If the kernel refuses,
// the thread's processors remain unchanged.
class BoundThread {
 public:
  explicit BoundThread(const ProcessorSet& processors) noexcept;
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  ProcessorSet previous_;  // empty: nothing was changed
};

}  // namespace isthmus::os
