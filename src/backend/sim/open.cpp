// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/open.hpp"

#include <cstdlib>

#include "backend/sim/operation.hpp"
#include "backend/sim/platform.hpp"

namespace isthmus::sim {

Result<std::vector<Ref<isthmus::Platform>>> open() {
  // Read once, while drivers are opened.
  const char* const chosen = std::getenv("ISTHMUS_SIM");  // NOLINT(concurrency-mt-unsafe)
  if (chosen == nullptr) {
    return fail(ISTHMUS_ERROR_NOT_FOUND,
                "simulated devices are listed only if the environment variable ISTHMUS_SIM is set: "
                "ISTHMUS_SIM=1, or its options as in docs/sim.md");
  }
  const std::string_view text = chosen;
  auto read = parse_options(text == "1" ? "" : text, Source::environment);
  if (!read) {
    return fail(read.failure().code(), "ISTHMUS_SIM: {}", read.failure().message());
  }
  std::vector<Ref<isthmus::Platform>> found;
  found.push_back(make_ref<Platform>(*read, "sim:gpu:", std::uint64_t{0}));
  return found;
}

bool made(Event& candidate) noexcept { return dynamic_cast<Operation*>(&candidate) != nullptr; }

}  // namespace isthmus::sim
