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

constexpr const char* k_machine = "MemAvailable";
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
    {CgroupVersion::two, "/memory.max", "/memory.current", "inactive_file"},
    {CgroupVersion::one, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
     "total_inactive_file"}};

// Of a line whose value is in KiB.
std::optional<std::size_t> bytes_behind(std::string_view text, std::string_view key) noexcept {
  const auto kib = number_behind(text, key);
  return kib ? std::optional{*kib > SIZE_MAX / 1024 ? SIZE_MAX : *kib * 1024} : std::nullopt;
}

constexpr std::size_t less(std::size_t first, std::size_t value) noexcept {
  return first > value ? first - value : 0;
}

}  // namespace

KeptFile::KeptFile(const std::string& path) noexcept
    : descriptor_{open(path.c_str(), O_RDONLY | O_CLOEXEC)} {}

KeptFile::KeptFile(KeptFile&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}

KeptFile::~KeptFile() {
  if (is_open()) {
    close(descriptor_);
  }
}

std::string_view KeptFile::read(char* room, std::size_t nbytes) const noexcept {
  const auto got = is_open() ? pread(descriptor_, room, nbytes, 0) : -1;
  return {room, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

MemoryBounds::MemoryBounds(const std::string& root)
    : machine_{root + "/proc/meminfo"},
      process_pages_{root + "/proc/self/statm"},
      process_status_{root + "/proc/self/status"} {
  const auto groups = whole_text(root + "/proc/self/cgroup");
  const auto mounts = whole_text(root + "/proc/self/mountinfo");
  for (const auto& names : k_versions) {
    const auto path = cgroup_path(groups, names.version, k_controller);
    if (!path) {
      continue;
    }
    for (auto& folder : cgroup_folders(mounts, *path, names.version, k_controller)) {
      const auto place = root + folder;
      Level found{std::move(folder), names.inactive, KeptFile{place + names.limit},
                  KeptFile{place + names.usage}, KeptFile{place + "/memory.stat"}};
      if (found.limit.is_open() && found.usage.is_open()) {
        levels_.push_back(std::move(found));
      }
    }
  }
}

std::size_t MemoryBounds::Level::most() const noexcept {
  char text[64];
  const auto told = number_in(limit.read(text));
  return told && *told < k_no_limit ? *told : SIZE_MAX;
}

// The statistics are expensive to read and can only increase the result, so they are read last.
std::size_t MemoryBounds::Level::room(std::size_t enough) const noexcept {
  const auto allowed = most();
  if (allowed == SIZE_MAX) {
    return SIZE_MAX;
  }
  char text[8192];
  const auto used = number_in(usage.read(text)).value_or(0);
  const auto left = less(allowed, used);
  if (left >= enough) {
    return left;
  }
  const auto dropped = number_behind(statistics.read(text), inactive).value_or(0);
  return less(allowed, less(used, dropped));
}

MemoryRoom MemoryBounds::room(std::size_t enough) const noexcept {
  MemoryRoom least;
  char text[512];  // MemAvailable is on the third line
  if (const auto bytes = bytes_behind(machine_.read(text), "MemAvailable:")) {
    least = {*bytes, k_machine};
  }
  for (const auto& each : levels_) {
    if (const auto bytes = each.room(enough); bytes < least.bytes) {
      least = {bytes, each.folder.c_str()};
    }
  }
  return least;
}

std::size_t MemoryBounds::limit() const noexcept {
  std::size_t least = SIZE_MAX;
  for (const auto& each : levels_) {
    least = std::min(least, each.most());
  }
  return least;
}

std::size_t MemoryBounds::resident() const noexcept {
  char text[128];
  return second_number_in(process_pages_.read(text)).value_or(0) * page_size();
}

std::size_t MemoryBounds::swapped() const noexcept {
  char text[4096];
  return bytes_behind(process_status_.read(text), "VmSwap:").value_or(0);
}

// A forked child may be in other control groups, and the files of its parent describe the parent.
// The child leaves those files open: a daemon closes all descriptors, so the numbers may refer to
// other files by now.
const MemoryBounds& process_memory_bounds() {
  struct Found {
    std::uint32_t forks;
    MemoryBounds bounds;
    const Found* before;
  };
  static std::atomic<const Found*> current{nullptr};
  watch_forks();
  const auto* known = current.load(std::memory_order_acquire);
  if (known == nullptr || known->forks != forks()) {
    const auto* made = new Found{forks(), MemoryBounds{""}, known};
    if (current.compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
      known = made;
    } else {
      delete made;
    }
  }
  return known->bounds;
}

MemoryStatus physical_memory() {
  const auto& bounds = process_memory_bounds();
  const auto pages = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  const auto total = std::min(pages, bounds.limit());
  return {total, std::min(total, bounds.room().bytes)};
}

}  // namespace isthmus::os
