#pragma once
// An adaptor that keeps memory of its upstream's which no caller has.
//
// It returns that memory for every request that the driver refuses (other_pools.hpp), whoever makes
// it. The request may be its own, so none of its locks is held over a call of upstream's. From the
// first memory that upstream gave it until its last reference has gone it is in one list with all
// others of the process.

#include <mutex>
#include <vector>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class caching_adaptor : public adaptor {
 public:
  caching_adaptor(memory_resource& upstream, nature of) : adaptor{upstream, of} {
    upstream.collect_bases(bases_);
  }

  // Returns to upstream what no caller has and nothing uses any more; the bytes. Waits for no work.
  virtual std::size_t release_unused() noexcept = 0;
  // The ends of work that such memory still waits for. Throws std::bad_alloc.
  [[nodiscard]] virtual std::vector<ref<event>> running() = 0;

  // Those at the bottom, whose memory it keeps.
  [[nodiscard]] const std::vector<memory_resource*>& bases() const noexcept { return bases_; }
  [[nodiscard]] bool is_drivers_own() const noexcept final { return upstream().is_drivers_own(); }

 protected:
  // With what upstream gave it, before it keeps that. Cheap after the first time.
  void note_memory() noexcept;
  // Before its end begins: the list calls its functions.
  void leave_list() noexcept;
  void last_reference_gone() noexcept override;

 private:
  friend class caching_adaptors;

  std::vector<memory_resource*> bases_;
  std::atomic<bool> is_listed_{false};
  // Of the list, under its lock.
  caching_adaptor* newer_ = nullptr;
  caching_adaptor* older_ = nullptr;
};

// Those that somebody refers to and that have or had memory of upstream's. Safe for threads; needs
// no memory. One that stands on another is newer than that: its upstream gave memory first.
class caching_adaptors {
 public:
  void join(caching_adaptor& made) noexcept;
  void leave(caching_adaptor& gone) noexcept;
  // The newest that is older than `last` (null: of all) and that `fits` accepts, which is called
  // under the lock: no reference is taken to another, so none of these ends here. Null: there is
  // none. Pre: the caller has a reference to `last`, which came from here.
  template <class Fits>
  [[nodiscard]] ref<caching_adaptor> next(const caching_adaptor* last, Fits&& fits) {
    const std::lock_guard hold{lock_};
    for (auto* each = last == nullptr ? newest_ : last->older_; each != nullptr;
         each = each->older_) {
      if (fits(*each) && each->try_retain()) {
        return ref<caching_adaptor>::adopt(each);
      }
    }
    return {};
  }

 private:
  std::mutex lock_;
  caching_adaptor* newest_ = nullptr;
};
// Never destroyed.
[[nodiscard]] caching_adaptors& process_caching_adaptors() noexcept;

}  // namespace isthmus
