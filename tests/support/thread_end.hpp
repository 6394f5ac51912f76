// SPDX-License-Identifier: Apache-2.0
// Runs a function at the very end of a thread, after the destructors of its thread-local objects.
#pragma once

#include <pthread.h>

#include <functional>

namespace support {

// Runs `last` on the calling thread at its end, after the destructors of its thread_locals and of
// all other pthread keys.
inline void run_at_thread_end(const std::function<void()>& function) {
  struct wish {
    std::function<void()> run;
    pthread_key_t key{};
    bool other_keys_ran = false;
  };
  auto* const state = new wish{function};
  // A value that a destructor sets again is destroyed in a further round, after the other keys of
  // this round.
  pthread_key_create(&state->key, [](void* at) {
    auto* const its = static_cast<wish*>(at);
    if (!its->other_keys_ran) {
      its->other_keys_ran = true;
      pthread_setspecific(its->key, its);
      return;
    }
    its->run();
    pthread_key_delete(its->key);
    delete its;
  });
  pthread_setspecific(state->key, state);
}

}  // namespace support
