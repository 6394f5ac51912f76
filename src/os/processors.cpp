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

bool run_on(const ProcessorSet& wanted) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (std::size_t each = 0; each < wanted.size(); ++each) {
    if (wanted[each]) {
      CPU_SET(each, &mask);
    }
  }
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// Processors for that much time in each period; SIZE_MAX without a limit.
std::size_t rounded_up(std::optional<std::uint64_t> time, std::optional<std::uint64_t> period) {
  if (!time || !period || *period == 0) {
    return SIZE_MAX;
  }
  return std::max<std::size_t>(1, *time / *period + (*time % *period != 0 ? 1 : 0));
}

std::size_t limit_of(const std::string& folder, CgroupVersion version) {
  if (version == CgroupVersion::two) {
    const auto both = whole_text(folder + "/cpu.max");
    return rounded_up(number_in(both), second_number_in(both));
  }
  return rounded_up(number_in(whole_text(folder + "/cpu.cfs_quota_us")),
                    number_in(whole_text(folder + "/cpu.cfs_period_us")));
}

}  // namespace

ProcessorSet processors_in(std::string_view list) noexcept {
  ProcessorSet found;
  const auto* at = list.data();
  const auto* const end = at + list.size();
  for (;;) {
    std::size_t first = 0;
    auto [behind, problem] = std::from_chars(at, end, first);
    auto last = first;
    if (problem == std::errc{} && behind != end && *behind == '-') {
      const auto second = std::from_chars(behind + 1, end, last);
      behind = second.ptr;
      problem = second.ec;
    }
    if (problem != std::errc{} || last < first || last >= found.size() || behind == end) {
      return {};
    }
    for (auto each = first; each <= last; ++each) {
      found.set(each);
    }
    if (*behind == '\n') {
      return found;
    }
    if (*behind != ',') {
      return {};
    }
    at = behind + 1;
  }
}

// Empty if the kernel has more processors than the set can hold.
ProcessorSet processors_of_thread() noexcept {
  ProcessorSet found;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (std::size_t each = 0; each < found.size(); ++each) {
      found[each] = CPU_ISSET(each, &mask);
    }
  }
  return found;
}

std::size_t processor_limit(const std::string& root) {
  constexpr std::string_view k_controller = "cpu";
  const auto groups = whole_text(root + "/proc/self/cgroup");
  const auto mounts = whole_text(root + "/proc/self/mountinfo");
  std::size_t least = SIZE_MAX;
  for (const auto of : {CgroupVersion::one, CgroupVersion::two}) {
    const auto path = cgroup_path(groups, of, k_controller);
    if (!path) {
      continue;
    }
    for (const auto& folder : cgroup_folders(mounts, *path, of, k_controller)) {
      least = std::min(least, limit_of(root + folder, of));
    }
  }
  return least;
}

ProcessorSet processors_near(const std::string& pci_address, const std::string& root) {
  return pci_address.empty() ? ProcessorSet{}
                             : processors_in(whole_text(root + "/sys/bus/pci/devices/" +
                                                        pci_address + "/local_cpulist"));
}

BoundThread::BoundThread(const ProcessorSet& wanted) noexcept {
  const auto now = processors_of_thread();
  if (wanted.any() && now.any() && now != wanted && run_on(wanted)) {
    before_ = now;
  }
}

BoundThread::~BoundThread() {
  if (before_.any()) {
    run_on(before_);
  }
}

}  // namespace isthmus::os
