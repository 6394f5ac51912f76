// SPDX-License-Identifier: Apache-2.0
// Fuzzes the parsers of the kernel's files on memory and control groups: what they return lies
// within the text.
#include <string_view>
#include "input.hpp"
#include "os/cgroup_files.hpp"
#include "os/processors.hpp"

using namespace isthmus::os;

namespace {

using fuzz::require;

// Each folder is the parent of the previous one, and none is outside its mount.
void expect_folders(std::string_view mounts, std::string_view path, CgroupVersion of) {
  const auto folders = cgroup_directories(mounts, path, of, "memory");
  for (std::size_t each = 0; each < folders.size(); ++each) {
    require(folders[each].starts_with('/'));
    if (each == 0) continue;
    const auto& longer = folders[each - 1];
    const auto& folder = folders[each];
    require(folder == "/" || longer.starts_with(folder + "/"));
    const auto name = longer.substr(folder == "/" ? 1 : folder.size() + 1);
    require(name.find('/') == name.npos && name != "..");
  }
}

}  // namespace

// The text up to the first NUL is the list of groups; the list of mounts follows it.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const auto end = all.find('\0');
  const auto groups = all.substr(0, end);
  const auto mounts = end == all.npos ? std::string_view{} : all.substr(end + 1);
  for (const auto of : {CgroupVersion::v1, CgroupVersion::v2}) {
    const auto path = cgroup_path(groups, of, "memory");
    if (path) {
      require(path->starts_with('/') && groups.find(*path) != groups.npos);
      expect_folders(mounts, *path, of);
    }
  }
  const auto number = number_in(all);
  require(!number || (all[0] >= '0' && all[0] <= '9'));
  (void)number_after(all, "inactive_file");
  (void)second_number_in(all);
  require(processors_in(all).none() || all.find('\n') != all.npos);
  return 0;
}
