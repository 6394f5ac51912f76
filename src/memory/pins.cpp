// SPDX-License-Identifier: Apache-2.0
#include "memory/pins.hpp"

#include "backend/platform.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/facts.hpp"
#include "memory/innermost.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

error refuse_device_memory(const pin::request& what) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "the {} at {} are device memory: only host memory can be pinned",
              describe_bytes(what.nbytes), static_cast<const void*>(what.start));
}

// Whether all of it is memory of the driver already, allocated or registered by this library or
// other code: then there is nothing to register.
result<bool> is_drivers_own(device& where, const pin::request& what) {
  auto block = innermost_at(what.start);  // fails for a resource's memory outside of live blocks
  ISTHMUS_TRY(block);
  auto known = record_of(nullptr, what.start).what;
  if (known.kind == ISTHMUS_KIND_DEVICE) {
    return refuse_device_memory(what);
  }
  if (known.home == nullptr || &known.home->home() != &where.home()) {
    auto home = where.home().default_context();
    ISTHMUS_TRY(home);
    known = (*home)->query(what.start);
  }
  if (known.kind == ISTHMUS_KIND_DEVICE) {
    return refuse_device_memory(what);
  }
  const bool is_whole = known.nbytes == 0 || lies_within(address(what.start) - address(known.base),
                                                         what.nbytes, known.nbytes);
  return known.kind != ISTHMUS_KIND_UNKNOWN && is_whole &&
         !process_pins().has(where.home(), what.start);
}

// The address space of a process on any current processor. For more, CUDA would misleadingly report
// that registration is unsupported.
constexpr std::size_t k_most_of_process = std::size_t{1} << 57;

error check(const device& where, const pin::request& what) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot pin memory for {}: start the child with spawn, or pin "
                "before the fork",
                where.properties().filter);
  }
  if (what.start == nullptr && what.nbytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} at NULL cannot be pinned",
                describe_bytes(what.nbytes));
  }
  if (what.nbytes > UINTPTR_MAX - address(what.start)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of the address space", what.nbytes,
                static_cast<const void*>(what.start));
  }
  if (what.nbytes > k_most_of_process) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} at {} exceed the address space of a process",
                describe_bytes(what.nbytes), static_cast<const void*>(what.start));
  }
  return {};
}

}  // namespace

result<ref<pin>> pin::make(device& where, const request& what, owner keep) {
  const auto kept = std::make_shared<const owner>(std::move(keep));
  if (auto bad = check(where, what)) {
    return bad;
  }
  pinned_ranges ranges;
  if (what.nbytes != 0) {
    auto is_own = is_drivers_own(where, what);
    ISTHMUS_TRY(is_own);
    if (!*is_own && where.registers_host_memory()) {
      auto made = process_pins().pin(where, {what.start, what.nbytes, what.read_only}, kept);
      ISTHMUS_TRY(made);
      ranges = *std::move(made);
    }
  }
  undo unpinned{[&] { process_pins().unpin(ranges, true); }};
  auto made = make_ref<pin>(where, what, kept, pinned_ranges{ranges});
  unpinned.dismiss();
  return made;
}

result<void> pin::wait(const os::deadline& until) { return process_pins().wait(ranges_, until); }

void pin::end(bool wait) noexcept { process_pins().unpin(ranges_, wait); }

namespace {

struct held_ranges {
  held_ranges(const queue& on, const std::byte* start, std::size_t nbytes)
      : all{process_pins().hold(on.where().home(), start, nbytes)} {}
  held_ranges(const held_ranges&) = delete;
  held_ranges& operator=(const held_ranges&) = delete;
  ~held_ranges() { process_pins().let_go(all); }
  const pinned_ranges all;
};

}  // namespace

owner hold_pinned(const queue& on, const std::byte* start, std::size_t nbytes) {
  auto held = std::make_unique<held_ranges>(on, start, nbytes);
  if (held->all.empty()) {
    return {};
  }
  return owner{
      isthmus_owner_t{held.release(), [](void* gone) { delete static_cast<held_ranges*>(gone); }}};
}

}  // namespace isthmus
