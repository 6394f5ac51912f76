// SPDX-License-Identifier: Apache-2.0
#pragma once
// Callbacks that the fuzzer of memory resources passes to the library.

#include <atomic>

#include "input.hpp"

namespace fuzz {

// The input that decides what callbacks do; null at the end of a run.
inline input* choices = nullptr;

// A custom resource that forwards to another one, and sometimes breaks the rules.
struct source {
  isthmus_resource_t* upstream;
  std::atomic<std::size_t> live{0};

  static source& in(void* object) { return *static_cast<source*>(object); }

  static isthmus_status_t allocate(void* object, std::size_t nbytes, std::size_t alignment,
                                   isthmus_queue_t* queue, void** pointer, const char** message) {
    require(nbytes != 0 && alignment != 0 && queue != nullptr && *pointer == nullptr);
    switch (choices == nullptr ? 255 : choices->byte()) {
      case 0: return ISTHMUS_OK;  // with NULL as the result
      case 1: return ISTHMUS_ERROR_OUT_OF_MEMORY;
      case 2: return static_cast<isthmus_status_t>(-1000);
      case 3: return ISTHMUS_PENDING;
      case 4: *message = "none of these"; return ISTHMUS_ERROR_UNSUPPORTED;
      default: break;
    }
    const isthmus_status_t code =
        isthmus_resource_allocate(in(object).upstream, nbytes, alignment, queue, pointer);
    *message = isthmus_error_message();
    in(object).live += code == ISTHMUS_OK ? 1 : 0;
    return code;
  }
  static void deallocate(void* object, void* pointer, std::size_t nbytes, isthmus_queue_t* queue) {
    source& self = in(object);
    require(isthmus_resource_deallocate(self.upstream, pointer, nbytes, 0, queue) == ISTHMUS_OK);
    --self.live;
  }
  static void usage(void*, std::uint64_t* held, std::uint64_t* free) { *held = 2, *free = 1; }
  static std::uint64_t trim(void*, std::uint64_t keep) { return keep == 0 ? 1 : 0; }
  static void release(void* object) {
    require(in(object).live == 0);
    isthmus_resource_release(in(object).upstream);
    delete &in(object);
  }
};

// A failure callback: requests a retry some times, or fails.
struct patience {
  std::uint8_t tries;

  static isthmus_status_t call(void* object, std::size_t nbytes, int* retry, const char** message) {
    auto& self = *static_cast<patience*>(object);
    require(nbytes != 0 && *retry == 0);
    if (self.tries == 255) {
      *message = "no patience";
      return ISTHMUS_ERROR_CALLBACK;
    }
    *retry = self.tries != 0 ? 1 : 0;
    self.tries -= self.tries != 0 ? 1 : 0;
    return ISTHMUS_OK;
  }
  static void release(void* object) { delete static_cast<patience*>(object); }
};

// Returns a stack as a language binding would.
struct frames {
  static const char* format(void* object) {
    switch (choices == nullptr ? 0 : choices->byte() % 3) {
      case 0: return nullptr;
      case 1: return "";
      default: return static_cast<const frames*>(object)->text;
    }
  }
  static void release(void* object) { delete static_cast<frames*>(object); }

  const char* text = "inner\nouter";
};

}  // namespace fuzz
