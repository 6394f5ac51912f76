// SPDX-License-Identifier: Apache-2.0
#include "os/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>

#include "os/cgroup_files.hpp"
#include "os/text_file.hpp"

namespace isthmus::os {
namespace {

static_assert(ProcessorSet{}.size() == CPU_SETSIZE);

bool set_affinity(const ProcessorSet& processors) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (std::size_t i = 0; i < processors.size(); ++i) {
    if (processors[i]) {
      CPU_SET(i, &mask);
    }
  }
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// Returns the number of processors whose time amounts to `quota` in each `period`, rounded up;
// SIZE_MAX without a limit.
std::size_t processors_for_quota(std::optional<std::uint64_t> quota,
                                 std::optional<std::uint64_t> period) {
  if (!quota || !period || *period == 0) {
    return SIZE_MAX;
  }
  return std::max<std::size_t>(1, *quota / *period + (*quota % *period != 0 ? 1 : 0));
}

std::size_t processor_limit_in(const std::string& directory, CgroupVersion version) {
  if (version == CgroupVersion::v2) {
    const auto line = read_text_file(directory + "/cpu.max");
    return processors_for_quota(number_in(line), second_number_in(line));
  }
  return processors_for_quota(number_in(read_text_file(directory + "/cpu.cfs_quota_us")),
                              number_in(read_text_file(directory + "/cpu.cfs_period_us")));
}

}  // namespace

ProcessorSet processors_in(std::string_view list) noexcept {
  ProcessorSet result;
  const auto* next_item = list.data();
  const auto* const end = next_item + list.size();
  for (;;) {
    std::size_t first = 0;
    auto [next, problem] = std::from_chars(next_item, end, first);
    auto last = first;
    if (problem == std::errc{} && next != end && *next == '-') {
      const auto second = std::from_chars(next + 1, end, last);
      next = second.ptr;
      problem = second.ec;
    }
    if (problem != std::errc{} || last < first || last >= result.size() || next == end) {
      return {};
    }
    for (auto i = first; i <= last; ++i) {
      result.set(i);
    }
    if (*next == '\n') {
      return result;
    }
    if (*next != ',') {
      return {};
    }
    next_item = next + 1;
  }
}

// Empty if the kernel has more processors than the set can hold.
ProcessorSet processors_of_thread() noexcept {
  ProcessorSet result;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = CPU_ISSET(i, &mask);
    }
  }
  return result;
}

std::size_t processor_limit(const std::string& root) {
  constexpr std::string_view k_controller = "cpu";
  const auto groups = read_text_file(root + "/proc/self/cgroup");
  const auto mounts = read_text_file(root + "/proc/self/mountinfo");
  std::size_t min_limit = SIZE_MAX;
  for (const auto version : {CgroupVersion::v1, CgroupVersion::v2}) {
    const auto path = cgroup_path(groups, version, k_controller);
    if (!path) {
      continue;
    }
    for (const auto& directory : cgroup_directories(mounts, *path, version, k_controller)) {
      min_limit = std::min(min_limit, processor_limit_in(root + directory, version));
    }
  }
  return min_limit;
}

ProcessorSet processors_near(const std::string& pci_address, const std::string& root) {
  return pci_address.empty() ? ProcessorSet{}
                             : processors_in(read_text_file(root + "/sys/bus/pci/devices/" +
                                                            pci_address + "/local_cpulist"));
}

BoundThread::BoundThread(const ProcessorSet& processors) noexcept {
  const auto current = processors_of_thread();
  if (processors.any() && current.any() && current != processors && set_affinity(processors)) {
    previous_ = current;
  }
}

BoundThread::~BoundThread() {
  if (previous_.any()) {
    set_affinity(previous_);
  }
}

}  // namespace isthmus::os
