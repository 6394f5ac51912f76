// SPDX-License-Identifier: Apache-2.0
#include "tracking/tracked_memory.hpp"

#include <cstdint>
#include <new>
#include <vector>

#include "os/process.hpp"
#include "tracking/byte_memory.hpp"
#include "tracking/choice.hpp"
#include "tracking/hash_memory.hpp"
#include "tracking/page_memory.hpp"

namespace isthmus::tracking {
namespace {

Result<std::unique_ptr<TrackedMemory>> create_by(TrackingMechanism mechanism,
                                                 const Request& request) {
  switch (mechanism) {
    case TrackingMechanism::pages:
      ISTHMUS_TRY(pages_are_reported());
      return PageMemory::create(request);
    case TrackingMechanism::bytes: return ByteMemory::create(request);
    case TrackingMechanism::hashes: break;
  }
  return HashMemory::create(request);
}

}  // namespace

Result<std::unique_ptr<TrackedMemory>> TrackedMemory::create(const Request& request) {
  try {
    if (request.nbytes > SIZE_MAX / 2) {
      return Error::no_memory();
    }
    if (request.mechanism) {
      return create_by(*request.mechanism, request);
    }
    auto mechanism = mechanism_for(request.nbytes);
    ISTHMUS_TRY(mechanism);
    return create_by(*mechanism, request);
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }
}

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

void TrackedMemory::take_all(std::span<const Taking> requests) {
  const auto is_kernel_scan = [](const Taking& one) {
    return one.memory->mechanism() == TrackingMechanism::pages && !os::is_forked_child();
  };
  std::vector<Taking> together;
  for (const auto& one : requests) {
    if (is_kernel_scan(one)) {
      together.push_back(one);
    } else {
      one.memory->take(*one.written);
    }
  }
  if (!together.empty()) {
    PageMemory::take_all(together);
  }
}

}  // namespace isthmus::tracking
