// SPDX-License-Identifier: Apache-2.0
#include "tracking/creation.hpp"

#include <cstdint>
#include <new>

#include "tracking/byte_memory.hpp"
#include "tracking/choice.hpp"
#include "tracking/hash_memory.hpp"
#include "tracking/page_memory.hpp"
#include "tracking/page_support.hpp"

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

Result<std::unique_ptr<TrackedMemory>> create_memory(const Request& request) {
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

}  // namespace isthmus::tracking
