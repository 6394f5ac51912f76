// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_buffer.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "tracking/take_all.hpp"

namespace isthmus {

UnifiedBuffer::UnifiedBuffer(Queue& queue, const UnifiedRequest& request, MemoryResource* resource)
    : copies_{queue, request, resource} {}

UnifiedBuffer::~UnifiedBuffer() { process_unified_buffers().remove(*this); }

Result<Ref<UnifiedBuffer>> UnifiedBuffer::create(Queue& queue, const UnifiedRequest& request,
                                                 MemoryResource* resource) {
  if (queue.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                queue.device().properties().filter);
  }
  if (request.nbytes == 0 || request.nbytes > PTRDIFF_MAX) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a unified buffer cannot have {} bytes: use 1 to {}", request.nbytes, PTRDIFF_MAX);
  }
  if (resource != nullptr && (!resource->context().is_same_as(queue.context()) ||
                              resource->kind() != ISTHMUS_KIND_DEVICE)) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "the memory resource allocates {} memory of {}: the device copy needs device memory of {}",
        kind_name(resource->kind()), resource->device().properties().filter,
        queue.device().properties().filter);
  }
  auto buffer = make_ref<UnifiedBuffer>(queue, request, resource);
  process_unified_buffers().add(*buffer);
  return buffer;
}

Error UnifiedBuffer::validate(const ByteRange& range) const {
  if (freed_.load(std::memory_order_acquire)) {
    return freed_error(copies_.request);
  }
  if (range.begin > range.end || range.end > nbytes()) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "bytes {} to {} do not lie in a unified buffer of {}",
                range.begin, range.end, describe_bytes(nbytes()));
  }
  return {};
}

// Transfers in flight own the memory that they use, so it remains valid until they complete.
void UnifiedBuffer::free() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const Lock guard{lock_};
  // Sequentially consistent, like the load of the number of views in `HostCopy::release` and both
  // accesses in `end_host_view`. If `free` and the end of the last view run concurrently, at least
  // one of them sees the other and frees the host copy.
  freed_.store(true, std::memory_order_seq_cst);
  copies_.device.close();
  copies_.writes.cancel_ended_host();
  release_host();
}

void UnifiedBuffer::release_host() noexcept {
  if (!copies_.writes.has_host_writes()) {
    copies_.host.release();
  }
}

bool UnifiedBuffer::uses_device(const isthmus::Device& device) const noexcept {
  return &queue().device() == &device;
}

Result<UnifiedFacts> UnifiedBuffer::facts() {
  const Lock guard{lock_};
  auto state_now = state();
  ISTHMUS_TRY(state_now);
  const auto& host = copies_.host;
  UnifiedFacts result;
  result.state = *state_now;
  result.is_one_memory = copies_.is_one_memory;
  result.is_pinned = host.is_pinned();
  result.host_views = host.views();
  result.counts = copies_.counts;
  if (host) {
    result.mechanism = host->mechanism();
    result.granule = host->granule();
  }
  return result;
}

Result<BufferState> UnifiedBuffer::state() {
  if (auto error = validate(all())) {
    return error;
  }
  ISTHMUS_TRY(completion_.complete_all());
  ISTHMUS_TRY(recorder_.scan());
  return copies_.state.summary();
}

Result<UnifiedBuffer::Dirty> UnifiedBuffer::dirty_ranges() {
  const Lock guard{lock_};
  ISTHMUS_TRY(state());
  return Dirty{copies_.state.host_dirty(), copies_.state.device_dirty()};
}

Result<const std::byte*> UnifiedBuffer::read_host(const ByteRange& range) {
  const Lock guard{lock_};
  auto contents = current_host(range);
  if (contents) {
    copies_.host.note_read_pointer();
  }
  return contents;
}

// Downloads the range if necessary. If nothing is dirty or in flight this costs only a few loads.
Result<const std::byte*> UnifiedBuffer::current_host(const ByteRange& range) {
  if (auto error = validate(range)) {
    return error;
  }
  const auto& state = copies_.state;
  if (!state.host_is_valid() || !state.device_dirty().empty() || !copies_.inflight.empty() ||
      completion_.has_failed() || copies_.writes.has_unrecorded()) {
    ISTHMUS_TRY(downloader_.download({range, nullptr, Waiting::this_call}));
  }
  return copies_.host->view() + range.begin;
}

