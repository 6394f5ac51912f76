// SPDX-License-Identifier: Apache-2.0
#include "memory/base/tags.hpp"

#include <set>
#include <string>
#include <utility>

#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

thread_local constinit const char* detail::thread_tag ISTHMUS_TLS_MODEL = nullptr;

namespace {

struct KnownTags {
  Mutex lock;
  std::set<std::string, std::less<>> names ISTHMUS_GUARDED_BY(lock);
};

KnownTags& process_tags() {
  static NeverDestroyed<KnownTags> only;
  return *only;
}

}  // namespace

Result<const char*> tag_of(std::string_view name) {
  if (name.empty()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the name of a tag cannot be empty");
  }
  auto& tags = process_tags();
  const LockGuard hold{tags.lock};
  auto found = tags.names.find(name);
  if (found == tags.names.end()) {
    found = tags.names.emplace(name).first;
  }
  return found->c_str();
}

const char* swap_tag(const char* next) noexcept { return std::exchange(detail::thread_tag, next); }

}  // namespace isthmus
