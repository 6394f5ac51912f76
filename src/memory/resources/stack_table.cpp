// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/stack_table.hpp"

#include "core/lock_guard.hpp"
#include "os/stack.hpp"

namespace isthmus {

std::string CallStack::describe() const {
  std::string all = text;
  for (auto* each : frames) {
    all += all.empty() || all.back() == '\n' ? "" : "\n";
    all += os::describe_frame(each);
  }
  return all;
}

const CallStack& StackTable::intern(std::span<void* const> frames, std::string_view text) {
  std::string key{reinterpret_cast<const char*>(frames.data()), frames.size_bytes()};
  key += text;
  const LockGuard hold{lock_};
  const auto found = stacks_.find(key);
  if (found != stacks_.end()) {
    return found->second;
  }
  CallStack stack{{frames.begin(), frames.end()}, std::string{text}};
  return stacks_.emplace(std::move(key), std::move(stack)).first->second;
}

}  // namespace isthmus
