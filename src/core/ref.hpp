// SPDX-License-Identifier: Apache-2.0
#pragma once
// Intrusive reference counting. Thread-safe, as a shared pointer is.
//
// A child, such as a platform's device or its default context, lives inside its parent and forwards
// its count to it. A handle to any child keeps the parent alive, and the parent can point to its
// children without a reference cycle.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/expects.hpp"

namespace isthmus {

class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() noexcept {
    if (auto& root = counting_root(); !root.immortal_) {
      root.count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // For callers that found the object without holding a reference, under a lock that the object's
  // destruction takes too. False if the last reference has been released.
  [[nodiscard]] bool try_retain() noexcept {
    auto& root = counting_root();
    if (root.immortal_) {
      return true;
    }
    auto count = root.count_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (root.count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
  void release() noexcept {
    auto& root = counting_root();
    if (!root.immortal_ && root.count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      root.on_last_release();
    }
  }
  [[nodiscard]] bool unique() noexcept { return references() == 1; }
  // UINT32_MAX if the object is never destroyed.
  [[nodiscard]] std::uint32_t references() noexcept {
    auto& root = counting_root();
    return root.immortal_ ? UINT32_MAX : root.count_.load(std::memory_order_acquire);
  }
  // Makes the object and its children live as long as the process. Their references are no longer
  // counted, since the counting of all threads would contend for one cache line. Called by the
  // creator before other threads know the object.
  void make_immortal() noexcept {
    ISTHMUS_EXPECTS(parent_ == nullptr);
    immortal_ = true;
  }
  // Makes the object a child of `parent`, as the constructor does. Called by the creator before
  // other threads know the object and before it has children.
  void become_child_of(RefCounted& parent) noexcept {
    ISTHMUS_EXPECTS(parent_ == nullptr);
    parent_ = &parent.counting_root();
  }
  // Called once by `make_ref`. An independent object starts with its creator's reference; a child
  // adds the creator's reference to its parent.
  void count_creator() noexcept {
    if (parent_ != nullptr) {
      retain();
    }
  }

 protected:
  RefCounted() noexcept = default;
  // `parent` may be null: the object is independent. A child of a child is a child of the same
  // parent.
  explicit RefCounted(RefCounted* parent) noexcept
      : parent_{parent != nullptr ? &parent->counting_root() : nullptr} {}
  virtual ~RefCounted() = default;

  virtual void on_last_release() noexcept { delete this; }

 private:
  RefCounted& counting_root() noexcept { return parent_ != nullptr ? *parent_ : *this; }

  // Incremented relaxed. Decremented with acq_rel, so that destruction is ordered after all other
  // accesses.
  std::atomic<std::uint32_t> count_{1};
  bool immortal_ = false;
  RefCounted* parent_ = nullptr;  // itself independent
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
    Ref ref;
    ref.object_ = object;
    return ref;
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
  auto* object = new T(std::forward<Args>(args)...);
  object->count_creator();
  return Ref<T>::adopt(object);
}

}  // namespace isthmus
