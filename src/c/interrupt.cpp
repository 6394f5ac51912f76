// SPDX-License-Identifier: Apache-2.0
// The function that can interrupt waits of the calling thread.

#include "core/interrupt.hpp"

#include <isthmus/isthmus.h>

#include <utility>

isthmus_interrupt_t isthmus_interrupt_swap(isthmus_interrupt_t interrupt) noexcept {
  return std::exchange(isthmus::thread_interrupt, interrupt);
}
