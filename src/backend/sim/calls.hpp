// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts the calls that the simulated driver receives, by kind, and determines which of them fail.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace isthmus::sim {

// `any` counts all calls. `operation` and `violation` do not count calls. `operation` counts the
// copies and fills that the device has started, possibly long after their calls returned.
// `violation` counts errors of the program, such as freeing memory twice or while an operation uses
// it.
enum class Call : std::uint8_t {
  allocate,
  free,
  context,
  queue,
  copy,
  copy_2d,
  copy_ranges,
  fill,
  fence,
  event,
  prefetch,
  advise,
  map,
  operation,
  any,
  violation
};
constexpr std::size_t k_calls = static_cast<std::size_t>(Call::violation) + 1;

[[nodiscard]] const char* call_name(Call kind) noexcept;
[[nodiscard]] std::optional<Call> find_call(std::string_view name) noexcept;
// "allocate, free, ..., any", for messages.
[[nodiscard]] std::string call_names();

// Causes the `nth` call of a kind to fail, counted from the time at which the fault is set.
struct Fault {
  Call kind = Call::any;
  std::uint64_t nth = 1;
};

// Guarded by the engine's lock.
class CallLog {
 public:
  // Counts a call. Returns the error with which the call must fail, or none.
  [[nodiscard]] Error record(Call kind, const std::string& filter);
  // Counts an operation that is about to move bytes. Returns the error with which the operation
  // must fail instead, or none.
  [[nodiscard]] Error record_operation(const std::string& filter);
  void record_violation() noexcept { ++count(Call::violation); }
  [[nodiscard]] std::uint64_t call_count(Call kind) const noexcept { return counts_[index(kind)]; }

  void add(const Fault& fault);
  void clear_faults() noexcept { faults_.clear(); }
  // The device is lost after this number of further calls.
  void lose_after(std::uint64_t calls) noexcept { lost_at_ = call_count(Call::any) + calls; }
  [[nodiscard]] bool lost() const noexcept {
    return lost_at_ && call_count(Call::any) >= *lost_at_;
  }

 private:
  static std::size_t index(Call kind) noexcept { return static_cast<std::size_t>(kind); }
  std::uint64_t& count(Call kind) noexcept { return counts_[index(kind)]; }
  [[nodiscard]] bool take_fault(Call kind) noexcept;

  std::array<std::uint64_t, k_calls> counts_{};
  std::vector<Fault> faults_;  // nth: counted from the first call of the kind
  std::optional<std::uint64_t> lost_at_;
};

}  // namespace isthmus::sim
