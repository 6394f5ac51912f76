// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of adaptors that cache upstream memory which no caller has allocated.
//
// An adaptor releases this memory whenever the driver refuses a request (other_pools.hpp). It may
// have made that request itself, so it holds no lock while it calls upstream. It is in the
// process-wide list from its first upstream allocation until its last reference is dropped.

#include <mutex>
#include <vector>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class CachingAdaptor : public Adaptor {
 public:
  CachingAdaptor(MemoryResource& upstream, Nature nature) : Adaptor{upstream, nature} {
    upstream.collect_bases(bases_);
  }

  // Releases memory that is neither allocated nor used by work, and returns the bytes released.
  // Does not wait for work.
  virtual std::size_t release_unused() noexcept = 0;
  // Events of unfinished work that prevents the release of cached memory. Throws std::bad_alloc.
  [[nodiscard]] virtual std::vector<Ref<Event>> running() = 0;

  [[nodiscard]] const std::vector<MemoryResource*>& bases() const noexcept { return bases_; }
  [[nodiscard]] bool is_driver_backed() const noexcept final {
    return upstream().is_driver_backed();
  }

 protected:
  // Adds the adaptor to the list. Call after an allocation from upstream, before its memory is
  // cached. Further calls cost one load.
  void ensure_listed() noexcept;
  // Removes the adaptor from the list. Call before destruction begins, since virtual functions of
  // listed adaptors are called.
  void unlist() noexcept;
  void on_last_release() noexcept override;

 private:
  friend class CachingAdaptors;

  std::vector<MemoryResource*> bases_;
  std::atomic<bool> is_listed_{false};
  // Links of the list, guarded by its lock.
  CachingAdaptor* newer_ = nullptr;
  CachingAdaptor* older_ = nullptr;
};

// The list of caching adaptors that are referenced and have obtained upstream memory. Thread-safe;
// allocates nothing. An adaptor is newer in the list than the adaptors below it, since those
// provided memory first.
class CachingAdaptors {
 public:
  void add(CachingAdaptor& adaptor) noexcept;
  void remove(CachingAdaptor& adaptor) noexcept;
  // The newest adaptor that `fits` accepts among those older than `last`, or among all if `last` is
  // null. Returns null if there is none. `fits` is called under the lock. No reference is taken to
  // an adaptor that it rejects, so none is destroyed here. Pre: the caller has a reference to
  // `last`, which this function returned.
  template <class Fits>
  [[nodiscard]] Ref<CachingAdaptor> next(const CachingAdaptor* last, Fits&& fits) {
    const std::lock_guard hold{lock_};
    for (auto* each = last == nullptr ? newest_ : last->older_; each != nullptr;
         each = each->older_) {
      if (fits(*each) && each->try_retain()) {
        return Ref<CachingAdaptor>::adopt(each);
      }
    }
    return {};
  }

 private:
  std::mutex lock_;
  CachingAdaptor* newest_ = nullptr;
};
// The list of the process; never destroyed.
[[nodiscard]] CachingAdaptors& process_caching_adaptors() noexcept;

}  // namespace isthmus
