// SPDX-License-Identifier: Apache-2.0
// Sharing of buffers between processes.

#include <algorithm>
#include <bit>
#include <memory>
#include <mutex>

#include "buffer/buffer.hpp"
#include "core/sizes.hpp"
#include "memory/pooled.hpp"

namespace isthmus {
namespace {

// An allocation of another process that this process has opened.
struct opened_memory {
  ref<context> home;
  device& where;
  void* base = nullptr;

  explicit opened_memory(queue& on) : home{&on.home()}, where{on.where()} {}
  opened_memory(const opened_memory&) = delete;
  opened_memory& operator=(const opened_memory&) = delete;
  ~opened_memory() {
    if (base != nullptr) {
      home->close_memory(where, base);
    }
  }
};

error refuse_sharing(const device& where) {
  if (where.can(ISTHMUS_CAN_IPC)) {
    return {};
  }
  return fail(ISTHMUS_ERROR_UNSUPPORTED,
              "{} cannot share memory with other processes: only devices with the capability "
              "\"ipc\" can",
              where.properties().filter);
}

std::size_t alignment_of(const void* pointer) {
  return std::size_t{1} << std::min(std::countr_zero(address(pointer)), 30);
}

// Records the complete allocation: the driver returns the same address for each opening, so all
// buffers over it share its uses. The lock ensures that only one of two threads that open it at
// once records it first.
result<ref<allocation>> record_whole(queue& on, std::unique_ptr<opened_memory> opened,
                                     std::size_t nbytes) {
  static std::mutex first;
  auto* const base = opened->base;
  const std::lock_guard hold{first};
  auto before = allocation_at(base);
  ISTHMUS_TRY(before);
  return allocation::adopt(
      on, {base, nbytes, alignment_of(base), ISTHMUS_KIND_DEVICE},
      owner{{opened.release(), [](void* of) { delete static_cast<opened_memory*>(of); }}},
      *std::move(before));
}

}  // namespace

result<shared_bytes> buffer::share() {
  if (auto refused = refuse_sharing(on_->where())) {
    return refused;
  }
  auto whole = at(0, nbytes_, false);  // holds the memory meanwhile
  ISTHMUS_TRY(whole);
  if (!whole->memory) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a buffer of 0 bytes has no memory to share");
  }
  ISTHMUS_TRY(wait(std::nullopt));
  ISTHMUS_TRY(check_contents());
  auto shared = on_->home().share_memory(whole->pointer);
  ISTHMUS_TRY(shared);
  return shared_bytes{*shared, nbytes_};
}

result<ref<buffer>> buffer::open(queue& on, const shared_bytes& what) {
  if (auto refused = refuse_sharing(on.where())) {
    return refused;
  }
  if (what.nbytes == 0) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "cannot open 0 bytes of shared memory: use a size greater than 0");
  }
  auto opened = std::make_unique<opened_memory>(on);
  auto base = on.home().open_memory(on.where(), what.at.of);
  ISTHMUS_TRY(base);
  opened->base = *base;
  const auto known = on.home().query(*base);
  if (known.home != nullptr && known.home != &on.where()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the shared memory is on {}, not on {}: open it on its own device",
                known.home->properties().filter, on.where().properties().filter);
  }
  const auto room =
      known.base == nullptr ? 0 : known.nbytes - (address(*base) - address(known.base));
  if (!lies_within(what.at.offset, what.nbytes, room)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "{} bytes from {} do not lie in the {} bytes that the handle opens", what.nbytes,
                what.at.offset, room);
  }
  auto whole = record_whole(on, std::move(opened), room);
  ISTHMUS_TRY(whole);
  auto* const start = static_cast<std::byte*>(*base) + what.at.offset;
  const auto alignment = alignment_of(start);
  auto memory = allocation::adopt(on, {start, what.nbytes, alignment, ISTHMUS_KIND_DEVICE}, owner{},
                                  *std::move(whole));
  ISTHMUS_TRY(memory);
  return make_ref<buffer>(
      on, *std::move(memory),
      buffer_request{what.nbytes, ISTHMUS_KIND_DEVICE, static_cast<std::int64_t>(alignment)},
      false);
}

}  // namespace isthmus
