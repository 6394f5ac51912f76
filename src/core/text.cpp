// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <algorithm>

namespace isthmus {

std::string format_with(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t k_longest = 60;
  std::string shown{text.substr(0, k_longest)};
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return formatted("'{}{}'", shown, text.size() > k_longest ? "..." : "");
}

}  // namespace isthmus
