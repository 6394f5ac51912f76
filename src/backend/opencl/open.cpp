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

// Returns the configured library paths. The user sets them, or the Python package does for
// libraries that pip installed.
std::vector<std::string> named_libraries() {
  const auto all = driver_library("opencl");
  if (all.empty()) {
    return {};
  }
  // Allows a Khronos loader that dpctl or pyopencl opens later to find the same drivers. It has no
  // other source for these paths.
  os::set_environment_default("OCL_ICD_FILENAMES", all.c_str());
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin <= all.size();) {
    const auto colon = std::min(all.find(':', begin), all.size());
    if (colon > begin) {
      paths.push_back(all.substr(begin, colon - begin));
    }
    begin = colon + 1;
  }
  return paths;
}

// The first loader that is opened serves the whole process under its soname, dpctl included. The
// loader that pip installed beside a driver supports OCL_ICD_FILENAMES and the system's drivers;
// the system's own loader may not support that variable.
std::string loader_for(const std::vector<std::string>& named) {
  const std::string soname = "libOpenCL.so.1";
  for (const auto& name : named) {
    const auto candidate = std::filesystem::path{name}.parent_path() / soname;
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) {
      return candidate.string();
    }
  }
  return soname;
}

class Search {
 public:
  void add_library(const std::string& name) {
    auto library = open_library(name);
    if (!library) {
      reasons_.emplace_back(library.failure().message());
      return;
    }
    for (auto* handle : library->platforms) {
      add_platform(*library, handle);
    }
  }
  [[nodiscard]] Result<std::vector<Ref<isthmus::Platform>>> finish() {
    if (!platforms_.empty()) {
      return std::move(platforms_);
    }
    std::string all;
    for (const auto& reason : reasons_) {
      all += (all.empty() ? "" : "; ") + reason;
    }
    return fail(ISTHMUS_ERROR_NOT_FOUND, "{}", all);
  }

 private:
  // A driver that is listed both by its own library and by the loader counts as one platform.
  [[nodiscard]] bool is_duplicate(cl_platform_id handle,
                                  const PlatformProperties& properties) const {
    return std::find(handles_.begin(), handles_.end(), handle) != handles_.end() ||
           std::any_of(platforms_.begin(), platforms_.end(), [&](const auto& other) {
             const auto& existing = other->properties();
             return existing.name == properties.name && existing.vendor == properties.vendor &&
                    existing.version == properties.version;
           });
  }
  void add_platform(const Library& library, cl_platform_id handle) {
    const auto text = [&](cl_platform_info property) {
      return platform_text(library.calls, handle, property);
    };
    PlatformProperties properties{.backend = "opencl",
                                  .name = text(CL_PLATFORM_NAME),
                                  .vendor = text(CL_PLATFORM_VENDOR),
                                  .version = text(CL_PLATFORM_VERSION),
                                  .library = library.path};
    if (is_duplicate(handle, properties)) {
      return;
    }
    handles_.push_back(handle);
    // Never deleted: this first reference is never released.
    auto* platform = new Platform(std::move(properties), library.calls, handle, numbers_, reasons_);
    if (!platform->devices().empty()) {
      platforms_.emplace_back(platform);
    } else {
      reasons_.push_back(formatted("{}: no usable device", platform->properties().name));
    }
  }

  std::vector<Ref<isthmus::Platform>> platforms_;
  std::vector<cl_platform_id> handles_;
  std::vector<std::string> reasons_;
  TypeNumbers numbers_{};
};

}  // namespace

Result<std::vector<Ref<isthmus::Platform>>> open() {
  Search search;
  const auto named = named_libraries();
  for (const auto& name : named) {
    search.add_library(name);
  }
  search.add_library(loader_for(named));
  return search.finish();
}

bool owns_event(Event& candidate) noexcept {
  return dynamic_cast<DriverEvent*>(&candidate) != nullptr;
}

}  // namespace isthmus::opencl
