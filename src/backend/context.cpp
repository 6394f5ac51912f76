// SPDX-License-Identifier: Apache-2.0
#include "backend/context.hpp"

#include <algorithm>

#include "backend/platform.hpp"
#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

error check_alignment(const device_properties& where, std::size_t alignment) {
  if (!is_power_of_two(alignment)) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "alignment {} is not a power of two: use 1, 2, 4 ... {}, or 0 for the default of {}",
        alignment, where.max_alignment, where.base_alignment);
  }
  if (alignment > where.max_alignment) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "alignment {} is more than {} supports: its largest is {}", alignment, where.filter,
                where.max_alignment);
  }
  return {};
}

allocation_request with_alignment(const device& where, allocation_request request) {
  if (request.alignment == 0) {
    request.alignment = where.properties().base_alignment;
  }
  return request;
}

// Pre: the alignment is not 0.
error check_request(const device& where, const allocation_request& request) {
  const auto& properties = where.properties();
  const auto capability = kind_capability(request.kind);
  if (capability == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "{} is not a USM kind: use device (1), shared (2) or host (3)", request.kind);
  }
  if (!where.can(capability)) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "{} has no {} memory{}{}: see its capabilities",
                properties.filter, kind_name(request.kind), properties.lacks.empty() ? "" : "; ",
                properties.lacks);
  }
  if (request.write_combined &&
      (request.kind != ISTHMUS_KIND_HOST || !where.can(ISTHMUS_CAN_WRITE_COMBINE))) {
    return fail(ISTHMUS_ERROR_UNSUPPORTED,
                "{} has no write-combined {} memory: use host memory of a device with the "
                "capability \"write_combine\"",
                properties.filter, kind_name(request.kind));
  }
  if (auto bad = check_alignment(properties, request.alignment)) {
    return bad;
  }
  if (request.nbytes > properties.max_allocation_bytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
                "cannot allocate {} of {} memory on {}: its largest single allocation is {}",
                describe_bytes(request.nbytes), kind_name(request.kind), properties.filter,
                describe_bytes(properties.max_allocation_bytes));
  }
  return {};
}

}  // namespace

context::context(std::vector<device*> devices, platform* whole)
    : ref_counted{whole}, devices_{std::move(devices)} {
  if (whole == nullptr) {
    keep_ = ref<platform>{&devices_.front()->home()};
  }
}

context::~context() = default;

bool context::has(const device& candidate) const noexcept {
  return std::find(devices_.begin(), devices_.end(), &candidate) != devices_.end();
}

std::uintptr_t context::key() const noexcept { return address(this); }

error context::check(const device& where, const allocation_request& request) const {
  return check_request(where, with_alignment(where, request));
}

result<void*> context::allocate(device& where, const allocation_request& request) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot allocate on {}: start the child with "
                "spawn, or allocate before the fork",
                where.properties().filter);
  }
  const auto wanted = with_alignment(where, request);
  if (auto bad = check_request(where, wanted)) {
    return bad;
  }
  return do_allocate(where, wanted);
}

void context::deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept {
  if (!os::drivers_are_gone()) {
    do_deallocate(pointer, kind, nbytes);
  }
}

namespace {

error no_ipc(const device& where) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} cannot share memory with other processes: see its capabilities",
              where.properties().filter);
}

}  // namespace

result<void*> context::retain_opencl() const {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "a context of {} is not built on OpenCL",
              devices_.front()->properties().filter);
}

result<shared_place> context::share_memory(const void*) { return no_ipc(*devices_.front()); }
result<void*> context::open_memory(device& where, const ipc_handle&) { return no_ipc(where); }
void context::close_memory(device&, void*) noexcept {}

result<ref<event>> context::adopt_event(void*, owner) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the {} backend does not adopt events",
              home().properties().backend);
}

result<ref<queue>> context::create_queue(device& where) {
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED, "a forked child cannot create a queue: start it with spawn");
  }
  if (!has(where)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT, "{} is not a device of this context",
                where.properties().filter);
  }
  return make_queue(where, false);
}

}  // namespace isthmus
