// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL device. Thread-safe.

#include <array>

#include "backend/device.hpp"
#include "backend/queue_table.hpp"
#include "backend/sycl/reference.hpp"

namespace isthmus::sycl {

// The next number of each type, over all SYCL platforms, for filters.
using type_numbers = std::array<unsigned, ISTHMUS_DEVICE_ACCELERATOR + 1>;

// NOT_FOUND for a device without USM or of an unsupported type.
[[nodiscard]] result<device_properties> describe(const api& calls, device_reference reference,
                                                 type_numbers& numbers);

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, const api& calls, device_properties properties,
         owned_device reference)
      : isthmus::device{home, std::move(properties)},
        reference_{std::move(reference)},
        takes_host_memory_{calls.has_aspect(reference_.get(), dp::k_aspect_usm_system) &&
                           is_host()} {}

  [[nodiscard]] device_reference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] void* native() const noexcept override { return reference_.get(); }
  // Whether its memory is the host's.
  [[nodiscard]] bool is_host() const noexcept { return properties().type == ISTHMUS_DEVICE_CPU; }
  [[nodiscard]] bool reaches_host_memory() const noexcept override { return takes_host_memory_; }
  [[nodiscard]] bool keeps_memory_on_host() const noexcept override { return is_host(); }
  // Queues by SYCL's hash, without the default queue.
  [[nodiscard]] queue_table<std::size_t>& known_queues() noexcept { return known_queues_; }
  // Held from the lookup in `known_queues` until the addition to it, so that a queue is adopted
  // once.
  [[nodiscard]] std::mutex& adopting() noexcept { return adopting_; }
  // The machine's memory, for a CPU device. UNSUPPORTED for others, since dpctl does not report it.
  [[nodiscard]] result<memory_info> memory() const override;

 private:
  owned_device reference_;
  bool takes_host_memory_;
  std::mutex adopting_;
  queue_table<std::size_t> known_queues_;
};

}  // namespace isthmus::sycl
