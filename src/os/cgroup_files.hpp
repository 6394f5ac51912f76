// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses the kernel's files on memory and on control groups. Pure functions of the text, which may
// be damaged or truncated. Thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::os {

// A number counts only if white space follows it: a truncated number is rejected.

// Returns the number at the front of `text`; no value for "max".
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view text) noexcept;
// Returns the number on the line that begins with `key` and white space ("inactive_file 4096").
[[nodiscard]] std::optional<std::uint64_t> number_after(std::string_view text,
                                                        std::string_view key) noexcept;
// Returns the second number of a line: in /proc/self/statm, the resident pages.
[[nodiscard]] std::optional<std::uint64_t> second_number_in(std::string_view text) noexcept;

// Version 1 of control groups has a tree for each controller, version 2 one tree for all. Machines
// in transition have both.
enum class CgroupVersion { v1, v2 };

// Returns the process's group in the tree of a controller ("memory", "cpu"), from the text of
// /proc/self/cgroup. Begins with '/'.
[[nodiscard]] std::optional<std::string> cgroup_path(std::string_view text, CgroupVersion version,
                                                     std::string_view controller);

// Returns the directories of that group and of all its visible ancestors, the group's own first,
// from the text of /proc/self/mountinfo. Empty if no mount shows the group.
[[nodiscard]] std::vector<std::string> cgroup_directories(std::string_view mountinfo,
                                                          std::string_view path,
                                                          CgroupVersion version,
                                                          std::string_view controller);

}  // namespace isthmus::os
