// SPDX-License-Identifier: Apache-2.0
#pragma once
// Formatting of text.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace isthmus {

// Not inline, so that the formatter is compiled once and not in every file that formats text, where
// it would take up to a minute under the sanitizers.
[[nodiscard]] std::string format_with(fmt::string_view format, fmt::format_args arguments);

// The format is checked at compile time.
template <class... Args>
[[nodiscard]] std::string formatted(fmt::format_string<Args...> format, Args&&... args) {
  return format_with(format, fmt::make_format_args(args...));
}

// Returns `text` in quotes, for messages. Replaces unprintable characters and shortens long text.
[[nodiscard]] std::string quoted(std::string_view text);

template <class Range>
[[nodiscard]] std::string joined(const Range& items, std::string_view separator) {
  std::string result;
  for (const std::string_view item : items) {
    result.append(result.empty() ? std::string_view{} : separator).append(item);
  }
  return result;
}

}  // namespace isthmus
