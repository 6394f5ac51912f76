// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup_files.hpp"

#include <array>
#include <charconv>

namespace isthmus::os {
namespace {

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n'; }

// Removes and returns the text before `mark`, and removes the mark. Without a mark, removes and
// returns the whole text.
std::string_view consume_until(std::string_view& text, char mark) noexcept {
  const auto end = text.find(mark);
  const auto token = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return token;
}

bool list_contains(std::string_view names, std::string_view name) noexcept {
  while (!names.empty()) {
    if (consume_until(names, ',') == name) {
      return true;
    }
  }
  return false;
}

// mountinfo escapes white space as a backslash and three octal digits.
std::string unescaped(std::string_view text) {
  constexpr auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string result;
  result.reserve(text.size());
  for (std::size_t position = 0; position < text.size(); ++position) {
    if (text[position] == '\\' && position + 3 < text.size() && is_octal(text[position + 1]) &&
        is_octal(text[position + 2]) && is_octal(text[position + 3])) {
      result += static_cast<char>((text[position + 1] - '0') * 64 + (text[position + 2] - '0') * 8 +
                                  (text[position + 3] - '0'));
      position += 3;
    } else {
      result += text[position];
    }
  }
  return result;
}

struct Mount {
  std::string root;  // the group that is mounted at `point`
  std::string point;
};

// "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup cgroup rw,memory": any number of
// optional fields precede the dash.
std::optional<Mount> parse_cgroup_mount(std::string_view line, CgroupVersion version,
                                        std::string_view controller) {
  std::array<std::string_view, 6> fields;
  for (auto& field : fields) {
    field = consume_until(line, ' ');
  }
  while (!line.empty() && consume_until(line, ' ') != "-") {
  }
  const auto type = consume_until(line, ' ');
  static_cast<void>(consume_until(line, ' '));
  const bool fits = version == CgroupVersion::v2
                        ? type == "cgroup2"
                        : type == "cgroup" && list_contains(line, controller);
  if (!fits || !fields[3].starts_with('/') || !fields[4].starts_with('/')) {
    return std::nullopt;
  }
  return Mount{unescaped(fields[3]), unescaped(fields[4])};
}

// Returns the rest of `path` after `root`: "" or "/...". No value if `path` is not below `root`.
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
  const auto [next, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc{} && next != end && is_space(*next) ? std::optional{value}
                                                                  : std::nullopt;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const auto remaining = text;
    const auto line = consume_until(text, '\n');
    if (line.starts_with(key) && line.size() > key.size() && is_space(line[key.size()])) {
      const auto value = remaining.substr(key.size());
      const auto skip = value.find_first_not_of(" \t");
      return skip == std::string_view::npos ? std::nullopt : number_in(value.substr(skip));
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> second_number_in(std::string_view text) noexcept {
  static_cast<void>(consume_until(text, ' '));
  return number_in(text);
}

// "4:memory:/group" or, in version 2, "0::/group"; the group's name may contain colons.
std::optional<std::string> cgroup_path(std::string_view text, CgroupVersion version,
                                       std::string_view controller) {
  while (!text.empty()) {
    auto line = consume_until(text, '\n');
    const auto number = consume_until(line, ':');
    const auto controllers = consume_until(line, ':');
    const bool fits = version == CgroupVersion::v2 ? number == "0" && controllers.empty()
                                                   : list_contains(controllers, controller);
    if (fits && line.starts_with('/')) {
      return std::string{line};
    }
  }
  return std::nullopt;
}

// Of several mounts, selects the one that shows the most groups, and among equals the last one,
// which covers the others. A group outside the process's own namespace ("/../other") is visible in
// no mount.
std::vector<std::string> cgroup_directories(std::string_view mountinfo, std::string_view path,
                                            CgroupVersion version, std::string_view controller) {
  std::optional<Mount> best;
  std::string_view best_subpath;
  while (!mountinfo.empty()) {
    auto mount = parse_cgroup_mount(consume_until(mountinfo, '\n'), version, controller);
    const auto subpath = mount ? below(path, mount->root) : std::nullopt;
    if (subpath && subpath->find("/..") == std::string_view::npos &&
        (!best || subpath->size() >= best_subpath.size())) {
      best_subpath = *subpath;
      best = std::move(mount);
    }
  }
  std::vector<std::string> directories;
  if (!best) {
    return directories;
  }
  auto& point = best->point;
  while (point.ends_with('/')) {
    point.pop_back();
  }
  for (; !best_subpath.empty(); best_subpath = best_subpath.substr(0, best_subpath.rfind('/'))) {
    directories.push_back(point + std::string{best_subpath});
  }
  directories.push_back(point.empty() ? "/" : point);
  return directories;
}

}  // namespace isthmus::os