Result<std::byte*> UnifiedBuffer::begin_host_view(const ByteRange& range) {
  const Lock guard{lock_};
  auto contents = current_host(range);
  ISTHMUS_TRY(contents);
  copies_.host->expect_writers();
  copies_.host.begin_view();
  return const_cast<std::byte*>(*contents);
}

void UnifiedBuffer::end_host_view() noexcept {
  if (copies_.host.end_view() && freed_.load(std::memory_order_seq_cst)) {
    free();
  }
}

Result<std::byte*> UnifiedBuffer::begin_host_write(const ByteRange& range, bool keep_contents) {
  const Lock guard{lock_};
  if (auto error = validate(range)) {
    return error;
  }
  if (keep_contents) {
    ISTHMUS_TRY(downloader_.download({range, nullptr, Waiting::this_call}));
  } else {
    ISTHMUS_TRY(copies_.host.ensure());
    copies_.state.begin_host();
    ISTHMUS_TRY(completion_.wait_and_report(range, false));
  }
  copies_.writes.reserve_host();
  RangeSet written_set{range};
  auto pointer = copies_.host->begin_write(range, keep_contents, copies_.host.writers());
  ISTHMUS_TRY(pointer);
  copies_.writes.begin_host({range, std::move(written_set), *pointer});
  return pointer;
}

// Does not report failed copies; the next call does.
Result<void> UnifiedBuffer::end_host_write(const ByteRange& range, bool contents_kept) {
  const Lock guard{lock_};
  auto* const write = copies_.writes.open_host(range);
  if (write == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "no write of bytes {} to {} is in progress",
                range.begin, range.end);
  }
  if (auto error = validate(range)) {
    copies_.writes.cancel_host(*write);
    release_host();
    return error;
  }
  write->contents_kept = contents_kept;
  write->has_ended = true;
  // Before anything that may fail: afterwards other threads may write through views.
  ISTHMUS_TRY(recorder_.publish(*write));
  return completion_.complete_all();
}

Result<Ref<Buffer>> UnifiedBuffer::device(const SyncRequest& request) {
  const Lock guard{lock_};
  if (auto error = validate(request.range)) {
    return error;
  }
  ISTHMUS_TRY(uploader_.upload(request));
  device_holds_nothing_ = false;
  auto& target = copies_.queue_for(request);
  // Keeps the device copy alive during the wait. A callback that runs meanwhile may free this
  // buffer, or may request memory, for which unused device copies are released.
  const auto buffer = copies_.device.buffer();
  ISTHMUS_TRY(uploader_.order_after_uploads(target, request.range));
  if (auto error = validate(request.range)) {
    return error;
  }
  return &target == &queue() ? Result<Ref<Buffer>>{buffer} : buffer->on_queue(target);
}

Result<Ref<Buffer>> UnifiedBuffer::begin_device_write(const SyncRequest& request) {
  const Lock guard{lock_};
  if (auto error = validate(request.range)) {
    return error;
  }
  const bool is_new = copies_.writes.begin_device(request.range);
  Undo cancel_write{[&] {
    lock_.assert_held();
    if (is_new) {
      copies_.writes.cancel_device(request.range);
    }
  }};
  if (copies_.state.host_is_valid() && !copies_.is_one_memory) {
    // Before the upload, which also sends the host writes that were found in whole granules.
    copies_.host->refine(request.range);
  }
  auto upload_request = request;
  upload_request.range = copies_.host.whole_granules(request.range);
  auto buffer = device(upload_request);
  ISTHMUS_TRY(buffer);
  cancel_write.dismiss();
  return buffer;
}

Submitted UnifiedBuffer::to_device(const SyncRequest& request) {
  const Lock guard{lock_};
  if (auto error = validate(request.range)) {
    return error;
  }
  return uploader_.upload(request);
}

