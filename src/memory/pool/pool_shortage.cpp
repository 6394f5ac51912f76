// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_shortage.hpp"

#include <new>
#include <string>

#include "core/sizes.hpp"
#include "memory/base/holders.hpp"
#include "memory/base/oom_stages.hpp"

namespace isthmus {
namespace {

// Describes the stages tried and the bytes that they released.
std::string describe_stages(const RefusedRequest& request) {
  std::string text;
  for (unsigned each = 0; each < k_oom_stages; ++each) {
    if ((request.tried >> each & 1) != 0) {
      text += text.empty() ? "" : ", ";
      text += oom_stage_name(static_cast<OomStage>(each));
    }
  }
  return text.empty()
             ? "nothing"
             : fmt::format("{} ({} released, {} by {} out-of-memory callback{})", text,
                           describe_bytes(request.trimmed).rounded(),
                           describe_bytes(request.callbacks.bytes).rounded(),
                           request.callbacks.called, request.callbacks.called == 1 ? "" : "s");
}

std::string holders_line(const Snapshot& snapshot) {
  auto text = describe_holders(snapshot);
  return text.empty() ? text : "\n  " + text;
}

// The message of an upstream pool has several lines, of which the first states cause and remedy.
std::string_view first_line(std::string_view text) noexcept {
  return text.substr(0, text.find('\n'));
}

const char* advice(std::size_t needed, const RegionSource& source,
                   const Snapshot& snapshot) noexcept {
  if (snapshot.largest_free >= needed) {
    return "it has become free in the meantime: retry";
  }
  if (snapshot.free >= needed) {
    return "it is free in pieces only: request less at a time, or free the blocks between them";
  }
  if (snapshot.free + snapshot.waiting >= needed) {
    return "it is free once pending work has completed: wait for the queues, or longer (wait_ns)";
  }
  if (snapshot.free + snapshot.waiting + snapshot.cached >= needed) {
    return "thread caches hold it, or it lies between live blocks: retry, or request less at a "
           "time";
  }
  return source.remedy(needed, snapshot.free);
}

// At most five lines, the most useful first. Needs no memory if no stage was tried and no
// allocation tracker is in use.
Error describe(const RefusedRequest& request, const ListedPool& pool,
               const Shortage& shortage) noexcept {
  const auto* kind = kind_name(pool.kind());
  const auto& device = pool.device().properties().filter;
  const auto& snapshot = shortage.snapshot;
  try {
    return fail(
        ISTHMUS_ERROR_OUT_OF_MEMORY,
        "a pool cannot allocate {} of {} memory on {}. To do: {}\n  it holds {}: {} live, {} "
        "cached, {} waiting for work and {} free, the largest piece {} (fragmentation "
        "{:.0f} %){}\n  tried {}\n  refused: {}",
        describe_bytes(request.nbytes), kind, device, shortage.advice,
        describe_bytes(snapshot.held).rounded(), describe_bytes(snapshot.live).rounded(),
        describe_bytes(snapshot.cached).rounded(), describe_bytes(snapshot.waiting).rounded(),
        describe_bytes(snapshot.free).rounded(), describe_bytes(snapshot.largest_free).rounded(),
        100 * snapshot.fragmentation(), holders_line(snapshot), describe_stages(request),
        first_line(request.refusal.message()));
  } catch (const std::bad_alloc&) {  // the host is out of memory too
    return fail(
        ISTHMUS_ERROR_OUT_OF_MEMORY,
        "a pool cannot allocate {} bytes of {} memory on {}. To do: {}\n  it holds {} bytes: {} "
        "live, {} cached, {} waiting for work and {} free, the largest piece {}",
        request.nbytes, kind, device, shortage.advice, snapshot.held, snapshot.live,
        snapshot.cached, snapshot.waiting, snapshot.free, snapshot.largest_free);
  }
}

}  // namespace

Error refuse(const RefusedRequest& request, const ListedPool& pool, const RegionSource& source,
             const Snapshot& snapshot) {
  Shortage shortage{snapshot, {}, pool.kind(), request.nbytes, request.tried};
  pool.device().properties().filter.copy(shortage.device.data(), shortage.device.size() - 1);
  find_holders(pool, shortage.snapshot);
  shortage.advice = advice(request.run_bytes, source, shortage.snapshot);
  auto error = describe(request, pool, shortage);
  remember_shortage(error, shortage);
  return error;
}

}  // namespace isthmus
