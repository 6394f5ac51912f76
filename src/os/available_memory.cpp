// SPDX-License-Identifier: Apache-2.0
#include "os/available_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "os/cgroup_files.hpp"
#include "os/process.hpp"
#include "os/text_file.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::os {
namespace {

constexpr const char* k_machine_bound = "MemAvailable";
constexpr std::string_view k_controller = "memory";
// Version 1 reports "no limit" as the largest number of whole pages.
constexpr std::uint64_t k_no_limit = std::uint64_t{1} << 62;

struct FileNames {
  CgroupVersion version;
  const char* limit;
  const char* usage;
  const char* inactive;
};
constexpr FileNames k_versions[] = {
    {CgroupVersion::v2, "/memory.max", "/memory.current", "inactive_file"},
    {CgroupVersion::v1, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"}};

// Returns the value of the line that begins with `key`, converted from KiB to bytes.
std::optional<std::size_t> bytes_after(std::string_view text, std::string_view key) noexcept {
  const auto kib = number_after(text, key);
  return kib ? std::optional{*kib > SIZE_MAX / 1024 ? SIZE_MAX : *kib * 1024} : std::nullopt;
}

constexpr std::size_t saturating_subtract(std::size_t minuend, std::size_t subtrahend) noexcept {
  return minuend > subtrahend ? minuend - subtrahend : 0;
}

}  // namespace

OpenFile::OpenFile(const std::string& path) noexcept
    : descriptor_{open(path.c_str(), O_RDONLY | O_CLOEXEC)} {}

OpenFile::OpenFile(OpenFile&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}

OpenFile::~OpenFile() {
  if (is_open()) {
    close(descriptor_);
  }
}

std::string_view OpenFile::read(char* buffer, std::size_t nbytes) const noexcept {
  const auto count = is_open() ? pread(descriptor_, buffer, nbytes, 0) : -1;
  return {buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

MemoryBounds::MemoryBounds(const std::string& root)
    : machine_{root + "/proc/meminfo"},
      process_pages_{root + "/proc/self/statm"},
      process_status_{root + "/proc/self/status"} {
  const auto groups = read_text_file(root + "/proc/self/cgroup");
  const auto mounts = read_text_file(root + "/proc/self/mountinfo");
  for (const auto& names : k_versions) {
    const auto path = cgroup_path(groups, names.version, k_controller);
    if (!path) {
      continue;
    }
    for (auto& directory : cgroup_directories(mounts, *path, names.version, k_controller)) {
      const auto prefix = root + directory;
      Level level{std::move(directory), names.inactive, OpenFile{prefix + names.limit},
                  OpenFile{prefix + names.usage}, OpenFile{prefix + "/memory.stat"}};
      if (level.limit.is_open() && level.usage.is_open()) {
        levels_.push_back(std::move(level));
      }
    }
  }
}

std::size_t MemoryBounds::Level::max_bytes() const noexcept {
  char text[64];
  const auto value = number_in(limit.read(text));
  return value && *value < k_no_limit ? *value : SIZE_MAX;
}

// The statistics are expensive to read and can only increase the result, so they are read last.
std::size_t MemoryBounds::Level::available(std::size_t required) const noexcept {
  const auto limit_bytes = max_bytes();
  if (limit_bytes == SIZE_MAX) {
    return SIZE_MAX;
  }
  char text[8192];
  const auto usage_bytes = number_in(usage.read(text)).value_or(0);
  const auto free_bytes = saturating_subtract(limit_bytes, usage_bytes);
  if (free_bytes >= required) {
    return free_bytes;
  }
  const auto inactive_bytes = number_after(statistics.read(text), inactive).value_or(0);
  return saturating_subtract(limit_bytes, saturating_subtract(usage_bytes, inactive_bytes));
}

AvailableMemory MemoryBounds::available(std::size_t required) const noexcept {
  AvailableMemory result;
  char text[512];  // MemAvailable is on the third line
  if (const auto bytes = bytes_after(machine_.read(text), "MemAvailable:")) {
    result = {*bytes, k_machine_bound};
  }
  for (const auto& level : levels_) {
    if (const auto bytes = level.available(required); bytes < result.bytes) {
      result = {bytes, level.directory.c_str()};
    }
  }
  return result;
}

std::size_t MemoryBounds::limit() const noexcept {
  std::size_t min_limit = SIZE_MAX;
  for (const auto& level : levels_) {
    min_limit = std::min(min_limit, level.max_bytes());
  }
  return min_limit;
}

std::size_t MemoryBounds::resident() const noexcept {
  char text[128];
  return second_number_in(process_pages_.read(text)).value_or(0) * page_size();
}

std::size_t MemoryBounds::swapped() const noexcept {
  char text[4096];
  return bytes_after(process_status_.read(text), "VmSwap:").value_or(0);
}

// A forked child may be in other control groups, and the files that its parent opened describe the
// parent. The child does not close those files: a daemon closes all descriptors when it starts, so
// the numbers may refer to other files by now.
const MemoryBounds& process_memory_bounds() {
  struct CachedBounds {
    std::uint32_t forks;
    MemoryBounds bounds;
    const CachedBounds* previous;
  };
  static std::atomic<const CachedBounds*> current{nullptr};
  watch_forks();
  const auto* cached = current.load(std::memory_order_acquire);
  if (cached == nullptr || cached->forks != forks()) {
    const auto* created = new CachedBounds{forks(), MemoryBounds{""}, cached};
    if (current.compare_exchange_strong(cached, created, std::memory_order_acq_rel)) {
      cached = created;
    } else {
      delete created;
    }
  }
  return cached->bounds;
}

MemoryStatus physical_memory() {
  const auto& bounds = process_memory_bounds();
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  const auto total = std::min(pages, bounds.limit());
  return {total, std::min(total, bounds.available().bytes)};
}

}  // namespace isthmus::os
