// SPDX-License-Identifier: Apache-2.0
#pragma once
// An adaptor that caches upstream memory which is not allocated to any caller.
//
// It returns that memory whenever the driver refuses a request (other_pools.hpp). The request may
// be its own, so it holds no lock while it calls upstream. It is in the list of the process from
// its first upstream memory until its last reference is dropped.

#include <mutex>
#include <vector>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class CachingAdaptor : public Adaptor {
 public:
  CachingAdaptor(MemoryResource& upstream, Nature nature) : Adaptor{upstream, nature} {
    upstream.collect_bases(bases_);
  }

  // Returns to upstream what is neither allocated nor in use, and reports the bytes. Does not wait
  // for work.
  virtual std::size_t release_unused() noexcept = 0;
  // Events of unfinished work that prevents the release of such memory. Throws std::bad_alloc.
  [[nodiscard]] virtual std::vector<Ref<Event>> running() = 0;

  [[nodiscard]] const std::vector<MemoryResource*>& bases() const noexcept { return bases_; }
  [[nodiscard]] bool is_driver_backed() const noexcept final {
    return upstream().is_driver_backed();
  }

 protected:
  // Call after an allocation from upstream, before its memory is cached. Cheap after the first
  // time.
  void ensure_listed() noexcept;
  // Call before destruction begins, since the list calls virtual functions.
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

// All referenced adaptors that have or had upstream memory. Thread-safe; allocates nothing. An
// adaptor over another one is newer in the list: its upstream provided memory first.
class CachingAdaptors {
 public:
  void add(CachingAdaptor& adaptor) noexcept;
  void remove(CachingAdaptor& adaptor) noexcept;
  // The newest adaptor that is older than `last` (null: of all) and that `fits` accepts; null if
  // there is none. `fits` is called under the lock; no reference is taken to an adaptor that it
  // rejects, so none is destroyed here. Pre: the caller has a reference to `last`, which this
  // function returned.
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
