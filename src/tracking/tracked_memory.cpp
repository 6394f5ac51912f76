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

result<std::unique_ptr<tracked_memory>> create_by(means by, const request& wanted) {
  switch (by) {
    case means::pages: ISTHMUS_TRY(pages_are_told()); return page_memory::create(wanted);
    case means::bytes: return byte_memory::create(wanted);
    case means::hashes: break;
  }
  return hash_memory::create(wanted);
}

}  // namespace

result<std::unique_ptr<tracked_memory>> tracked_memory::create(const request& wanted) {
  try {
    if (wanted.nbytes > SIZE_MAX / 2) {
      return error::no_memory();
    }
    if (wanted.by) {
      return create_by(*wanted.by, wanted);
    }
    auto by = means_for(wanted.nbytes);
    ISTHMUS_TRY(by);
    return create_by(*by, wanted);
  } catch (const std::bad_alloc&) {
    return error::no_memory();
  }
}

result<void> tracked_memory::take_in_parts(writers who, const part_visitor& each) {
  range_set found;
  take(found);
  auto from = snapshot(found, who);
  ISTHMUS_TRY(from);
  return each({0, nbytes_}, std::move(found), *from);
}

result<std::byte*> tracked_memory::begin_write(const byte_range& range, bool keeps,
                                               writers /*who*/) {
  if (keeps) {
    ISTHMUS_TRY(snapshot({range}, writers::some));
  }
  return library_ + range.begin;
}

result<void> tracked_memory::end_write(const byte_range& /*range*/, const range_set& written,
                                       const std::byte* /*begun*/, writers who) {
  return publish(written, who);
}

void tracked_memory::take_all(std::span<const taking> each) {
  const auto is_one_look = [](const taking& one) {
    return one.from->by() == means::pages && !os::is_forked_child();
  };
  std::vector<taking> together;
  for (const auto& one : each) {
    if (is_one_look(one)) {
      together.push_back(one);
    } else {
      one.from->take(*one.written);
    }
  }
  if (!together.empty()) {
    page_memory::take_all(together);
  }
}

}  // namespace isthmus::tracking
