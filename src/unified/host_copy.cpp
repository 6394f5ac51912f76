// SPDX-License-Identifier: Apache-2.0
#include "unified/host_copy.hpp"

#include <algorithm>
#include <utility>

#include "core/sizes.hpp"
#include "memory/base/live_counts.hpp"
#include "os/process.hpp"
#include "tracking/creation.hpp"

namespace isthmus {
namespace {

// Adds the memory to the process's count of live host memory.
std::shared_ptr<tracking::TrackedMemory> count_as_live(
    std::unique_ptr<tracking::TrackedMemory> memory) {
  process_live_counts().add(memory->view(), ISTHMUS_KIND_HOST, memory->nbytes());
  return {memory.release(), [](tracking::TrackedMemory* freed) {
            process_live_counts().remove(freed->view(), ISTHMUS_KIND_HOST, freed->nbytes());
            delete freed;
          }};
}

}  // namespace

Result<void> HostCopy::ensure() {
  if (memory_) {
    return {};
  }
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot create a host copy that its parent did not have: access it "
                "before the fork, or start the child with spawn");
  }
  auto tracked = tracking::create_memory(
      {request_.nbytes, request_.granularity, request_.mechanism, copied_by()});
  ISTHMUS_TRY(tracked);
  memory_ = count_as_live(*std::move(tracked));
  if (auto pinned = ensure_pin(); !pinned) {
    memory_.reset();
    return pinned;
  }
  return {};
}

tracking::CopiedBy HostCopy::copied_by() const noexcept {
  if (is_one_memory_) {
    return tracking::CopiedBy::nothing;
  }
  return device_.reaches_host_memory() ? tracking::CopiedBy::processor : tracking::CopiedBy::device;
}

// Pins the mapping that most copies use.
Result<void> HostCopy::ensure_pin() {
  if (!request_.pinned || is_one_memory_) {
    return {};
  }
  auto* const start = memory_->mechanism() == tracking::TrackingMechanism::hashes
                          ? memory_->view()
                          : memory_->library();
  auto pin = Pin::make(device_, {start, memory_->nbytes(), false}, owner_of(memory_));
  ISTHMUS_TRY(pin);
  pin_ = *std::move(pin);
  return {};
}

void HostCopy::ensure_library_pin() {
  if (!pin_ || library_pin_ || memory_->mechanism() != tracking::TrackingMechanism::hashes) {
    return;
  }
  auto pin = Pin::make(device_, {memory_->library(), memory_->nbytes(), false}, owner_of(memory_));
  if (pin) {
    library_pin_ = *std::move(pin);
  }
}

void HostCopy::release_pins() noexcept {
  for (auto* pin : {&pin_, &library_pin_}) {
    if (*pin) {
      (*pin)->end(false);
      *pin = {};
    }
  }
}

void HostCopy::release() noexcept {
  if (views_.load(std::memory_order_seq_cst) != 0 || has_read_pointers_) {
    return;
  }
  release_pins();
  memory_.reset();
}

ByteRange HostCopy::whole_granules(const ByteRange& range) const noexcept {
  if (!memory_ || memory_->mechanism() != tracking::TrackingMechanism::hashes) {
    return range;
  }
  const auto granule = memory_->granule();
  return {range.begin / granule * granule, std::min(request_.nbytes, round_up(range.end, granule))};
}

}  // namespace isthmus
