// SPDX-License-Identifier: Apache-2.0
#include "memory/records/pins.hpp"

#include "backend/platform.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/records/facts.hpp"
#include "memory/records/innermost.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

Error refuse_device_memory(const Pin::Request& request) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "the {} at {} are device memory: only host memory can be pinned",
              describe_bytes(request.nbytes), static_cast<const void*>(request.start));
}

// Whether the driver already knows all of the memory, because this library or other code allocated
// or registered it. Then there is nothing to register.
Result<bool> is_known_to_driver(Device& device, const Pin::Request& request) {
  auto block = innermost_at(request.start);  // fails for a resource's memory outside of live blocks
  ISTHMUS_TRY(block);
  auto facts = record_of(nullptr, request.start).facts;
  if (facts.kind == ISTHMUS_KIND_DEVICE) {
    return refuse_device_memory(request);
  }
  if (facts.device == nullptr || &facts.device->platform() != &device.platform()) {
    auto context = device.platform().default_context();
    ISTHMUS_TRY(context);
    facts = (*context)->query(request.start);
  }
  if (facts.kind == ISTHMUS_KIND_DEVICE) {
    return refuse_device_memory(request);
  }
  const bool is_whole =
      facts.nbytes == 0 ||
      lies_within(address(request.start) - address(facts.base), request.nbytes, facts.nbytes);
  return facts.kind != ISTHMUS_KIND_UNKNOWN && is_whole &&
         !process_pins().has(device.platform(), request.start);
}

// The address space of a process on any current processor. For larger sizes, CUDA would
// misleadingly report that registration is unsupported.
constexpr std::size_t k_max_process_bytes = std::size_t{1} << 57;

Error check(const Device& device, const Pin::Request& request) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot pin memory for {}: start the child with spawn, or pin "
                "before the fork",
                device.properties().filter);
  }
  if (request.start == nullptr && request.nbytes != 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} at NULL cannot be pinned",
                describe_bytes(request.nbytes));
  }
  if (request.nbytes > UINTPTR_MAX - address(request.start)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} run past the end of the address space", request.nbytes,
                static_cast<const void*>(request.start));
  }
  if (request.nbytes > k_max_process_bytes) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} at {} exceed the address space of a process",
                describe_bytes(request.nbytes), static_cast<const void*>(request.start));
  }
  return {};
}

}  // namespace

Result<Ref<Pin>> Pin::make(Device& device, const Request& request, Owner owner) {
  const auto shared_owner = std::make_shared<const Owner>(std::move(owner));
  if (auto bad = check(device, request)) {
    return bad;
  }
  PinnedRanges ranges;
  if (request.nbytes != 0) {
    auto is_known = is_known_to_driver(device, request);
    ISTHMUS_TRY(is_known);
    if (!*is_known && device.registers_host_memory()) {
      auto pinned = process_pins().pin(device, {request.start, request.nbytes, request.read_only},
                                       shared_owner);
      ISTHMUS_TRY(pinned);
      ranges = *std::move(pinned);
    }
  }
  Undo unpinned{[&] { process_pins().unpin(ranges, true); }};
  auto pin = make_ref<Pin>(device, request, shared_owner, PinnedRanges{ranges});
  unpinned.dismiss();
  return pin;
}

Result<void> Pin::wait(const os::Deadline& until) { return process_pins().wait(ranges_, until); }

void Pin::end(bool waits) noexcept { process_pins().unpin(ranges_, waits); }

namespace {

struct HeldRanges {
  HeldRanges(const Queue& queue, const std::byte* start, std::size_t nbytes)
      : all{process_pins().hold(queue.device().platform(), start, nbytes)} {}
  HeldRanges(const HeldRanges&) = delete;
  HeldRanges& operator=(const HeldRanges&) = delete;
  ~HeldRanges() { process_pins().release_now(all); }
  const PinnedRanges all;
};

}  // namespace

Owner hold_pinned(const Queue& queue, const std::byte* start, std::size_t nbytes) {
  auto held = std::make_unique<HeldRanges>(queue, start, nbytes);
  if (held->all.empty()) {
    return {};
  }
  return Owner{isthmus_owner_t{held.release(),
                               [](void* object) { delete static_cast<HeldRanges*>(object); }}};
}

}  // namespace isthmus
