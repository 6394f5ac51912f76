// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/platform.hpp"

#include "backend/sim/context.hpp"
#include "core/text.hpp"

namespace isthmus::sim {
namespace {

platform_properties describe() {
  return {
      "sim", "Isthmus simulator", "Isthmus",
      formatted("{}.{}.{}", ISTHMUS_VERSION_MAJOR, ISTHMUS_VERSION_MINOR, ISTHMUS_VERSION_PATCH),
      ""};
}

}  // namespace

platform::platform(const options& chosen, const std::string& prefix, std::uint64_t first)
    : isthmus::platform{describe()} {
  for (auto number = first; number < first + chosen.devices; ++number) {
    add(std::make_unique<device>(*this, prefix + std::to_string(number), chosen));
  }
}

platform::~platform() {
  for (const auto& member : devices()) {
    engine_of(*member).drain(nullptr);
  }
}

result<ref<isthmus::context>> platform::make_context(std::vector<isthmus::device*> members,
                                                     isthmus::platform* whole) {
  ISTHMUS_TRY(engine_of(*members.front()).begin(call::context));
  return ref<isthmus::context>{make_ref<context>(std::move(members), whole)};
}

}  // namespace isthmus::sim
