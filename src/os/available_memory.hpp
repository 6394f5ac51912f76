#pragma once
// Memory of the host's that this process may still take before the kernel kills somebody for it.
//
// The least of what the machine has (MemAvailable) and, for the process' control group and each
// above it, its limit less what it uses; files that were not used lately do not count, as the
// kernel drops them first. Control groups of versions 1 and 2. Where the files lie is found once
// in a process, and in a forked child again; their numbers are read at every call, by one system
// call a file, without allocating.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::os {

struct memory_room {
  std::size_t bytes = SIZE_MAX;
  const char* bound = "";  // what leaves no more: "MemAvailable" or the folder of a control group
};

// A file that is kept open: its text is what the kernel has to say at the moment.
class kept_file {
 public:
  explicit kept_file(const std::string& path) noexcept;
  kept_file(kept_file&& other) noexcept;
  ~kept_file();
  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  // As much of it as `room` takes; "" where it cannot be read.
  template <std::size_t k_room>
  [[nodiscard]] std::string_view read(char (&room)[k_room]) const noexcept {
    return read(room, k_room);
  }

 private:
  [[nodiscard]] std::string_view read(char* room, std::size_t nbytes) const noexcept;
  int descriptor_;
};

// Immutable, so safe for threads.
class memory_bounds {
 public:
  // `root` stands before the path of each file ("" is the machine's own). Throws std::bad_alloc.
  explicit memory_bounds(const std::string& root);

  // Exact below `enough`; where there is more, fewer files are read. `bound` lives as long as this.
  [[nodiscard]] memory_room room(std::size_t enough = SIZE_MAX) const noexcept;
  // The least limit of the control groups; SIZE_MAX without one.
  [[nodiscard]] std::size_t limit() const noexcept;
  // Bytes of this process that lie in memory now, and those that were swapped out; 0 if not told.
  [[nodiscard]] std::size_t resident() const noexcept;
  [[nodiscard]] std::size_t swapped() const noexcept;

 private:
  struct level {
    std::string folder;
    const char* inactive;  // its name in `statistics`, of the groups below too
    kept_file limit;
    kept_file usage;
    kept_file statistics;

    [[nodiscard]] std::size_t most() const noexcept;
    [[nodiscard]] std::size_t room(std::size_t enough) const noexcept;
  };

  kept_file machine_;
  kept_file process_pages_;
  kept_file process_status_;
  std::vector<level> levels_;
};

// Of the process. Throws std::bad_alloc when it is first called in one; the reference is good till
// a fork.
[[nodiscard]] const memory_bounds& process_memory_bounds();

// Physical memory in bytes that this process may use, its control groups' limits included, and what
// of it is available without swapping.
struct memory_status {
  std::size_t total = 0;
  std::size_t available = 0;
};
[[nodiscard]] memory_status physical_memory();

}  // namespace isthmus::os
