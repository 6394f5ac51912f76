// SPDX-License-Identifier: Apache-2.0
#include "tracking/mechanism.hpp"

#include <string_view>

#include "core/text.hpp"

namespace isthmus::tracking {

const char* mechanism_name(TrackingMechanism mechanism) noexcept {
  switch (mechanism) {
    case TrackingMechanism::pages: return "pages";
    case TrackingMechanism::bytes: return "bytes";
    case TrackingMechanism::hashes: return "hashes";
  }
  return "unknown";
}

Result<std::optional<TrackingMechanism>> parse_mechanism(const char* text) {
  if (text == nullptr || *text == '\0') {
    return std::optional<TrackingMechanism>{};
  }
  for (const auto each :
       {TrackingMechanism::pages, TrackingMechanism::bytes, TrackingMechanism::hashes}) {
    if (std::string_view{text} == mechanism_name(each)) {
      return std::optional{each};
    }
  }
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "ISTHMUS_TRACKING is {}: set \"pages\", \"bytes\" or \"hashes\", or unset it for an "
              "automatic choice",
              quoted(text));
}

}  // namespace isthmus::tracking
