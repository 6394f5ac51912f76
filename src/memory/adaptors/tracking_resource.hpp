// SPDX-License-Identifier: Apache-2.0
#pragma once
// The allocation tracker: records each live block that was allocated through it, with its requested
// size, queue, tag, thread, order in time and, on request, the stack that it was allocated in.
//
// Without stacks this costs some 10 ns for an allocation with its free, however many blocks are
// live: notes are found from a block's address and take no lock (note_table.hpp). A note exists
// before the caller has the block, and is gone before upstream has it back.

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/order.hpp"
#include "core/owner.hpp"
#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/note_table.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/adaptors/stack_table.hpp"
#include "memory/adaptors/tag_usage.hpp"
#include "memory/tags.hpp"
#include "os/thread_id.hpp"

namespace isthmus {

class tracking_resource final : public adaptor {
 public:
  static constexpr std::size_t k_most_frames = 64;
  struct options {
    std::size_t frames = 0;                       // of native code, at most k_most_frames
    isthmus_stack_function_t function = nullptr;  // describes other frames
    owner keep;
  };

  tracking_resource(memory_resource& upstream, options how);

  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // INVALID_ARGUMENT for a block that it does not know.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override;
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override;

  // The blocks that are live and were allocated since the last reset, oldest first. Throws
  // std::bad_alloc, as do the functions below.
  [[nodiscard]] std::vector<block_note> live();
  [[nodiscard]] static const call_stack* stack_of(const block_note& of) noexcept {
    return static_cast<const call_stack*>(of.stack);
  }
  // These blocks as a text, grouped by stack and tag, most bytes first.
  [[nodiscard]] std::string report();
  // Blocks that are live now are no longer reported. Of the tags' counts the peaks become what is
  // live, and the totals 0.
  void reset() noexcept {
    since_.store(order_from_here(), std::memory_order_relaxed);
    by_tag_.look_at_each([](const char*, usage_counter& each) { each.reset(); });
  }

  struct use_of_tag {
    const char* tag;
    usage_counter::counts counts;
  };
  // The usage of each tag that memory was allocated under, most live bytes first, then by name.
  [[nodiscard]] std::vector<use_of_tag> usage_by_tag();

  // Whether any tracking resource exists. True on a thread that received a block of one.
  [[nodiscard]] static bool is_any() noexcept {
    return count_.load(std::memory_order_relaxed) != 0;
  }
  // What the tracking resource that a live block came through recorded; of several, the one nearest
  // to the caller. `block` is what contains `pointer`. Notes with an order up to `since` are of the
  // memory around it (`cut_since`).
  [[nodiscard]] static std::optional<block_note> find_note_of(const pointer_facts& block,
                                                              const void* pointer,
                                                              std::uint64_t since) noexcept;

  // Calls see(resource) for each that stands on `base`, directly or through other resources.
  static void visit_over(const memory_resource& base,
                         const std::function<void(tracking_resource&)>& see);
  // What is live, whether allocated before or after the last reset.
  [[nodiscard]] std::vector<block_note> all() { return notes_.all(); }

 private:
  ~tracking_resource() override;
  [[nodiscard]] bool stands_on(const memory_resource& base);
  void note(const void* pointer, std::size_t nbytes, const queue& on, const void* stack) {
    const auto* const tag = current_tag();
    auto* const counter = tag != nullptr ? &by_tag_.of(tag) : nullptr;
    notes_.put({pointer, nbytes, on.key(), next_order(), os::thread_id(), tag, stack});
    if (counter != nullptr) {
      counter->add(nbytes);
    }
  }
  // False if there is none. Counts the block out before upstream has it.
  [[nodiscard]] bool take_note(const void* pointer, std::size_t nbytes, block_note& out) noexcept {
    const bool found = notes_.take(pointer, nbytes, out);
    if (found && out.tag != nullptr) {
      by_tag_.known(out.tag).remove(out.nbytes);
    }
    return found;
  }
  void put_back(const block_note& of) noexcept {
    notes_.put_back(of);
    if (of.tag != nullptr) {
      by_tag_.known(of.tag).restore(of.nbytes);
    }
  }
  [[nodiscard]] bool wants_stacks() const noexcept {
    return how_.frames != 0 || how_.function != nullptr;
  }
  [[nodiscard]] const void* capture();

  static std::atomic<std::size_t> count_;
  const options how_;
  note_table notes_;
  stack_table stacks_;
  tag_usage by_tag_;
  pointer_table<block_note> late_;  // blocks freed, but not returned yet
  std::atomic<std::uint64_t> since_{0};
};

}  // namespace isthmus
