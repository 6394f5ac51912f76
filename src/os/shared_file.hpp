// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that can be mapped several times: a file that only this process and its children can
// access. Its pages are zero and take no memory until they are touched. Thread-safe.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus::os {

// Mappings remain valid after the file is closed.
class SharedFile {
 public:
  // `nbytes` is a multiple of the page size. The descriptor is closed on exec.
  [[nodiscard]] static Result<SharedFile> open(std::size_t nbytes);
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&& other) = delete;
  ~SharedFile();

  // Maps read-write at `start`, which the caller has reserved, or anywhere if it is null.
  [[nodiscard]] Result<void*> map(void* start, std::size_t offset, std::size_t nbytes) const;
  // The same for a forked child, as a private mapping: the parent does not see the child's writes,
  // and the child sees later writes of the parent only in pages that it has not written. If the
  // kernel refuses, any access there faults. May be called after a fork.
  void map_privately(void* start, std::size_t offset, std::size_t nbytes) const noexcept;
  // Makes the pages zero and releases their memory, in every mapping. Returns false if the pages
  // may keep old contents; they must then not be used again.
  [[nodiscard]] bool clear(std::size_t offset, std::size_t nbytes) const noexcept;

 private:
  explicit SharedFile(int descriptor) noexcept : descriptor_{descriptor} {}

  int descriptor_;
};

// Faults shared pages in for writing; their contents are preserved. OUT_OF_MEMORY if touching them
// would end the process, or before Linux 5.14.
[[nodiscard]] Result<void> populate_shared(void* start, std::size_t nbytes);
// Enters the resident pages of the range in the page table, with their current protection.
void map_present_pages(void* start, std::size_t nbytes) noexcept;

}  // namespace isthmus::os
