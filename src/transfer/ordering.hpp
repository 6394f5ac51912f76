// SPDX-License-Identifier: Apache-2.0
#pragma once
// Orders an operation after the operations in flight on the memory that it accesses, and records it
// so that later operations are ordered after it. An object belongs to one operation and is not
// thread-safe. The lists of uses that it changes are thread-safe.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "transfer/endpoint.hpp"
#include "transfer/transfer_options.hpp"

namespace isthmus {

// The memory that one operation accesses: at most a destination and a source.
class TouchedMemory {
 public:
  TouchedMemory() = default;
  TouchedMemory(const TouchedMemory&) = delete;
  TouchedMemory& operator=(const TouchedMemory&) = delete;
  ~TouchedMemory() { cancel(); }

  // If `writes` is false the operation reads the memory.
  void add(const Endpoint& endpoint, std::size_t nbytes, bool writes);
  void add_read_and_written(const Endpoint& endpoint, std::size_t nbytes);

  // Allocates everything that `publish` needs, so that `publish` cannot fail. Must be called before
  // `collect` and before the operation is submitted. Throws std::bad_alloc.
  void reserve();
  // Cancels `reserve` if nothing was submitted. The caller still holds references to the memory.
  void cancel() noexcept;

  // Adds to `after` the events that an operation on `queue` must wait for. If `queue` is null these
  // are the events of all conflicting operations.
  void collect(const Queue* queue, std::vector<Ref<Event>>& after);
  // The same for external work on the memory's exported queues other than `queue`.
  [[nodiscard]] Result<void> collect_exported(const Queue* queue, std::vector<Ref<Event>>& after);
  // Does the work of `collect` and `collect_exported`, but adds events that do not propagate
  // failure. The caller submits the operation with this wait list and publishes it, both on
  // `queue`. Call `reserve` first.
  [[nodiscard]] Result<void> order_after_conflicts(const Queue* queue,
                                                   std::vector<Ref<Event>>& after);
  // Adds the pending copies into the memory that the operation reads, if `options.reads_contents`
  // is set. Their failure fails the operation.
  void add_contents(TransferOptions& options);
  // For direct access by the host in the order of `queue` (may be null): adds the unfinished work
  // of `queue` and of every exported queue of the memory, where external work may run.
  [[nodiscard]] Result<void> collect_queues(Queue* queue, std::vector<Ref<Event>>& after);
  // Whether nothing is in flight on the memory, determined without a driver call. May return false
  // for idle memory.
  [[nodiscard]] bool is_known_idle();
  // Records the operation that completes with `event` as in flight. Call `reserve` first.
  void publish(const Queue* queue, const Ref<Event>& event) noexcept;

 private:
  struct Touch {
    Allocation* memory = nullptr;
    ByteRange range;
    bool writes = false;
    bool reads = false;
    bool is_reserved = false;
    std::uint64_t began_at = 0;
  };
  [[nodiscard]] bool is_reserved() const noexcept {
    return std::all_of(touches_.begin(), touches_.begin() + count_,
                       [](const Touch& each) { return each.is_reserved; });
  }

  std::array<Touch, 2> touches_{};
  std::size_t count_ = 0;
  bool follows_conflicts_ = false;
};

// Records that the operation of event `written` overwrites all of these bytes, or that they were
// overwritten already (null). Readers of the bytes then no longer depend on earlier copies into
// them, unless the operation fails. If host memory is short an earlier copy may remain recorded,
// and readers may fail unnecessarily.
void note_overwritten(const Endpoint& endpoint, std::size_t nbytes,
                      const Ref<Event>& written) noexcept;

// Keeps owners alive until an event has completed. Must be constructed before the submission, since
// `keep_until` must not fail.
class OwnerKeeper {
 public:
  explicit OwnerKeeper(std::vector<Owner> owners);
  void keep_until(Event& event) noexcept;

 private:
  struct OwnerHolder;
  struct Deleter {
    void operator()(OwnerHolder* unused) const noexcept;
  };
  std::unique_ptr<OwnerHolder, Deleter> holder_;
};

}  // namespace isthmus
