// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/submitter.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <new>

#include "core/expects.hpp"

namespace isthmus::opencl {
namespace {

// Sorts by address and removes duplicates.
template <class T>
void drop_duplicates(std::vector<T>& all) {
  const auto less = [](const auto& one, const auto& other) {
    return std::less{}(std::to_address(one), std::to_address(other));
  };
  const auto same = [](const auto& one, const auto& other) {
    return std::to_address(one) == std::to_address(other);
  };
  std::sort(all.begin(), all.end(), less);
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
}

}  // namespace

GateList gates_before(WaitList after) {
  GateList gates;
  for (const auto& dependency : after) {
    ISTHMUS_EXPECTS(dynamic_cast<DriverEvent*>(dependency.get()) != nullptr);
    static_cast<DriverEvent&>(*dependency).add_gates(gates);
  }
  drop_duplicates(gates);
  return gates;
}

std::vector<cl_event> handles_of(WaitList after, const GateList& gates) {
  std::vector<cl_event> handles;
  for (const auto& dependency : after) {
    if (dynamic_cast<const Gate*>(std::to_address(dependency)) == nullptr) {
      handles.push_back(static_cast<DriverEvent&>(*dependency).handle());
    }
  }
  for (const auto& gate : gates) {
    handles.push_back(gate->handle());
  }
  drop_duplicates(handles);
  return handles;
}

bool add_closing_event(const Api& calls, cl_command_queue queue, OperationEvents& events) noexcept {
  if (events.first == nullptr && events.last == nullptr) {
    return false;
  }
  if (calls.enqueue_barrier(queue, 0, nullptr, &events.closing) == CL_SUCCESS) {
    return true;
  }
  calls.finish(queue);
  return false;
}

Error call_failed_without_throwing(const char* call, cl_int outcome) noexcept try {
  return call_failed(call, outcome);
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

}  // namespace isthmus::opencl
