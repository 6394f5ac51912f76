// SPDX-License-Identifier: Apache-2.0
#include "memory/provider.hpp"

#include "memory/host_memory.hpp"
#include "memory/other_pools.hpp"
#include "memory/pressure.hpp"
#include "memory/reaper.hpp"

namespace isthmus {
namespace {

template <class Value>
void note_refusal(const result<Value>& of, std::size_t nbytes) noexcept {
  if (is_short(of)) {
    ++driver_refusals;
    driver_refused_bytes = nbytes;
  }
}

// Calls the driver through `ask`. If the memory is on the host, it is counted in the host's memory
// first, and refused if there is not enough.
template <class Ask>
auto promised(context& home, device& where, const allocation_request& request,
              Ask&& ask) -> decltype(ask()) {
  start_letting_go();
  if (!host_memory::holds(where, request.kind)) {
    auto given = ask();
    note_refusal(given, request.nbytes);
    return given;
  }
  if (auto taken = host_memory::only().take(where, request); !taken) {
    note_refusal(taken, request.nbytes);
    // A bad kind or alignment takes precedence, as it does for a size that fits.
    auto would = home.check(where, request);
    return would ? std::move(would) : taken.take_error();
  }
  auto given = ask();
  if (!given) {
    note_refusal(given, request.nbytes);
    host_memory::only().give_back(where, request.nbytes);
  }
  return given;
}

void add(live_counts* live, usm_kind kind, const void* pointer, std::size_t nbytes) noexcept {
  if (live != nullptr) {
    live->add(pointer, kind, nbytes);
  }
}

void remove(live_counts* live, usm_kind kind, const void* pointer, std::size_t nbytes) noexcept {
  if (live != nullptr) {
    live->remove(pointer, kind, nbytes);
  }
}

void forget(const device& where, usm_kind kind, const void* pointer, std::size_t nbytes,
            live_counts* live) noexcept {
  remove(live, kind, pointer, nbytes);
  if (host_memory::holds(where, kind)) {
    host_memory::only().give_back(where, nbytes);
  }
}

}  // namespace

result<void*> provider_allocate(context& home, device& where, const allocation_request& request,
                                live_counts* live) {
  auto pointer = promised(home, where, request, [&] { return home.allocate(where, request); });
  if (pointer) {
    add(live, request.kind, *pointer, request.nbytes);
  }
  return pointer;
}

result<void*> provider_allocate_or_trim(context& home, device& where,
                                        const allocation_request& request) {
  auto pointer = provider_allocate(home, where, request);
  if (!is_short(pointer) || request.nbytes > where.properties().max_allocation_bytes ||
      no_wait != 0 || in_continuation()) {
    return pointer;
  }
  return with_other_pools(
      {where, request.kind, request.nbytes},
      [&] { return provider_allocate(home, where, request); }, std::move(pointer));
}

void provider_deallocate(context& home, device& where, usm_kind kind, void* pointer,
                         std::size_t nbytes, live_counts* live) noexcept {
  home.deallocate(pointer, kind, nbytes);
  forget(where, kind, pointer, nbytes, live);
}

result<void> provider_create(chunk_source& from, context& home, device& where,
                             const allocation_request& request, void* at, live_counts* live) {
  ISTHMUS_TRY(promised(home, where, request, [&] { return from.create(at, request.nbytes); }));
  add(live, request.kind, at, request.nbytes);
  return {};
}

void provider_destroy(chunk_source& from, device& where, usm_kind kind, void* at,
                      std::size_t nbytes, live_counts* live) noexcept {
  from.destroy(at, nbytes);
  forget(where, kind, at, nbytes, live);
}

// Adds the parts before it removes the whole, so that a total read meanwhile is never too low.
void provider_divided(usm_kind kind, std::span<std::byte> front, std::span<std::byte> rest,
                      live_counts* live) noexcept {
  add(live, kind, front.data(), front.size());
  add(live, kind, rest.data(), rest.size());
  remove(live, kind, front.data(), front.size() + rest.size());
}

void provider_moved(usm_kind kind, void* from, void* to, std::size_t nbytes,
                    live_counts* live) noexcept {
  add(live, kind, to, nbytes);
  remove(live, kind, from, nbytes);
}

result<void*> provider::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  if (auto refused = on.refuse_allocation()) {
    return refused;
  }
  auto pointer =
      provider_allocate_or_trim(home(), where(), {kind(), nbytes, alignment, write_combined_});
  if (pointer) {
    counts_.took(nbytes);
  }
  return pointer;
}

result<void> provider::deallocate(void* pointer, std::size_t nbytes, queue*) noexcept {
  provider_deallocate(home(), where(), kind(), pointer, nbytes);
  counts_.gave_back(nbytes);
  return {};
}

memory_resource::memory_usage provider::usage() noexcept {
  return {counts_.held_bytes(), 0, counts_.maps(), counts_.unmaps()};
}

}  // namespace isthmus
