// SPDX-License-Identifier: Apache-2.0
#pragma once
// Orders an operation after those in flight on the memory that it accesses, and records it for
// later ones. An object belongs to one operation and is not thread-safe; the lists of uses that it
// changes are.

#include <array>
#include <cstdint>
#include <memory>

#include "transfer/endpoint.hpp"

namespace isthmus {

// The memory that one operation accesses: at most a destination and a source.
class TouchedMemory {
 public:
  TouchedMemory() = default;
  TouchedMemory(const TouchedMemory&) = delete;
  TouchedMemory& operator=(const TouchedMemory&) = delete;
  ~TouchedMemory() { cancel(); }

  // `writes` false: the operation reads.
  void add(const Endpoint& endpoint, std::size_t nbytes, bool writes);
  void add_read_and_written(const Endpoint& endpoint, std::size_t nbytes);

  // Call before `collect` and before the submission of an operation that is to be published;
  // `publish` then needs no memory. Throws std::bad_alloc.
  void reserve();
  // Cancels `reserve`: nothing was submitted. Pre: the memory reserved for is still referenced.
  void cancel() noexcept;

  // Adds to `after` what an operation on queue `queue` must wait for. Null: on no queue, so all
  // conflicting operations.
  void collect(const Queue* queue, std::vector<Ref<Event>>& after);
  // The same for work that callers submitted themselves to exported queues of the memory, except
  // `queue`.
  [[nodiscard]] Result<void> collect_exported(const Queue* queue, std::vector<Ref<Event>>& after);
  // Both of these, as dependencies that order and do not propagate failure. They belong in the
  // wait list of the operation that is then published, on the same queue. Pre: `reserve`.
  [[nodiscard]] Result<void> order_after_conflicts(const Queue* queue,
                                                   std::vector<Ref<Event>>& after);
  // Adds the copies that an operation with these options depends on, for what it reads.
  void add_contents(TransferOptions& options);
  // For direct access by the host in the order of `queue` (may be null): adds what is unfinished
  // there, and on every exported queue of the memory, where external work may run.
  [[nodiscard]] Result<void> collect_queues(Queue* queue, std::vector<Ref<Event>>& after);
  // Whether nothing is in flight on the memory, as far as is known without a driver call.
  [[nodiscard]] bool is_known_idle();
  // Records the operation that completes with `event` as in flight. Pre: `reserve`.
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
  std::array<Touch, 2> touches_{};
  std::size_t count_ = 0;
  bool follows_conflicts_ = false;
};

// Records that a submitted operation, which completes with `written`, writes all of these bytes, or
// that they have been written already (null). Unless it fails, no earlier copy determines their
// contents. If memory is short an earlier copy may remain recorded: readers may then fail
// unnecessarily.
void note_overwritten(const Endpoint& endpoint, std::size_t nbytes,
                      const Ref<Event>& written) noexcept;

// Keeps owners alive until an event has completed. Construct it before the submission, since
// nothing may fail afterwards.
class OwnerKeeper {
 public:
  explicit OwnerKeeper(std::vector<Owner> owners);
  void keep_until(Event& event) noexcept;

 private:
  struct LastStop;
  struct Deleter {
    void operator()(LastStop* unused) const noexcept;
  };
  std::unique_ptr<LastStop, Deleter> last_stop_;
};

}  // namespace isthmus
