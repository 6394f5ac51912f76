// SPDX-License-Identifier: Apache-2.0
#include "array/requests.hpp"

#include <algorithm>

#include "core/keywords.hpp"

namespace isthmus::python {
namespace {

// The keywords, the most frequent ones first. Created by the first call, with the interpreter's
// lock.
std::span<const Keyword<ArrayRequest>> keywords() {
  using Request = ArrayRequest;
  static const std::array<Keyword<Request>, 13> all{{{"dtype", &Request::dtype},
                                                     {"kind", &Request::kind},
                                                     {"queue", &Request::queue},
                                                     {"device", &Request::device},
                                                     {"resource", &Request::resource},
                                                     {"usm_type", &Request::kind},
                                                     {"sycl_queue", &Request::queue},
                                                     {"order", &Request::order},
                                                     {"alignment", &Request::alignment},
                                                     {"shape", &Request::shape},
                                                     {"fill_value", &Request::fill_value},
                                                     {"prototype", &Request::prototype},
                                                     {"fallback", &Request::fallback}}};
  return all;
}

bool accepts(const ArraySignature& signature, RequestMember member) noexcept {
  return (member != &ArrayRequest::fill_value || signature.has_fill_value) &&
         (member != &ArrayRequest::prototype || signature.is_like);
}

RequestMember member_of(const ArraySignature& signature, PyObject* name) {
  const auto member = find_keyword(keywords(), name);
  if (member == nullptr || !accepts(signature, member)) {
    raise_python(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", signature.name,
                 name);
  }
  return member;
}

const char* name_of(RequestMember member) {
  const auto all = keywords();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [member](const auto& each) { return each.member == member; });
  return PyUnicode_AsUTF8(found->name);
}

void read_positional(ArrayRequest& out, const ArraySignature& signature, PyObject* const* arguments,
                     std::size_t count) {
  if (count > signature.positional.size()) {
    raise_python(PyExc_TypeError, "%s() takes at most %zu arguments by position, not %zu",
                 signature.name, signature.positional.size(), count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    out.*signature.positional[i] = arguments[i];
  }
}

void require_all(const ArrayRequest& read, const ArraySignature& signature) {
  for (const auto member : signature.positional.first(signature.required_count)) {
    if (!(read.*member).is_valid()) {
      raise_python(PyExc_TypeError, "%s() is missing its argument '%s'", signature.name,
                   name_of(member));
    }
  }
}

// For the argument `names[index]`, whose member was set before.
[[noreturn]] void raise_duplicate(const ArraySignature& signature, PyObject* names,
                                  Py_ssize_t index) {
  auto* const name = PyTuple_GET_ITEM(names, index);
  for (Py_ssize_t i = 0; i < index; ++i) {
    auto* const other = PyTuple_GET_ITEM(names, i);
    if (member_of(signature, other) == member_of(signature, name) &&
        PyUnicode_Compare(other, name) != 0) {
      raise_python(PyExc_TypeError,
                   "%s() got %U and %U, which mean the same: pass only one of them", signature.name,
                   other, name);
    }
  }
  raise_python(PyExc_TypeError, "%s() got '%U' twice", signature.name, name);
}

}  // namespace

ArrayRequest read_any_request(const ArraySignature& signature, PyObject* const* arguments,
                              std::size_t positional, PyObject* names) {
  ArrayRequest read;
  read_positional(read, signature, arguments, positional);
  read.has_keywords = names != nullptr;
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    auto& argument = read.*member_of(signature, PyTuple_GET_ITEM(names, i));
    if (argument.is_valid()) {
      raise_duplicate(signature, names, i);
    }
    argument = arguments[positional + static_cast<std::size_t>(i)];
  }
  require_all(read, signature);
  return read;
}

}  // namespace isthmus::python
