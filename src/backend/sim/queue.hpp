// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue of a simulated device: turns requests into operations of the engine. Thread-safe.

#include <memory>

#include "backend/queue.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

class queue final : public isthmus::queue {
 public:
  queue(isthmus::context& home, isthmus::device& where, bool part);
  // Demands nothing: submitted operations stay with the device.
  ~queue() override;

 protected:
  [[nodiscard]] result<ref<event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_2d(const copy_2d_shape& shape, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_copy_ranges(const ranged_copy& what,
                                                  wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fill(void* destination, const fill_pattern& pattern,
                                           std::size_t nbytes, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, wait_list after) override;
  [[nodiscard]] result<ref<event>> do_fence(wait_list after) override;
  [[nodiscard]] bool knows(event& candidate) const noexcept override;

 private:
  [[nodiscard]] result<place> resolve(const void* pointer, std::size_t nbytes);
  [[nodiscard]] bool is_local(const place& end) const noexcept;
  // The common part of copies. Pre: the extents of both sides are in bytes.
  [[nodiscard]] result<work> between(void* destination, std::size_t to_bytes, const void* source,
                                     std::size_t from_bytes);
  [[nodiscard]] result<ref<event>> copy_rows(call kind, const copy_2d_shape& shape,
                                             wait_list after);
  // Counts the call and one more for each event that the driver did not make.
  [[nodiscard]] result<void> begin(call kind, wait_list after);
  [[nodiscard]] result<ref<event>> submit(work todo, wait_list after);

  std::shared_ptr<engine> engine_;
  std::shared_ptr<lane> lane_;
};

}  // namespace isthmus::sim
