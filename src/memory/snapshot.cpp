// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot.hpp"

#include "core/owned_by_thread.hpp"

namespace isthmus {
namespace {

struct remembered {
  error failure;
  shortage of;
};
thread_local constinit owned_by_thread<remembered> last;

}  // namespace

void remember_shortage(const error& failure, const shortage& of) noexcept {
  // This error is shared by all failures without memory, so it identifies none of them.
  auto* const mine = failure.is(error::no_memory()) ? nullptr : last.get();
  if (mine != nullptr) {
    *mine = {failure, of};
  }
}

const shortage* shortage_of(const error& failure) noexcept {
  const auto* mine = last.find();
  return mine != nullptr && failure.is(mine->failure) ? &mine->of : nullptr;
}

}  // namespace isthmus
