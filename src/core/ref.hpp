// SPDX-License-Identifier: Apache-2.0
#pragma once
// Intrusive reference counting. Thread-safe, as a shared pointer is.
//
// A part, such as a platform's device or its default context, lives inside a whole and forwards its
// count to it. A handle to any part keeps the whole alive, and the whole can point to its parts
// without a reference cycle.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace isthmus {

class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() noexcept {
    if (auto& whole = whole_of_it(); !whole.stays_) {
      whole.count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // For callers that found the object without holding a reference, under a lock that the object's
  // destruction takes too. False if the last reference has been released.
  [[nodiscard]] bool try_retain() noexcept {
    auto& whole = whole_of_it();
    auto seen = whole.count_.load(std::memory_order_relaxed);
    while (seen != 0) {
      if (whole.count_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void release() noexcept {
    auto& whole = whole_of_it();
    if (!whole.stays_ && whole.count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      whole.last_reference_gone();
    }
  }
  [[nodiscard]] bool unique() noexcept { return references() == 1; }
  // UINT32_MAX if the object is never destroyed.
  [[nodiscard]] std::uint32_t references() noexcept {
    auto& whole = whole_of_it();
    return whole.stays_ ? UINT32_MAX : whole.count_.load(std::memory_order_acquire);
  }
  // From here on the object and its parts live as long as the process and are not counted: the
  // counting of all threads would contend for one cache line. Pre: called by the creator before
  // other threads know the object.
  void stay_for_ever() noexcept { stays_ = true; }
  // Called once by `make_ref`. An independent object starts with its creator's reference; a part
  // adds the creator's reference to its whole.
  void count_maker() noexcept {
    if (part_of_ != nullptr) {
      retain();
    }
  }

 protected:
  RefCounted() noexcept = default;
  // `part_of` may be null: the object is independent.
  explicit RefCounted(RefCounted* part_of) noexcept : part_of_{part_of} {}
  virtual ~RefCounted() = default;

  virtual void last_reference_gone() noexcept { delete this; }

 private:
  RefCounted& whole_of_it() noexcept { return part_of_ != nullptr ? *part_of_ : *this; }

  // Incremented relaxed. Decremented with acq_rel, so that destruction is ordered after all other
  // accesses.
  std::atomic<std::uint32_t> count_{1};
  bool stays_ = false;
  RefCounted* part_of_ = nullptr;
};

template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  explicit Ref(T* object) noexcept : object_{object} {
    if (object_ != nullptr) {
      object_->retain();
    }
  }
  static Ref adopt(T* object) noexcept {
    Ref taken;
    taken.object_ = object;
    return taken;
  }

  Ref(const Ref& other) noexcept : Ref{other.object_} {}
  Ref(Ref&& other) noexcept : object_{std::exchange(other.object_, nullptr)} {}
  template <class Derived>
    requires std::is_convertible_v<Derived*, T*>
  Ref(Ref<Derived> other) noexcept : object_{other.detach()} {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) {
      object_->release();
    }
  }

  [[nodiscard]] T* get() const noexcept { return object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }
  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] explicit operator bool() const noexcept { return object_ != nullptr; }
  // Transfers the reference to the caller, which releases it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
[[nodiscard]] Ref<T> make_ref(Args&&... args) {
  auto* made = new T(std::forward<Args>(args)...);
  made->count_maker();
  return Ref<T>::adopt(made);
}

}  // namespace isthmus
