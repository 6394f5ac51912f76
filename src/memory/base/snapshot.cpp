// SPDX-License-Identifier: Apache-2.0
#include "memory/base/snapshot.hpp"

#include "core/owned_by_thread.hpp"

namespace isthmus {
namespace {

struct Remembered {
  Error failure;
  Shortage shortage;
};
thread_local constinit OwnedByThread<Remembered> last;

}  // namespace

void remember_shortage(const Error& failure, const Shortage& shortage) noexcept {
  // This error is shared by all failures without memory, so it identifies none of them.
  auto* const remembered = failure.is(Error::no_memory()) ? nullptr : last.get();
  if (remembered != nullptr) {
    *remembered = {failure, shortage};
  }
}

const Shortage* shortage_of(const Error& failure) noexcept {
  const auto* remembered = last.find();
  return remembered != nullptr && failure.is(remembered->failure) ? &remembered->shortage : nullptr;
}

}  // namespace isthmus