Submitted UnifiedBuffer::to_host(const SyncRequest& request) {
  const Lock guard{lock_};
  if (auto error = validate(request.range)) {
    return error;
  }
  return downloader_.download(request);
}

Submitted UnifiedBuffer::arrival(const SyncRequest& request, BeforeArrival mode) {
  const Lock guard{lock_};
  if (auto error = validate(request.range)) {
    return error;
  }
  return downloader_.arrival(request, mode);
}

// Locks the buffers in the order of their addresses, so that two of these calls cannot deadlock.
Result<void> UnifiedBuffer::to_device(std::span<UnifiedBuffer* const> buffers, Queue* queue) {
  std::vector<UnifiedBuffer*> sorted_buffers{buffers.begin(), buffers.end()};
  std::ranges::sort(sorted_buffers);
  sorted_buffers.erase(std::unique(sorted_buffers.begin(), sorted_buffers.end()),
                       sorted_buffers.end());
  std::deque<Lock> locks;
  ISTHMUS_TRY(scan_all(sorted_buffers, locks));
  return upload_all(sorted_buffers, queue);
}

// Locks the buffers, scans them together, and records the writes of each.
Result<void> UnifiedBuffer::scan_all(std::span<UnifiedBuffer* const> buffers,
                                     std::deque<Lock>& locks) {
  std::vector<tracking::TrackedMemory::Taking> requests;
  requests.reserve(buffers.size());
  Undo restore_unscanned{[&]() ISTHMUS_NO_THREAD_SAFETY_ANALYSIS {  // sets atomic flags
    for (auto* buffer : buffers) {
      buffer->copies_.host.mark_unscanned();
    }
  }};
  for (auto* buffer : buffers) {
    locks.emplace_back(buffer->lock_);
    if (auto error = buffer->validate(buffer->all())) {
      return error;
    }
    ISTHMUS_TRY(buffer->completion_.complete_and_report());
    if (buffer->recorder_.needs_scan()) {
      buffer->copies_.host.begin_scan();
      requests.push_back({buffer->copies_.host.memory().get(), &buffer->recorder_.detected()});
    }
  }
  tracking::take_all(requests);
  Result<void> outcome;
  for (auto* buffer : buffers) {
    if (auto status = buffer->recorder_.record_detected(); !status && outcome) {
      outcome = status.take_error();
    }
  }
  ISTHMUS_TRY(outcome);
  restore_unscanned.dismiss();
  return {};
}

// Submits all uploads before waiting for the first.
Result<void> UnifiedBuffer::upload_all(std::span<UnifiedBuffer* const> buffers, Queue* queue) {
  std::vector<Ref<Event>> events;
  Result<void> outcome;
  for (auto* buffer : buffers) {
    auto event = buffer->uploader_.upload_known({buffer->all(), queue, Waiting::by_caller});
    if (!event && outcome) {
      outcome = event.take_error();
    }
    if (event && *event) {
      events.push_back(*std::move(event));
    }
  }
  auto status = Uploader::wait_for_events(events);
  return outcome ? std::move(status) : std::move(outcome);
}

Result<void> UnifiedBuffer::mark_host(const ByteRange& range) {
  const Lock guard{lock_};
  if (auto error = validate(range)) {
    return error;
  }
  if (!copies_.state.host_is_valid()) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "the host copy does not exist yet, so it cannot have been written: access it first");
  }
  ISTHMUS_TRY(completion_.complete_all());
  ISTHMUS_TRY(recorder_.scan());
  ISTHMUS_TRY(recorder_.record_host_write({range}, copies_.is_one_memory));
  return completion_.report_failed();  // after the range was marked
}

Result<void> UnifiedBuffer::mark_device(const ByteRange& range) {
  const Lock guard{lock_};
  if (auto error = validate(range)) {
    return error;
  }
  if (!copies_.state.device_is_valid()) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "the device copy does not exist yet, so it cannot have been written: access it first");
  }
  device_holds_nothing_ = false;
  if (copies_.writes.end_device(range)) {
    return completion_.complete_all();  // reports no failed copy; the next call does
  }
  ISTHMUS_TRY(completion_.complete_all());
  ISTHMUS_TRY(recorder_.record_device_write(range));
  return completion_.report_failed();  // after the range was marked
}

