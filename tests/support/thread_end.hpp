// What a thread does when what its thread_locals and libraries left has ended.
#pragma once

#include <pthread.h>

#include <functional>

namespace support {

// Runs it at the calling thread's end, behind the destructors of thread_locals and of all keys.
inline void run_at_thread_end(const std::function<void()>& last) {
  struct wish {
    std::function<void()> run;
    pthread_key_t key{};
    bool others_came = false;
  };
  auto* const made = new wish{last};
  // What a destructor sets anew is destroyed in a further round, behind the others of this one.
  pthread_key_create(&made->key, [](void* at) {
    auto* const its = static_cast<wish*>(at);
    if (!its->others_came) {
      its->others_came = true;
      pthread_setspecific(its->key, its);
      return;
    }
    its->run();
    pthread_key_delete(its->key);
    delete its;
  });
  pthread_setspecific(made->key, made);
}

}  // namespace support
