#pragma once
// The program's reclaim callbacks: asked, when there is no memory, to give up what they can.

#include <isthmus/isthmus.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/owner.hpp"
#include "core/ref.hpp"
#include "memory/memory_resource.hpp"

namespace isthmus {

// One callback. It is called on the thread that asks for memory, with no lock of the library held,
// by several threads at once if several find none, and never from inside any callback.
class reclaimer final : public ref_counted {
 public:
  // `user`'s object is passed to `function`, and released with the last reference.
  reclaimer(isthmus_reclaim_t function, owner user) noexcept
      : function_{function}, user_{std::move(user)} {}

  // What it says that it gave up, in bytes; 0 once it is closed.
  [[nodiscard]] std::uint64_t ask(const isthmus_reclaim_request_t& request) noexcept;
  // It is not called from here on. Blocks until its calls have ended, if that is wanted; not from
  // inside any: two that waited for one another would never return. The thread's interrupt
  // function may end that wait.
  void close(bool waits) noexcept;

 private:
  ~reclaimer() override = default;
  // False: some run, and `until` has passed.
  [[nodiscard]] bool calls_end(const os::deadline& until) noexcept;

  const isthmus_reclaim_t function_;
  const owner user_;
  std::mutex lock_;
  std::condition_variable ended_;
  unsigned running_ = 0;
  bool closed_ = false;
};

// Of the whole process; never destroyed. Safe for threads.
class reclaimers {
 public:
  struct outcome {
    std::size_t asked = 0;
    std::uint64_t bytes = 0;  // that they say they gave up
  };
  // Throws std::bad_alloc.
  void add(ref<reclaimer> made);
  // Closes it too.
  void remove(reclaimer& gone, bool waits) noexcept;
  // Asks those that are there, in the order in which they were added; nobody from inside a
  // callback.
  [[nodiscard]] outcome ask(const isthmus_reclaim_request_t& request) noexcept;

 private:
  struct entry {
    std::uint64_t number = 0;
    ref<reclaimer> which;
  };
  // The first with a number above `last` and up to `newest`; an empty one if there is none.
  [[nodiscard]] entry next(std::uint64_t last, std::uint64_t newest) noexcept;
  [[nodiscard]] std::uint64_t newest() noexcept;

  std::mutex lock_;
  std::uint64_t last_number_ = 0;
  std::vector<entry> all_;  // by number
};
[[nodiscard]] reclaimers& process_reclaimers() noexcept;

[[nodiscard]] isthmus_reclaim_request_t request_for(device& where, usm_kind kind,
                                                    std::size_t nbytes) noexcept;
// Whether what is on its way back may be waited for, or asked for: not for what never fits or is
// another failure, nor where a pool is below, which does both on its own ladder, nor where it is no
// place for that.
[[nodiscard]] bool may_be_had_later(const error& refusal, device& where,
                                    const allocation_request& request,
                                    memory_resource* from) noexcept;
// Whether it is worth while to ask `from` (null: the driver) again, since the callbacks say that
// they gave something up. They are asked for what the driver refused last, if it refused anything
// since it had done so `refusals` times: a resource's chunk may be larger than the request. Nobody
// is asked for what never fits or is another failure, where a pool is below, which has asked on its
// own ladder, or where callbacks have no place. Pre: no lock of the library's is held.
[[nodiscard]] bool reclaimed_for(const error& refusal, std::uint64_t refusals, device& where,
                                 const allocation_request& request, memory_resource* from) noexcept;

}  // namespace isthmus