Result<void> UnifiedBuffer::resolve(Winner winner, const ByteRange& range) {
  const Lock guard{lock_};
  if (auto error = validate(range)) {
    return error;
  }
  if (winner != Winner::host && winner != Winner::device) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a conflict can be resolved only for the host or the device");
  }
  // A download in flight would overwrite the winner's bytes.
  ISTHMUS_TRY(completion_.wait_and_report(range, false));
  if (winner == Winner::device) {
    // So that the bytes that the device copy holds are final.
    ISTHMUS_TRY(completion_.wait_and_report(range, true));
  }
  ISTHMUS_TRY(recorder_.scan());
  if (winner == Winner::host) {
    copies_.state.resolve_for_host(range);
    return {};
  }
  return resolve_for_device(range);
}

Result<void> UnifiedBuffer::resolve_for_device(const ByteRange& range) {
  auto& state = copies_.state;
  if (const auto losing_ranges = state.losing_to_device(range); !losing_ranges.empty()) {
    ISTHMUS_TRY(recorder_.synchronize(losing_ranges));
    state.resolve_for_device(losing_ranges);
    copies_.device.note_written(losing_ranges);
  }
  const SyncRequest request{range, nullptr, Waiting::this_call};
  if (!state.host_is_valid() || !state.device_is_valid()) {
    ISTHMUS_TRY(downloader_.download(request));
    return {};
  }
  // Downloads without a second scan, which would report the dropped writes again if they cover only
  // part of a hashed granule.
  ISTHMUS_TRY(downloader_.download_known(request, false));
  return {};
}

Result<void> UnifiedBuffer::forget() {
  const Lock guard{lock_};
  if (auto error = validate(all())) {
    return error;
  }
  ISTHMUS_TRY(completion_.wait_for(all(), false));
  ISTHMUS_TRY(
      completion_.complete_all());  // failures are reported only by the events of the copies
  ISTHMUS_TRY(recorder_.scan());
  // All allocations come before the first change, so that a failure changes nothing.
  if (!copies_.state.host_dirty().empty()) {
    ISTHMUS_TRY(recorder_.synchronize(copies_.state.host_dirty()));
  }
  auto synchronized = copies_.state.synchronized();
  std::vector<RangeSet> outdated(copies_.inflight.size(), RangeSet{all()});
  if (copies_.state.device_is_valid()) {
    copies_.device.note_written({all()});
  }
  copies_.state = std::move(synchronized);
  device_holds_nothing_ = true;
  copies_.writes.cancel_all_device();
  completion_.forget_failed();
  for (auto& [key, transfer] : copies_.inflight) {
    transfer.outdated = std::move(outdated.back());
    outdated.pop_back();
    transfer.is_forgotten = true;
  }
  return {};
}

// Whether the host copy is current or the device copy holds nothing, as far as this is known
// without a scan, and no device write is open.
bool UnifiedBuffer::can_release_device() const noexcept {
  const auto& state = copies_.state;
  return copies_.device && state.device_is_valid() && !copies_.is_one_memory &&
         !copies_.writes.has_device_writes() && (state.host_is_valid() || device_holds_nothing_) &&
         copies_.device.is_unused();
}

// Does not release the device copy if the buffer is in use. This thread may itself be in a call on
// the buffer whose request for memory failed.
std::uint64_t UnifiedBuffer::release_device_copy() {
  if (!lock_.try_lock()) {
    return 0;
  }
  const LockGuard guard{lock_, std::adopt_lock};
  if (!can_release_device()) {
    return 0;
  }
  auto& state = copies_.state;
  if (!completion_.complete_all() || !copies_.inflight.empty() || !recorder_.scan() ||
      !state.device_dirty().empty() ||
      !recorder_.discard_host_writes(RangeSet{state.host_dirty()})) {
    return 0;
  }
  state.end_device();
  copies_.device.release();
  return nbytes();
}

}  // namespace isthmus
