// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/open.hpp"

#include "backend/driver_library.hpp"
#include "backend/sycl/errors.hpp"
#include "backend/sycl/event.hpp"
#include "backend/sycl/library.hpp"
#include "backend/sycl/platform.hpp"
#include "core/text.hpp"
#include "os/library.hpp"

namespace isthmus::sycl {
namespace {

constexpr const char* k_soname = "libDPCTLSyclInterface.so";

class Search {
 public:
  explicit Search(Library library) : library_{std::move(library)} {}

  void scan() {
    const auto& calls = library_.calls;
    const OwnedPlatforms listed{calls, calls.list_platforms()};
    if (!listed) {
      reasons_.emplace_back(call_failed("sycl::platform::get_platforms").message());
      return;
    }
    const auto count = calls.count_platforms(listed.get());
    for (std::size_t index = 0; index < count; ++index) {
      add_platform(OwnedPlatform{calls, calls.platform_at(listed.get(), index)});
    }
  }
  [[nodiscard]] std::vector<Ref<isthmus::Platform>>& platforms() noexcept { return platforms_; }
  [[nodiscard]] std::string reasons() const {
    std::string all;
    for (const auto& reason : reasons_) {
      all += (all.empty() ? "" : "; ") + reason;
    }
    return all.empty() ? "SYCL lists no platform" : all;
  }

 private:
  void add_platform(OwnedPlatform reference) {
    const auto& calls = library_.calls;
    if (!reference) {
      reasons_.emplace_back(call_failed("sycl::platform").message());
      return;
    }
    PlatformProperties properties{
        .backend = "sycl",
        .name = take_text(calls, calls.platform_name(reference.get())),
        .vendor = take_text(calls, calls.platform_vendor(reference.get())),
        .version = take_text(calls, calls.platform_version(reference.get())),
        .library = library_.path};
    auto platform =
        make_ref<Platform>(std::move(properties), calls, std::move(reference), numbers_, reasons_);
    if (!platform->devices().empty()) {
      platforms_.emplace_back(std::move(platform));
    }
  }

  Library library_;
  std::vector<Ref<isthmus::Platform>> platforms_;
  std::vector<std::string> reasons_;
  TypeNumbers numbers_{};
};

}  // namespace

bool is_in_process() noexcept { return os::is_loaded(k_soname); }

Result<std::vector<Ref<isthmus::Platform>>> open() {
  const auto named = driver_library("sycl");
  const auto drivers = driver_library("opencl");
  const bool was_loaded = is_in_process();
  const bool was_set = os::is_set_externally("OCL_ICD_FILENAMES");
  if (!drivers.empty()) {
    os::set_environment_default("OCL_ICD_FILENAMES", drivers.c_str());
  }
  auto library = open_library(named.empty() ? k_soname : named.c_str());
  ISTHMUS_TRY(library);
  Search search{*std::move(library)};
  search.scan();
  if (!search.platforms().empty()) {
    return std::move(search.platforms());
  }
  const bool is_too_late = was_loaded && !was_set && !drivers.empty();
  return fail(ISTHMUS_ERROR_NOT_FOUND, "{}{}{}", search.reasons(),
              is_too_late ? "; dpctl was used before isthmus could add the OpenCL driver: query "
                            "isthmus for its devices first, or set OCL_ICD_FILENAMES="
                          : "",
              is_too_late ? drivers : std::string{});
}

bool owns_event(Event& candidate) noexcept {
  return dynamic_cast<Operation*>(&candidate) != nullptr;
}

}  // namespace isthmus::sycl
