// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory that this process can still allocate before the kernel invokes the OOM killer.
//
// It is the minimum of the machine's MemAvailable and, for the process's control group and each of
// its ancestors, the limit minus the usage. Inactive files do not count as usage, since the kernel
// drops them first. Supports control groups of versions 1 and 2. The files are located once per
// process, and again in a forked child. Every call reads their values with one system call per file
// and does not allocate.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::os {

struct AvailableMemory {
  std::size_t bytes = SIZE_MAX;
  const char* bound = "";  // the limiting factor: "MemAvailable" or a control group's directory
};

// A file that remains open. Each read returns the kernel's current text.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) noexcept;
  OpenFile(OpenFile&& other) noexcept;
  ~OpenFile();
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  // Returns as much of the text as `buffer` holds; "" if it cannot be read.
  template <std::size_t k_size>
  [[nodiscard]] std::string_view read(char (&buffer)[k_size]) const noexcept {
    return read(buffer, k_size);
  }

 private:
  [[nodiscard]] std::string_view read(char* buffer, std::size_t nbytes) const noexcept;
  int descriptor_;
};

// Immutable, so thread-safe.
class MemoryBounds {
 public:
  // `root` is prepended to the path of each file; "" for the real files. Throws std::bad_alloc.
  explicit MemoryBounds(const std::string& root);

  // Exact if the result is below `required`; otherwise only a lower bound, for which fewer files
  // are read. The text `bound` lives as long as this object.
  [[nodiscard]] AvailableMemory available(std::size_t required = SIZE_MAX) const noexcept;
  // The lowest limit of the control groups; SIZE_MAX without one.
  [[nodiscard]] std::size_t limit() const noexcept;
  // Bytes of this process that are resident, and that are swapped out; 0 if unknown.
  [[nodiscard]] std::size_t resident() const noexcept;
  [[nodiscard]] std::size_t swapped() const noexcept;

 private:
  struct Level {
    std::string directory;
    const char* inactive;  // the key in `statistics` that includes the groups below this one
    OpenFile limit;
    OpenFile usage;
    OpenFile statistics;

    [[nodiscard]] std::size_t max_bytes() const noexcept;
    [[nodiscard]] std::size_t available(std::size_t required) const noexcept;
  };

  OpenFile machine_;
  OpenFile process_pages_;
  OpenFile process_status_;
  std::vector<Level> levels_;
};

// The bounds of this process. The first call in a process throws std::bad_alloc if there is no
// memory. The reference is valid until a fork.
[[nodiscard]] const MemoryBounds& process_memory_bounds();

// Physical memory in bytes that this process may use, the limits of its control groups included,
// and the bytes of it that are available without swapping.
struct MemoryStatus {
  std::size_t total = 0;
  std::size_t available = 0;
};
[[nodiscard]] MemoryStatus physical_memory();

}  // namespace isthmus::os
