// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <algorithm>

namespace isthmus {

std::string format_with(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t k_max_length = 60;
  std::string shown{text.substr(0, k_max_length)};
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return formatted("'{}{}'", shown, text.size() > k_max_length ? "..." : "");
}

}  // namespace isthmus
