// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/open.hpp"

#include <cstdlib>

#include "backend/sim/operation.hpp"
#include "backend/sim/platform.hpp"

namespace isthmus::sim {

Result<std::vector<Ref<isthmus::Platform>>> open() {
  // Read once, while drivers are opened.
  const char* const variable = std::getenv("ISTHMUS_SIM");  // NOLINT(concurrency-mt-unsafe)
  if (variable == nullptr) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "simulated devices are listed only if the environment variable ISTHMUS_SIM is set: "
                "ISTHMUS_SIM=1, or its options as in docs/sim.md");
  }
  const std::string_view text = variable;
  auto options = parse_options(text == "1" ? "" : text, Source::environment);
  if (!options) {
    return fail(options.failure().code(), "ISTHMUS_SIM: {}", options.failure().message());
  }
  std::vector<Ref<isthmus::Platform>> platforms;
  platforms.push_back(make_ref<Platform>(*options, "sim:gpu:", std::uint64_t{0}));
  return platforms;
}

bool owns_event(Event& candidate) noexcept {
  return dynamic_cast<Operation*>(&candidate) != nullptr;
}

}  // namespace isthmus::sim
