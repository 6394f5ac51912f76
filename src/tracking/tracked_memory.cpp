// SPDX-License-Identifier: Apache-2.0
#include "tracking/tracked_memory.hpp"

#include <utility>

namespace isthmus::tracking {

Result<void> TrackedMemory::take_in_parts(Writers writers, const PartVisitor& visitor) {
  RangeSet found;
  take(found);
  auto source = snapshot(found, writers);
  ISTHMUS_TRY(source);
  return visitor({0, nbytes_}, std::move(found), *source);
}

Result<std::byte*> TrackedMemory::begin_write(const ByteRange& range, bool keep_contents,
                                              Writers /*writers*/) {
  if (keep_contents) {
    ISTHMUS_TRY(snapshot({range}, Writers::some));
  }
  return library_ + range.begin;
}

Result<void> TrackedMemory::end_write(const ByteRange& /*range*/, const RangeSet& written,
                                      const std::byte* /*begin_address*/, Writers writers) {
  return publish(written, writers);
}

}  // namespace isthmus::tracking
