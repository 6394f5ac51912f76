#include "core/text.hpp"

namespace isthmus {

std::string format_with(fmt::string_view format, fmt::format_args arguments) {
  return fmt::vformat(format, arguments);
}

}  // namespace isthmus
