// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation tracker: records each live block that was allocated through it, with its requested
// size, queue, tag, thread, order in time and, on request, the call stack of the allocation.
//
// Without stacks this costs about 10 ns for an allocation with its free, however many blocks are
// live: a record is looked up by the block's address without a lock (block_table.hpp). A record is
// inserted before the caller receives the block, and is removed before the block returns to
// upstream.

#include <isthmus/experimental.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "core/order.hpp"
#include "core/owner.hpp"
#include "memory/base/holders.hpp"
#include "memory/base/tags.hpp"
#include "memory/resources/adaptor.hpp"
#include "memory/resources/block_table.hpp"
#include "memory/resources/pointer_table.hpp"
#include "memory/resources/stack_table.hpp"
#include "memory/resources/tag_usage.hpp"
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
  // INVALID_ARGUMENT for a pointer without a record.
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override;

  // The blocks that are live and were allocated since the last reset, oldest first. Throws
  // std::bad_alloc, as do the functions below.
  [[nodiscard]] std::vector<BlockRecord> live();
  [[nodiscard]] static const CallStack* stack_of(const BlockRecord& record) noexcept {
    return static_cast<const CallStack*>(record.stack);
  }
  // A text that lists these blocks, grouped by stack and tag, most bytes first.
  [[nodiscard]] std::string report();
  // Excludes the blocks that are live now from later reports. Sets the peaks of the tags' counts to
  // the live counts, and their totals to 0.
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

  // Whether any tracking resource exists. Always true on a thread that has received a block of one.
  [[nodiscard]] static bool is_any() noexcept {
    return count_.load(std::memory_order_relaxed) != 0;
  }
  // The record of a live block. If several tracking resources recorded the block, this is the
  // record of the one nearest to the caller. `block` describes the memory that contains `pointer`.
  // Records with an order up to `since` are ignored: they describe the memory around the block
  // (`suballocated_since`).
  [[nodiscard]] static std::optional<BlockRecord> find_record_of(const PointerFacts& block,
                                                                 const void* pointer,
                                                                 std::uint64_t since) noexcept;

 private:
  ~TrackingResource() override;
  [[nodiscard]] bool is_based_on(const MemoryResource& base);
  // Adds the live blocks of each tag, of all tracking resources that are based on `base`, directly
  // or through other resources.
  static void count_by_tag(const MemoryResource& base, std::vector<Holder>& out);
  void record_block(const void* pointer, std::size_t nbytes, const Queue& queue,
                    const void* stack) {
    const auto* const tag = current_tag();
    auto* const counter = tag != nullptr ? &by_tag_.counter_for(tag) : nullptr;
    records_.insert({pointer, nbytes, queue.key(), next_order(), os::thread_id(), tag, stack});
    if (counter != nullptr) {
      counter->add(nbytes);
    }
  }
  // Removes the record of a block, and subtracts the block from its tag's count; false if there is
  // none. Call before the block returns to upstream.
  [[nodiscard]] bool extract_record(const void* pointer, std::size_t nbytes,
                                    BlockRecord& out) noexcept {
    const bool found = records_.extract(pointer, nbytes, out);
    if (found && out.tag != nullptr) {
      by_tag_.existing_counter(out.tag).remove(out.nbytes);
    }
    return found;
  }
  void restore_record(const BlockRecord& record) noexcept {
    records_.restore(record);
    if (record.tag != nullptr) {
      by_tag_.existing_counter(record.tag).restore(record.nbytes);
    }
  }
  [[nodiscard]] bool records_stacks() const noexcept {
    return options_.frames != 0 || options_.function != nullptr;
  }
  [[nodiscard]] const void* capture();

  static std::atomic<std::size_t> count_;
  const Options options_;
  BlockTable records_;
  StackTable stacks_;
  TagUsage by_tag_;
  PointerTable<BlockRecord> pending_;  // blocks that were freed, but not returned yet
  std::atomic<std::uint64_t> since_{0};
};

}  // namespace isthmus
