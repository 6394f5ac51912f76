// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation tracker: records each live block that was allocated through it, with its requested
// size, queue, tag, thread, order in time and, on request, the stack that it was allocated in.
//
// Without stacks this costs some 10 ns for an allocation with its free, however many blocks are
// live: notes are found from a block's address and take no lock (block_table.hpp). A note exists
// before the caller has the block, and is removed before the block returns to upstream.

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/order.hpp"
#include "core/owner.hpp"
#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/block_table.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/adaptors/stack_table.hpp"
#include "memory/adaptors/tag_usage.hpp"
#include "memory/tags.hpp"
#include "os/thread_id.hpp"

namespace isthmus {

class TrackingResource final : public Adaptor {
 public:
  static constexpr std::size_t k_max_frames = 64;
  struct Options {
    std::size_t frames = 0;                       // of native code, at most k_max_frames
    isthmus_stack_function_t function = nullptr;  // describes other frames
    Owner owner;
  };

  TrackingResource(MemoryResource& upstream, Options options);

  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  // INVALID_ARGUMENT for a block that it does not know.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override;

  // The blocks that are live and were allocated since the last reset, oldest first. Throws
  // std::bad_alloc, as do the functions below.
  [[nodiscard]] std::vector<BlockRecord> live();
  [[nodiscard]] static const CallStack* stack_of(const BlockRecord& note) noexcept {
    return static_cast<const CallStack*>(note.stack);
  }
  // These blocks as a text, grouped by stack and tag, most bytes first.
  [[nodiscard]] std::string report();
  // Blocks that are live now are no longer reported. The peaks of the tags' counts become what is
  // live, the totals 0.
  void reset() noexcept {
    since_.store(order_above_all(), std::memory_order_relaxed);
    by_tag_.for_each([](const char*, UsageCounter& each) { each.reset(); });
  }

  struct UseOfTag {
    const char* tag;
    UsageCounter::Counts counts;
  };
  // The usage of each tag that memory was allocated under, most live bytes first, then by name.
  [[nodiscard]] std::vector<UseOfTag> usage_by_tag();

  // Whether any tracking resource exists. True on a thread that received a block of one.
  [[nodiscard]] static bool is_any() noexcept {
    return count_.load(std::memory_order_relaxed) != 0;
  }
  // The note of a live block; if several tracking resources recorded it, that of the one nearest to
  // the caller. `block` is what contains `pointer`. Notes with an order up to `since` are of the
  // memory around it (`suballocated_since`).
  [[nodiscard]] static std::optional<BlockRecord> find_note_of(const PointerFacts& block,
                                                               const void* pointer,
                                                               std::uint64_t since) noexcept;

  // Calls visit(resource) for each that is based on `base`, directly or through other resources.
  static void visit_over(const MemoryResource& base,
                         const std::function<void(TrackingResource&)>& visit);
  // What is live, whether allocated before or after the last reset.
  [[nodiscard]] std::vector<BlockRecord> all() { return notes_.all(); }

 private:
  ~TrackingResource() override;
  [[nodiscard]] bool is_based_on(const MemoryResource& base);
  void record_block(const void* pointer, std::size_t nbytes, const Queue& queue,
                    const void* stack) {
    const auto* const tag = current_tag();
    auto* const counter = tag != nullptr ? &by_tag_.counter_for(tag) : nullptr;
    notes_.insert({pointer, nbytes, queue.key(), next_order(), os::thread_id(), tag, stack});
    if (counter != nullptr) {
      counter->add(nbytes);
    }
  }
  // False if there is none. Subtracts the block from its tag's count before upstream has it.
  [[nodiscard]] bool extract_note(const void* pointer, std::size_t nbytes,
                                  BlockRecord& out) noexcept {
    const bool found = notes_.extract(pointer, nbytes, out);
    if (found && out.tag != nullptr) {
      by_tag_.existing_counter(out.tag).remove(out.nbytes);
    }
    return found;
  }
  void restore_note(const BlockRecord& note) noexcept {
    notes_.restore(note);
    if (note.tag != nullptr) {
      by_tag_.existing_counter(note.tag).restore(note.nbytes);
    }
  }
  [[nodiscard]] bool records_stacks() const noexcept {
    return options_.frames != 0 || options_.function != nullptr;
  }
  [[nodiscard]] const void* capture();

  static std::atomic<std::size_t> count_;
  const Options options_;
  BlockTable notes_;
  StackTable stacks_;
  TagUsage by_tag_;
  PointerTable<BlockRecord> pending_;  // blocks freed, but not returned yet
  std::atomic<std::uint64_t> since_{0};
};

}  // namespace isthmus
