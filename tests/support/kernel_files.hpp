// SPDX-License-Identifier: Apache-2.0
// A temporary folder that imitates the files in which the Linux kernel reports memory and control
// groups.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace support {

class kernel_files {
 public:
  kernel_files() {
    std::string name = (std::filesystem::temp_directory_path() / "isthmus.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
    machine(1 << 20);
    process(0, 0);
  }
  ~kernel_files() { std::filesystem::remove_all(root_); }
  kernel_files(const kernel_files&) = delete;
  kernel_files& operator=(const kernel_files&) = delete;

  const std::string& root() const { return root_; }

  // Overwrites an existing file in place, so that a process which has it open sees the change.
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void write(const std::string& path, std::size_t number) const {
    write(path, std::to_string(number) + "\n");
  }
  void machine(std::size_t available_kib) const {
    write("/proc/meminfo", "MemTotal: 99999999 kB\nMemFree: 1 kB\nMemAvailable: " +
                               std::to_string(available_kib) + " kB\nBuffers: 1 kB\n");
  }
  void process(std::size_t resident_pages, std::size_t swapped_kib) const {
    write("/proc/self/statm", "99999 " + std::to_string(resident_pages) + " 3 4 0 5 0\n");
    write("/proc/self/status",
          "Name:\tx\nVmRSS:\t 7 kB\nVmSwap:\t " + std::to_string(swapped_kib) + " kB\n");
  }
  // Puts the process into a control group: of version 2 here, of version 1 in `in_old_group`.
  void in_group(const std::string& path) const {
    write("/proc/self/cgroup", "0::" + path + "\n");
    write("/proc/self/mountinfo", "29 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n");
  }
  void in_old_group(const std::string& path) const {
    write("/proc/self/cgroup", "4:memory:" + path + "\n0::/\n");
    write("/proc/self/mountinfo",
          "36 31 0:33 / /old rw - cgroup cgroup rw,memory\n"
          "29 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n");
  }
  void group(const std::string& path, const std::string& max, std::size_t used,
             std::size_t inactive) const {
    write("/groups" + path + "/memory.max", max + "\n");
    write("/groups" + path + "/memory.current", used);
    write("/groups" + path + "/memory.stat",
          "anon 5\ninactive_file " + std::to_string(inactive) + "\nactive_file 9\n");
  }
  void old_group(const std::string& path, std::size_t max, std::size_t used,
                 std::size_t inactive) const {
    write("/old" + path + "/memory.limit_in_bytes", max);
    write("/old" + path + "/memory.usage_in_bytes", used);
    write("/old" + path + "/memory.stat", "cache 5\ninactive_file 1\ntotal_inactive_file " +
                                              std::to_string(inactive) + "\ntotal_active_file 9\n");
  }

 private:
  std::string root_;
};

}  // namespace support
