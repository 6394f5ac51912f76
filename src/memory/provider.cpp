#include "memory/provider.hpp"

#include "memory/host_memory.hpp"
#include "memory/live_counts.hpp"
#include "memory/other_pools.hpp"
#include "memory/pressure.hpp"
#include "memory/reaper.hpp"

namespace isthmus {
namespace {

template <class Value>
void note_refusal(const result<Value>& of) noexcept {
  driver_refusals += is_short(of) ? 1U : 0U;
}

// What `ask` gets of the driver, counted in the host's memory if it lies there.
template <class Ask>
auto promised(context& home, device& where, const allocation_request& request,
              Ask&& ask) -> decltype(ask()) {
  start_letting_go();
  if (!host_memory::holds(where, request.kind)) {
    auto given = ask();
    note_refusal(given);
    return given;
  }
  if (auto taken = host_memory::only().take(where, request); !taken) {
    note_refusal(taken);
    // A bad kind or alignment is told first, as for a size that fits.
    auto would = home.check(where, request);
    return would ? std::move(would) : taken.take_error();
  }
  auto given = ask();
  if (!given) {
    note_refusal(given);
    host_memory::only().give_back(where, request.nbytes);
  }
  return given;
}

void forget(const device& where, usm_kind kind, const void* pointer, std::size_t nbytes) noexcept {
  process_live_counts().remove(pointer, kind, nbytes);
  if (host_memory::holds(where, kind)) {
    host_memory::only().give_back(where, nbytes);
  }
}

}  // namespace

result<void*> provider_allocate(context& home, device& where, const allocation_request& request) {
  auto pointer = promised(home, where, request, [&] { return home.allocate(where, request); });
  if (pointer) {
    process_live_counts().add(*pointer, request.kind, request.nbytes);
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
                         std::size_t nbytes) noexcept {
  home.deallocate(pointer, kind, nbytes);
  forget(where, kind, pointer, nbytes);
}

result<void> provider_create(chunk_source& from, context& home, device& where,
                             const allocation_request& request, void* at) {
  ISTHMUS_TRY(promised(home, where, request, [&] { return from.create(at, request.nbytes); }));
  process_live_counts().add(at, request.kind, request.nbytes);
  return {};
}

void provider_destroy(chunk_source& from, device& where, usm_kind kind, void* at,
                      std::size_t nbytes) noexcept {
  from.destroy(at, nbytes);
  forget(where, kind, at, nbytes);
}

// First the parts: a total that is read meanwhile is never below what there is.
void provider_divided(usm_kind kind, std::span<std::byte> front,
                      std::span<std::byte> rest) noexcept {
  process_live_counts().add(front.data(), kind, front.size());
  process_live_counts().add(rest.data(), kind, rest.size());
  process_live_counts().remove(front.data(), kind, front.size() + rest.size());
}

void provider_moved(usm_kind kind, void* from, void* to, std::size_t nbytes) noexcept {
  process_live_counts().add(to, kind, nbytes);
  process_live_counts().remove(from, kind, nbytes);
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
