#include "memory/provider.hpp"

#include "core/sizes.hpp"
#include "memory/live_counts.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

// Promised memory that lies in the host's: what CPU drivers call device memory does too.
class host_promise {
 public:
  [[nodiscard]] static bool concerns(const device& where, usm_kind kind) noexcept {
    return kind != ISTHMUS_KIND_DEVICE || where.properties().type == ISTHMUS_DEVICE_CPU;
  }
  [[nodiscard]] bool take(std::size_t nbytes) noexcept {
    if (nbytes > limit_) {
      return false;
    }
    if (promised_.fetch_add(nbytes, std::memory_order_relaxed) > limit_ - nbytes) {
      promised_.fetch_sub(nbytes, std::memory_order_relaxed);
      return false;
    }
    return true;
  }
  void give_back(std::size_t nbytes) noexcept {
    promised_.fetch_sub(nbytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t promised() const noexcept {
    return promised_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

 private:
  const std::size_t limit_ = os::physical_memory().total;
  std::atomic<std::size_t> promised_{0};
};

host_promise& promise() noexcept {
  static auto* const only = new host_promise;
  return *only;
}

error host_is_full(const device& where, const allocation_request& request) {
  return fail(
      ISTHMUS_ERROR_OUT_OF_MEMORY,
      "cannot allocate {} of {} memory on {}: it lies in the host's memory, of which {} of {} are "
      "promised to live allocations; free buffers, or ask for less",
      describe_bytes(request.nbytes), kind_name(request.kind), where.properties().filter,
      describe_bytes(promise().promised()), describe_bytes(promise().limit()));
}

// What `ask` gets of the driver, counted in the host's memory if it lies there.
template <class Ask>
auto promised(context& home, device& where, const allocation_request& request,
              Ask&& ask) -> decltype(ask()) {
  if (!host_promise::concerns(where, request.kind)) {
    return ask();
  }
  if (!promise().take(request.nbytes)) {
    // A bad kind or alignment is told first, as for a size that fits.
    auto would = home.check(where, request);
    return would ? std::move(would) : host_is_full(where, request);
  }
  auto given = ask();
  if (!given) {
    promise().give_back(request.nbytes);
  }
  return given;
}

void forget(const device& where, usm_kind kind, const void* pointer, std::size_t nbytes) noexcept {
  process_live_counts().remove(pointer, kind, nbytes);
  if (host_promise::concerns(where, kind)) {
    promise().give_back(nbytes);
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

result<void*> provider::allocate(std::size_t nbytes, std::size_t alignment, queue&) {
  auto pointer = provider_allocate(home(), where(), {kind(), nbytes, alignment});
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
