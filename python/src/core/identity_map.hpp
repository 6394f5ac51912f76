// SPDX-License-Identifier: Apache-2.0
#pragma once
// A map from handles of the library to their Python objects. Guarded by the interpreter's lock.

#include <unordered_map>

#include "core/common.hpp"

namespace isthmus::python {

// The Python object of each handle. Entries are borrowed: an object's destructor removes its own.
template <class Wrapper, class Raw>
class IdentityMap {
 public:
  struct Entry {
    PyObject* object;
    const Wrapper* wrapper;
  };

  // An object without references whose destructor has not run yet counts as absent.
  [[nodiscard]] nb::object find(Raw* raw) const {
    const auto found = entries_.find(raw);
    if (found == entries_.end() || Py_REFCNT(found->second.object) <= 0) {
      return {};
    }
    return nb::borrow(found->second.object);
  }
  void insert(Raw* raw, nb::handle object, const Wrapper* wrapper) {
    entries_.insert_or_assign(raw, Entry{object.ptr(), wrapper});
  }
  void erase(Raw* raw, const Wrapper* wrapper) noexcept {
    const auto found = entries_.find(raw);
    if (found != entries_.end() && found->second.wrapper == wrapper) {
      entries_.erase(found);
    }
  }

 private:
  std::unordered_map<Raw*, Entry> entries_;
};

}  // namespace isthmus::python
