#pragma once
// What the kernel's files on memory and on control groups say: functions of their text alone, which
// may be damaged or cut short.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::os {

// A number counts only if white space stands behind it: what a buffer cut off is no number.

// At the front of `text`; none for "max".
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view text) noexcept;
// On the line that begins with `key` and white space ("inactive_file 4096").
[[nodiscard]] std::optional<std::uint64_t> number_behind(std::string_view text,
                                                         std::string_view key) noexcept;
// The second of one line: of /proc/self/statm, the pages that are resident.
[[nodiscard]] std::optional<std::uint64_t> second_number_in(std::string_view text) noexcept;

// Version 1 of control groups has a tree for each controller, version 2 one for all; machines in
// between have both.
enum class cgroup_version { one, two };

// In the tree of a controller ("memory", "cpu"), by /proc/self/cgroup; begins with '/'.
[[nodiscard]] std::optional<std::string> cgroup_path(std::string_view text, cgroup_version of,
                                                     std::string_view controller);

// Where the files of that group lie, and those of all groups above it that can be seen, by
// /proc/self/mountinfo: the group's own first. None if no mount shows the group.
[[nodiscard]] std::vector<std::string> cgroup_folders(std::string_view mountinfo,
                                                      std::string_view path, cgroup_version of,
                                                      std::string_view controller);

}  // namespace isthmus::os
