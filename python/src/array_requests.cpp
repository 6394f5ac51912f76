#include "array_requests.hpp"

#include <algorithm>

#include "errors.hpp"

namespace isthmus::python {
namespace {

struct keyword {
  PyObject* name;  // interned
  request_member where;
};
using keyword_list = std::array<keyword, 13>;

// Those first that are given most. Made with the first call, with the interpreter's lock.
const keyword_list& keywords() {
  using request = array_request;
  const auto entry = [](const char* name, request_member where) {
    return keyword{PyUnicode_InternFromString(name), where};
  };
  static const auto* const all = new keyword_list{
      entry("dtype", &request::dtype),           entry("kind", &request::kind),
      entry("queue", &request::queue),           entry("device", &request::device),
      entry("resource", &request::resource),     entry("usm_type", &request::usm_type),
      entry("sycl_queue", &request::sycl_queue), entry("order", &request::order),
      entry("alignment", &request::alignment),   entry("shape", &request::shape),
      entry("fill_value", &request::fill_value), entry("prototype", &request::prototype),
      entry("fallback", &request::fallback)};
  return *all;
}

bool takes(const array_signature& of, request_member where) noexcept {
  return (where != &array_request::fill_value || of.takes_fill_value) &&
         (where != &array_request::prototype || of.is_like);
}

// Names written in a program are interned too.
request_member find_keyword(const array_signature& of, PyObject* name) {
  for (const bool by_text : {false, true}) {
    for (const auto& each : keywords()) {
      if (by_text ? PyUnicode_Compare(each.name, name) == 0 : each.name == name) {
        if (!takes(of, each.where)) {
          break;
        }
        return each.where;
      }
    }
  }
  raise_python(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", of.name, name);
}

const char* name_of(request_member where) {
  const auto& all = keywords();
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

// None is as good as not given, but for its alias.
void join(array_request& read, const array_signature& of, request_member where,
          request_member alias) {
  if (!(read.*alias).is_valid()) {
    return;
  }
  if ((read.*where).is_valid()) {
    raise_python(PyExc_TypeError, "%s() got %s and %s, which mean the same: give one of them",
                 of.name, name_of(where), name_of(alias));
  }
  read.*where = read.*alias;
}

}  // namespace

array_request read_request(const array_signature& of, PyObject* const* arguments,
                           std::size_t positional, PyObject* names) {
  array_request read;
  read_positional(read, of, arguments, positional);
  const Py_ssize_t named = names != nullptr ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    auto& into = read.*find_keyword(of, PyTuple_GET_ITEM(names, i));
    if (into.is_valid()) {
      raise_python(PyExc_TypeError, "%s() got '%U' twice", of.name, PyTuple_GET_ITEM(names, i));
    }
    into = arguments[positional + static_cast<std::size_t>(i)];
  }
  require_all(read, of);
  join(read, of, &array_request::kind, &array_request::usm_type);
  join(read, of, &array_request::queue, &array_request::sycl_queue);
  return read;
}

}  // namespace isthmus::python
