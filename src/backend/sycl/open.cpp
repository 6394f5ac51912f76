// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/open.hpp"

#include "backend/driver_library.hpp"
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
  explicit Search(Library opened) : opened_{std::move(opened)} {}

  void look() {
    const auto& calls = opened_.calls;
    const OwnedPlatforms listed{calls, calls.list_platforms()};
    if (!listed) {
      reasons_.emplace_back(call_failed("sycl::platform::get_platforms").message());
      return;
    }
    const auto count = calls.count_platforms(listed.get());
    for (std::size_t index = 0; index < count; ++index) {
      look_at(OwnedPlatform{calls, calls.platform_at(listed.get(), index)});
    }
  }
  [[nodiscard]] std::vector<Ref<isthmus::Platform>>& found() noexcept { return found_; }
  [[nodiscard]] std::string reasons() const {
    std::string all;
    for (const auto& reason : reasons_) {
      all += (all.empty() ? "" : "; ") + reason;
    }
    return all.empty() ? "SYCL lists no platform" : all;
  }

 private:
  void look_at(OwnedPlatform one) {
    const auto& calls = opened_.calls;
    if (!one) {
      reasons_.emplace_back(call_failed("sycl::platform").message());
      return;
    }
    PlatformProperties told{.backend = "sycl",
                            .name = take_text(calls, calls.platform_name(one.get())),
                            .vendor = take_text(calls, calls.platform_vendor(one.get())),
                            .version = take_text(calls, calls.platform_version(one.get())),
                            .library = opened_.path};
    auto made = make_ref<Platform>(std::move(told), calls, std::move(one), numbers_, reasons_);
    if (!made->devices().empty()) {
      found_.emplace_back(std::move(made));
    }
  }

  Library opened_;
  std::vector<Ref<isthmus::Platform>> found_;
  std::vector<std::string> reasons_;
  TypeNumbers numbers_{};
};

}  // namespace

bool is_in_process() noexcept { return os::is_loaded(k_soname); }

Result<std::vector<Ref<isthmus::Platform>>> open() {
  const auto named = driver_library("sycl");
  const auto drivers = driver_library("opencl");
  const bool was_loaded = is_in_process();
  const bool was_shown = os::is_set_by_others("OCL_ICD_FILENAMES");
  if (!drivers.empty()) {
    os::set_environment_default("OCL_ICD_FILENAMES", drivers.c_str());
  }
  auto opened = open_library(named.empty() ? k_soname : named.c_str());
  ISTHMUS_TRY(opened);
  Search looking{*std::move(opened)};
  looking.look();
  if (!looking.found().empty()) {
    return std::move(looking.found());
  }
  const bool came_too_late = was_loaded && !was_shown && !drivers.empty();
  return fail(ISTHMUS_ERROR_NOT_FOUND, "{}{}{}", looking.reasons(),
              came_too_late ? "; dpctl was used before isthmus could add the OpenCL driver: query "
                              "isthmus for its devices first, or set OCL_ICD_FILENAMES="
                            : "",
              came_too_late ? drivers : std::string{});
}

bool made(Event& candidate) noexcept { return dynamic_cast<Operation*>(&candidate) != nullptr; }

}  // namespace isthmus::sycl
