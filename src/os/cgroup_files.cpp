// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup_files.hpp"

#include <array>
#include <charconv>

namespace isthmus::os {
namespace {

constexpr bool is_space(char name) noexcept { return name == ' ' || name == '\t' || name == '\n'; }

// Removes and returns the text before `mark`, and removes the mark; all of the text if there is
// none.
std::string_view take_until(std::string_view& text, char mark) noexcept {
  const auto end = text.find(mark);
  const auto taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

bool lists(std::string_view names, std::string_view wanted) noexcept {
  while (!names.empty()) {
    if (take_until(names, ',') == wanted) {
      return true;
    }
  }
  return false;
}

// mountinfo escapes white space as a backslash and three octal digits.
std::string unescaped(std::string_view text) {
  constexpr auto is_octal = [](char name) { return name >= '0' && name <= '7'; };
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
        is_octal(text[at + 2]) && is_octal(text[at + 3])) {
      plain += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                                 (text[at + 3] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

struct Mount {
  std::string root;  // the group that is mounted at `point`
  std::string point;
};

// "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup cgroup rw,memory": any number of
// optional fields precede the dash.
std::optional<Mount> mount_of_groups(std::string_view line, CgroupVersion version,
                                     std::string_view controller) {
  std::array<std::string_view, 6> front;
  for (auto& each : front) {
    each = take_until(line, ' ');
  }
  while (!line.empty() && take_until(line, ' ') != "-") {
  }
  const auto type = take_until(line, ' ');
  static_cast<void>(take_until(line, ' '));
  const bool fits = version == CgroupVersion::two ? type == "cgroup2"
                                                  : type == "cgroup" && lists(line, controller);
  if (!fits || !front[3].starts_with('/') || !front[4].starts_with('/')) {
    return std::nullopt;
  }
  return Mount{unescaped(front[3]), unescaped(front[4])};
}

// The part of `path` below `root`: "" or "/...". None if it is not below it.
std::optional<std::string_view> below(std::string_view path, std::string_view root) noexcept {
  if (root.ends_with('/')) {
    root.remove_suffix(1);
  }
  if (!path.starts_with(root)) {
    return std::nullopt;
  }
  path.remove_prefix(root.size());
  if (path == "/") {
    path = {};
  }
  return path.empty() || path.starts_with('/') ? std::optional{path} : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [behind, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc{} && behind != end && is_space(*behind) ? std::optional{value}
                                                                      : std::nullopt;
}

std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const auto left = text;
    const auto line = take_until(text, '\n');
    if (line.starts_with(key) && line.size() > key.size() && is_space(line[key.size()])) {
      const auto value = left.substr(key.size());
      const auto skip = value.find_first_not_of(" \t");
      return skip == std::string_view::npos ? std::nullopt : number_in(value.substr(skip));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> second_number_in(std::string_view text) noexcept {
  static_cast<void>(take_until(text, ' '));
  return number_in(text);
}

// "4:memory:/group" or, in version 2, "0::/group"; the group's name may contain colons.
std::optional<std::string> cgroup_path(std::string_view text, CgroupVersion version,
                                       std::string_view controller) {
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    const auto number = take_until(line, ':');
    const auto controllers = take_until(line, ':');
    const bool fits = version == CgroupVersion::two ? number == "0" && controllers.empty()
                                                    : lists(controllers, controller);
    if (fits && line.starts_with('/')) {
      return std::string{line};
    }
  }
  return std::nullopt;
}

// Of several mounts, selects the one that shows most groups, and among equals the last one, which
// covers the others. A group outside the process's own namespace ("/../other") is visible in no
// mount.
std::vector<std::string> cgroup_folders(std::string_view mountinfo, std::string_view path,
                                        CgroupVersion version, std::string_view controller) {
  std::optional<Mount> best;
  std::string_view rest;
  while (!mountinfo.empty()) {
    auto found = mount_of_groups(take_until(mountinfo, '\n'), version, controller);
    const auto left = found ? below(path, found->root) : std::nullopt;
    if (left && left->find("/..") == std::string_view::npos &&
        (!best || left->size() >= rest.size())) {
      rest = *left;
      best = std::move(found);
    }
  }
  std::vector<std::string> folders;
  if (!best) {
    return folders;
  }
  auto& point = best->point;
  while (point.ends_with('/')) {
    point.pop_back();
  }
  for (; !rest.empty(); rest = rest.substr(0, rest.rfind('/'))) {
    folders.push_back(point + std::string{rest});
  }
  folders.push_back(point.empty() ? "/" : point);
  return folders;
}

}  // namespace isthmus::os
