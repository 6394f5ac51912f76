// SPDX-License-Identifier: Apache-2.0
#pragma once
// The statistics scope and the tag of a thread or asyncio task, stored in context variables. Needs
// the interpreter's lock unless stated otherwise.

#include "core/common.hpp"

namespace isthmus::python {

// Whether any scope, or tag, was ever entered. Guarded by the interpreter's lock.
extern bool scopes_in_use, tags_in_use;

// The scope that this context is in; empty if there is none.
[[nodiscard]] ScopeHandle current_scope();

// The tag of this context; null if there is none. It is never freed.
[[nodiscard]] const char* current_tag();
// The tag as a str; None for null.
[[nodiscard]] nb::object tag_name(const char* tag);

// While an object of this class exists, the library counts the thread's calls in the scope of its
// context, if there is one, and under its tag. Holds a reference to the scope, because a Python
// function that the library calls meanwhile may leave it. Construction needs the interpreter's
// lock, destruction does not.
class WithinScope {
 public:
  WithinScope()
      : scope_{scopes_in_use ? current_scope() : ScopeHandle{}},
        outer_{scope_ ? isthmus_scope_swap(scope_.get()) : nullptr},
        tag_{tags_in_use ? current_tag() : nullptr},
        previous_tag_{tag_ != nullptr ? isthmus_tag_swap(tag_) : nullptr} {}
  WithinScope(const WithinScope&) = delete;
  WithinScope& operator=(const WithinScope&) = delete;
  ~WithinScope() {
    if (scope_) {
      isthmus_scope_swap(outer_);
    }
    if (tag_ != nullptr) {
      isthmus_tag_swap(previous_tag_);
    }
  }

 private:
  const ScopeHandle scope_;
  isthmus_scope_t* const outer_;
  const char* const tag_;
  const char* const previous_tag_;
};

// Like WithinScope, for a free and without the tag. Never fails: if the scope cannot be determined,
// the free counts outside of all scopes.
class FreeWithinScope {
 public:
  FreeWithinScope() noexcept {
    if (scopes_in_use) [[unlikely]] {
      enter();
    }
  }
  FreeWithinScope(const FreeWithinScope&) = delete;
  FreeWithinScope& operator=(const FreeWithinScope&) = delete;
  ~FreeWithinScope() {
    if (scope_) [[unlikely]] {
      isthmus_scope_swap(outer_);
    }
  }

 private:
  void enter() noexcept;

  ScopeHandle scope_{};
  isthmus_scope_t* outer_ = nullptr;
};

}  // namespace isthmus::python
