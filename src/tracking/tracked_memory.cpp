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

Result<std::unique_ptr<TrackedMemory>> create_by(Means method, const Request& wanted) {
  switch (method) {
    case Means::pages: ISTHMUS_TRY(pages_are_told()); return PageMemory::create(wanted);
    case Means::bytes: return ByteMemory::create(wanted);
    case Means::hashes: break;
  }
  return HashMemory::create(wanted);
}

}  // namespace

Result<std::unique_ptr<TrackedMemory>> TrackedMemory::create(const Request& wanted) {
  try {
    if (wanted.nbytes > SIZE_MAX / 2) {
      return Error::no_memory();
    }
    if (wanted.by) {
      return create_by(*wanted.by, wanted);
    }
    auto by = means_for(wanted.nbytes);
    ISTHMUS_TRY(by);
    return create_by(*by, wanted);
  } catch (const std::bad_alloc&) {
    return Error::no_memory();
  }
}

Result<void> TrackedMemory::take_in_parts(Writers writers, const PartVisitor& each) {
  RangeSet found;
  take(found);
  auto from = snapshot(found, writers);
  ISTHMUS_TRY(from);
  return each({0, nbytes_}, std::move(found), *from);
}

Result<std::byte*> TrackedMemory::begin_write(const ByteRange& range, bool keeps, Writers /*who*/) {
  if (keeps) {
    ISTHMUS_TRY(snapshot({range}, Writers::some));
  }
  return library_ + range.begin;
}

Result<void> TrackedMemory::end_write(const ByteRange& /*range*/, const RangeSet& written,
                                      const std::byte* /*begun*/, Writers writers) {
  return publish(written, writers);
}

void TrackedMemory::take_all(std::span<const Taking> each) {
  const auto is_one_look = [](const Taking& one) {
    return one.from->by() == Means::pages && !os::is_forked_child();
  };
  std::vector<Taking> together;
  for (const auto& one : each) {
    if (is_one_look(one)) {
      together.push_back(one);
    } else {
      one.from->take(*one.written);
    }
  }
  if (!together.empty()) {
    PageMemory::take_all(together);
  }
}

}  // namespace isthmus::tracking
