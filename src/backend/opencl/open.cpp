// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/open.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include "backend/driver_library.hpp"
#include "backend/opencl/event.hpp"
#include "backend/opencl/library.hpp"
#include "backend/opencl/platform.hpp"
#include "core/text.hpp"
#include "os/library.hpp"

namespace isthmus::opencl {
namespace {

// The paths are set by the user, or by the Python package to what pip installed.
std::vector<std::string> named_libraries() {
  const auto all = driver_library("opencl");
  if (all.empty()) {
    return {};
  }
  // Makes a Khronos loader that is opened later, by dpctl or pyopencl, find the same drivers: it
  // has no other source for these paths.
  os::set_environment_default("OCL_ICD_FILENAMES", all.c_str());
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin <= all.size();) {
    const auto colon = std::min(all.find(':', begin), all.size());
    if (colon > begin) {
      found.push_back(all.substr(begin, colon - begin));
    }
    begin = colon + 1;
  }
  return found;
}

// The first loader that is opened serves the whole process under its soname, dpctl included. The
// loader that pip installed beside a driver supports OCL_ICD_FILENAMES and the system's drivers;
// the system's own loader may not support that variable.
std::string loader_for(const std::vector<std::string>& named) {
  const std::string soname = "libOpenCL.so.1";
  for (const auto& name : named) {
    const auto beside = std::filesystem::path{name}.parent_path() / soname;
    std::error_code ignored;
    if (std::filesystem::exists(beside, ignored)) {
      return beside.string();
    }
  }
  return soname;
}

class Search {
 public:
  void look_into(const std::string& name) {
    auto opened = open_library(name);
    if (!opened) {
      reasons_.emplace_back(opened.failure().message());
      return;
    }
    for (auto* listed : opened->platforms) {
      look_at(*opened, listed);
    }
  }
  [[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> finish() {
    if (!found_.empty()) {
      return std::move(found_);
    }
    std::string all;
    for (const auto& reason : reasons_) {
      all += (all.empty() ? "" : "; ") + reason;
    }
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}", all);
  }

 private:
  // A driver that is found both in its own library and through the loader is one platform.
  [[nodiscard]] bool is_known(PlatformHandle listed, const PlatformProperties& told) const {
    return std::find(handles_.begin(), handles_.end(), listed) != handles_.end() ||
           std::any_of(found_.begin(), found_.end(), [&](const auto& other) {
             const auto& known = other->properties();
             return known.name == told.name && known.vendor == told.vendor &&
                    known.version == told.version;
           });
  }
  void look_at(const Library& opened, PlatformHandle listed) {
    const auto text = [&](Number number) { return platform_text(opened.calls, listed, number); };
    PlatformProperties told{.backend = "opencl",
                            .name = text(cl::k_platform_name),
                            .vendor = text(cl::k_platform_vendor),
                            .version = text(cl::k_platform_version),
                            .library = opened.path};
    if (is_known(listed, told)) {
      return;
    }
    handles_.push_back(listed);
    // Never deleted: this first reference is never released.
    auto* made = new Platform(std::move(told), opened.calls, listed, numbers_, reasons_);
    if (!made->devices().empty()) {
      found_.emplace_back(made);
    } else {
      reasons_.push_back(formatted("{}: no usable device", made->properties().name));
    }
  }

  std::vector<Ref<isthmus::Platform>> found_;
  std::vector<PlatformHandle> handles_;
  std::vector<std::string> reasons_;
  TypeNumbers numbers_{};
};

}  // namespace

Result<std::vector<Ref<isthmus::Platform>>> open() {
  Search looking;
  const auto named = named_libraries();
  for (const auto& name : named) {
    looking.look_into(name);
  }
  looking.look_into(loader_for(named));
  return looking.finish();
}

bool made(Event& candidate) noexcept { return dynamic_cast<DriverEvent*>(&candidate) != nullptr; }

}  // namespace isthmus::opencl
