// SPDX-License-Identifier: Apache-2.0
#include "unified/device_copy.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/sizes.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

Error freed_error(const UnifiedRequest& request) {
  return fail(ISTHMUS_ERROR_CLOSED, "this unified buffer of {} was freed",
              describe_bytes(request.nbytes));
}

Result<void> DeviceCopy::create(HostCopy& host) {
  auto buffer = is_one_memory_ ? create_over(host)
                               : Buffer::create(*queue_, {request_.nbytes, ISTHMUS_KIND_DEVICE, 0},
                                                resource_.get());
  ISTHMUS_TRY(buffer);
  if (is_closed_) {
    return freed_error(request_);
  }
  if (!buffer_) {
    buffer_ = *std::move(buffer);
  }
  return {};
}

Result<Ref<Buffer>> DeviceCopy::create_over(HostCopy& host) {
  ISTHMUS_TRY(host.ensure());
  auto* start = host->is_one_memory() ? host->library() : host->view();
  constexpr std::size_t k_alignment = 64;  // guaranteed by every tracking mechanism
  auto memory = Allocation::adopt(*queue_, {start, request_.nbytes, k_alignment, ISTHMUS_KIND_HOST},
                                  owner_of(host.memory()), {});
  ISTHMUS_TRY(memory);
  return make_ref<Buffer>(*queue_, *std::move(memory),
                          BufferRequest{request_.nbytes, ISTHMUS_KIND_HOST, k_alignment}, false);
}

void DeviceCopy::close() noexcept {
  is_closed_ = true;
  buffer_ = {};
}

void DeviceCopy::note_written(const RangeSet& ranges) {
  for (const auto& range : ranges) {
    if (auto endpoint = buffer_->at(range.begin, range.nbytes(), false)) {
      note_overwritten(*endpoint, range.nbytes(), {});
    }
  }
}

Result<bool> DeviceCopy::has_pending_work(Queue& queue) {
  std::vector<Ref<Event>> pending;
  ISTHMUS_TRY(queue.unfinished(pending));
  if (std::ranges::any_of(pending, [](const Ref<Event>& event) { return event->pending(); })) {
    return true;
  }
  auto status = buffer_->wait(os::Clock::now());
  if (!status && status.failure().code() != ISTHMUS_ERROR_TIMEOUT) {
    return status.take_error();
  }
  return !status;
}

}  // namespace isthmus
