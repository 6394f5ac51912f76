#pragma once
// Orders an operation behind those in flight on the memory it touches, and makes it known to later
// ones.

#include <array>
#include <cstdint>
#include <memory>

#include "transfer/endpoint.hpp"

namespace isthmus {

// The memory that one operation touches: at most a destination and a source.
class touched_memory {
 public:
  touched_memory() = default;
  touched_memory(const touched_memory&) = delete;
  touched_memory& operator=(const touched_memory&) = delete;
  ~touched_memory() { give_up(); }

  // What is not written is read.
  void add(const endpoint& side, std::size_t nbytes, bool writes);
  void add_read_and_written(const endpoint& side, std::size_t nbytes);

  // Before the submission of what is to be published, and before `collect`: `publish` then needs no
  // memory. Throws std::bad_alloc.
  void reserve();
  // Nothing was submitted. Pre: what was reserved for is still held.
  void give_up() noexcept;

  // Adds to `after` what an operation on queue `on` must wait for; null: of no queue, so
  // everything.
  void collect(const queue* on, std::vector<ref<event>>& after);
  // The same of what the callers put themselves on the lent queues of the memory, but for `on`.
  [[nodiscard]] result<void> collect_lent(const queue* on, std::vector<ref<event>>& after);
  // Both of these, as dependencies that order and do not propagate failure: for a wait list of the
  // operation that is published then, on the same queue. Pre: `reserve`.
  [[nodiscard]] result<void> order_after_conflicts(const queue* on, std::vector<ref<event>>& after);
  // The copies that an operation with these options depends on, for what it reads.
  void add_contents(transfer_options& options);
  // For the host's direct access, in the order of `on` (may be null): what is unfinished there, and
  // on every lent queue of the memory, where work of the caller's own may run.
  [[nodiscard]] result<void> collect_queues(queue* on, std::vector<ref<event>>& after);
  // Whether nothing at all is in flight on the memory, as far as is known without asking a driver.
  [[nodiscard]] bool quiet();
  // The operation that `ended` stands for is in flight. Pre: `reserve`.
  void publish(const queue* on, const ref<event>& ended) noexcept;

 private:
  struct touch {
    allocation* memory = nullptr;
    byte_range range;
    bool writes = false;
    bool reads = false;
    bool is_reserved = false;
    std::uint64_t began_at = 0;
  };
  std::array<touch, 2> touches_{};
  std::size_t count_ = 0;
  bool follows_conflicts_ = false;
};

// All of these bytes are written by an operation that was submitted, and ends with `written`, or
// were written already (null): unless it fails, no copy before it decides what is in them. Without
// memory one may still count: its readers fail that need not.
void note_overwritten(const endpoint& side, std::size_t nbytes, const ref<event>& written) noexcept;

// Keeps owners till an event has completed. Made before the submission, since nothing may fail
// after it.
class owner_keeper {
 public:
  explicit owner_keeper(std::vector<owner> owners);
  void until(event& ended) noexcept;

 private:
  struct last_stop;
  struct deleter {
    void operator()(last_stop* unused) const noexcept;
  };
  std::unique_ptr<last_stop, deleter> kept_;
};

}  // namespace isthmus
