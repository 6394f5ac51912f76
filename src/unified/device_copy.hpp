// SPDX-License-Identifier: Apache-2.0
#pragma once
// The device copy of a unified buffer: a buffer in device memory or, if one memory serves as both
// copies, a buffer over the host copy. Not thread-safe: the unified buffer's lock guards it.

#include "buffer/buffer.hpp"
#include "unified/host_copy.hpp"
#include "unified/requests.hpp"

namespace isthmus {

class DeviceCopy {
 public:
  // `request` must outlive the device copy. `resource` may be null.
  DeviceCopy(Queue& queue, const UnifiedRequest& request, MemoryResource* resource,
             bool is_one_memory) noexcept
      : queue_{&queue}, request_{request}, resource_{resource}, is_one_memory_{is_one_memory} {}

  // Allocates the buffer, unless it exists. The allocation may run callbacks of the program that
  // use or free the unified buffer, since its lock is recursive. CLOSED after `close`.
  [[nodiscard]] Result<void> ensure(HostCopy& host) {
    return buffer_ ? Result<void>{} : create(host);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(buffer_); }
  [[nodiscard]] Buffer* operator->() const noexcept { return buffer_.get(); }
  [[nodiscard]] const Ref<Buffer>& buffer() const noexcept { return buffer_; }
  void release() noexcept { buffer_ = {}; }
  // Releases the buffer, and no other is allocated.
  void close() noexcept;
  // Whether only this object refers to the buffer.
  [[nodiscard]] bool is_unused() const noexcept {
    return buffer_->unique() && buffer_->exports() == 0;
  }
  // Whether a copy on `queue` would wait for earlier work: on that queue, or on any other queue
  // that uses the device copy. Errors as for `Queue::unfinished` and, except TIMEOUT, for
  // `Buffer::wait`.
  [[nodiscard]] Result<bool> has_pending_work(Queue& queue);
  // Records that the device wrote these bytes, so that readers no longer depend on earlier copies
  // into them.
  void note_written(const RangeSet& ranges);

 private:
  [[nodiscard]] Result<void> create(HostCopy& host);
  [[nodiscard]] Result<Ref<Buffer>> create_over(HostCopy& host);

  Ref<Queue> queue_;
  const UnifiedRequest& request_;
  Ref<MemoryResource> resource_;
  const bool is_one_memory_;
  bool is_closed_ = false;
  Ref<Buffer> buffer_;
};

// Returns CLOSED for a unified buffer that was freed.
[[nodiscard]] Error freed_error(const UnifiedRequest& request);

}  // namespace isthmus
