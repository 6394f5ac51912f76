// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot.hpp"

#include "core/owned_by_thread.hpp"

namespace isthmus {
namespace {

struct Remembered {
  Error failure;
  Shortage of;
};
thread_local constinit OwnedByThread<Remembered> last;

}  // namespace

void remember_shortage(const Error& failure, const Shortage& shortage) noexcept {
  // This error is shared by all failures without memory, so it identifies none of them.
  auto* const mine = failure.is(Error::no_memory()) ? nullptr : last.get();
  if (mine != nullptr) {
    *mine = {failure, shortage};
  }
}

const Shortage* shortage_of(const Error& failure) noexcept {
  const auto* mine = last.find();
  return mine != nullptr && failure.is(mine->failure) ? &mine->of : nullptr;
}

}  // namespace isthmus
