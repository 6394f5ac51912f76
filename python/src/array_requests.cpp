// SPDX-License-Identifier: Apache-2.0
#include "array_requests.hpp"

#include <algorithm>

#include "keywords.hpp"

namespace isthmus::python {
namespace {

// The most frequent ones first. Created by the first call, with the interpreter's lock.
std::span<const keyword<array_request>> keywords() {
  using request = array_request;
  static const std::array<keyword<request>, 13> all{{{"dtype", &request::dtype},
                                                     {"kind", &request::kind},
                                                     {"queue", &request::queue},
                                                     {"device", &request::device},
                                                     {"resource", &request::resource},
                                                     {"usm_type", &request::kind},
                                                     {"sycl_queue", &request::queue},
                                                     {"order", &request::order},
                                                     {"alignment", &request::alignment},
                                                     {"shape", &request::shape},
                                                     {"fill_value", &request::fill_value},
                                                     {"prototype", &request::prototype},
                                                     {"fallback", &request::fallback}}};
  return all;
}

bool takes(const array_signature& of, request_member where) noexcept {
  return (where != &array_request::fill_value || of.takes_fill_value) &&
         (where != &array_request::prototype || of.is_like);
}

request_member member_of(const array_signature& of, PyObject* name) {
  const auto where = find_keyword(keywords(), name);
  if (where == nullptr || !takes(of, where)) {
    raise_python(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", of.name, name);
  }
  return where;
}

const char* name_of(request_member where) {
  const auto all = keywords();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [where](const auto& each) { return each.where == where; });
  return PyUnicode_AsUTF8(found->name);
}

void read_positional(array_request& into, const array_signature& of, PyObject* const* arguments,
                     std::size_t count) {
  if (count > of.positional.size()) {
    raise_python(PyExc_TypeError, "%s() takes at most %zu arguments by position, not %zu", of.name,
                 of.positional.size(), count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    into.*of.positional[i] = arguments[i];
  }
}

void require_all(const array_request& read, const array_signature& of) {
  for (const auto where : of.positional.first(of.required)) {
    if (!(read.*where).is_valid()) {
      raise_python(PyExc_TypeError, "%s() is missing its argument '%s'", of.name, name_of(where));
    }
  }
}

// For the argument with index `again` in `names`, whose member was set before.
[[noreturn]] void raise_given_twice(const array_signature& of, PyObject* names, Py_ssize_t again) {
  auto* const name = PyTuple_GET_ITEM(names, again);
  for (Py_ssize_t i = 0; i < again; ++i) {
    auto* const other = PyTuple_GET_ITEM(names, i);
    if (member_of(of, other) == member_of(of, name) && PyUnicode_Compare(other, name) != 0) {
      raise_python(PyExc_TypeError,
                   "%s() got %U and %U, which mean the same: pass only one of them", of.name, other,
                   name);
    }
  }
  raise_python(PyExc_TypeError, "%s() got '%U' twice", of.name, name);
}

}  // namespace

array_request read_any_request(const array_signature& of, PyObject* const* arguments,
                               std::size_t positional, PyObject* names) {
  array_request read;
  read_positional(read, of, arguments, positional);
  read.has_keywords = names != nullptr;
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    auto& into = read.*member_of(of, PyTuple_GET_ITEM(names, i));
    if (into.is_valid()) {
      raise_given_twice(of, names, i);
    }
    into = arguments[positional + static_cast<std::size_t>(i)];
  }
  require_all(read, of);
  return read;
}

}  // namespace isthmus::python
