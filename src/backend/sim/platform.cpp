// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/platform.hpp"

#include "backend/sim/context.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

PlatformProperties describe() {
  return {
      "sim", "Isthmus simulator", "Isthmus",
      formatted("{}.{}.{}", ISTHMUS_VERSION_MAJOR, ISTHMUS_VERSION_MINOR, ISTHMUS_VERSION_PATCH),
      ""};
}

}  // namespace

Platform::Platform(const Options& options, const std::string& prefix, std::uint64_t first)
    : isthmus::Platform{describe()} {
  for (auto number = first; number < first + options.devices; ++number) {
    add(std::make_unique<Device>(*this, prefix + std::to_string(number), options));
  }
}

Platform::~Platform() {
  for (const auto& member : devices()) {
    engine_of(*member).drain(nullptr);
  }
}

Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* owning_platform) {
  ISTHMUS_TRY(engine_of(*members.front()).begin(Call::context));
  return Ref<isthmus::Context>{make_ref<Context>(std::move(members), owning_platform)};
}

}  // namespace isthmus::sim
