// SPDX-License-Identifier: Apache-2.0
// Advice on shared memory by name. The names are the same for all drivers; each is translated to
// the driver's number.
//
//   isthmus::advise(a.bytes(), isthmus::advice::read_mostly);
//
// Advice is a hint. Throws unsupported, without effect, if the driver does not support the advice
// or the device lacks capability::advise. Cost: a driver call. Thread-safe.
#pragma once

#include <isthmus/fill.hpp>

#include <optional>

namespace isthmus {
inline namespace v1 {

// Advice on memory. Each `clear_` value withdraws the advice that is listed before it.
enum class advice {
  read_mostly,  // read far more often than written: each side may keep a copy
  clear_read_mostly,
  preferred_location,  // should reside on the device, whichever side uses it
  clear_preferred_location,
  accessed_by,  // the device accesses it, and should do so without a fault
  clear_accessed_by,
  non_atomic_mostly,  // rarely used by atomic operations
  clear_non_atomic_mostly,
  bias_cached,  // should use the device's caches
  clear_bias_cached,
  bias_uncached,  // should bypass the device's caches
  clear_bias_uncached,
};

// "read_mostly" for advice::read_mostly, and so on.
[[nodiscard]] constexpr std::string_view name(advice value) noexcept {
  switch (value) {
    case advice::read_mostly: return "read_mostly";
    case advice::clear_read_mostly: return "clear_read_mostly";
    case advice::preferred_location: return "preferred_location";
    case advice::clear_preferred_location: return "clear_preferred_location";
    case advice::accessed_by: return "accessed_by";
    case advice::clear_accessed_by: return "clear_accessed_by";
    case advice::non_atomic_mostly: return "non_atomic_mostly";
    case advice::clear_non_atomic_mostly: return "clear_non_atomic_mostly";
    case advice::bias_cached: return "bias_cached";
    case advice::clear_bias_cached: return "clear_bias_cached";
    case advice::bias_uncached: return "bias_uncached";
    case advice::clear_bias_uncached: return "clear_bias_uncached";
  }
  return "unknown";
}

namespace detail {

// The number in CUmem_advise, which has the same order and starts at 1.
[[nodiscard]] constexpr std::optional<std::uint32_t> cuda_advice(isthmus::advice advice) noexcept {
  if (advice > isthmus::advice::clear_accessed_by) return std::nullopt;
  return static_cast<std::uint32_t>(advice) + 1U;
}
// The number in ze_memory_advice_t, which SYCL passes to Level Zero unchanged.
[[nodiscard]] constexpr std::optional<std::uint32_t> level_zero_advice(
    isthmus::advice advice) noexcept {
  switch (advice) {
    case isthmus::advice::read_mostly: return 0;
    case isthmus::advice::clear_read_mostly: return 1;
    case isthmus::advice::preferred_location: return 2;
    case isthmus::advice::clear_preferred_location: return 3;
    case isthmus::advice::non_atomic_mostly: return 4;
    case isthmus::advice::clear_non_atomic_mostly: return 5;
    case isthmus::advice::bias_cached: return 6;
    case isthmus::advice::bias_uncached: return 7;
    default: return std::nullopt;
  }
}
// The driver's number, or nothing if the driver does not support the advice. OpenCL's extension
// accepts numbers but defines none. A simulated device accepts any number.
[[nodiscard]] inline std::optional<std::uint32_t> advice_number(const isthmus::device& device,
                                                                isthmus::advice advice) {
  const std::string_view backend = device.info().backend;
  if (backend == "cuda") return cuda_advice(advice);
  if (backend == "sim") return static_cast<std::uint32_t>(advice);
  const platform owner = device.platform();
  const std::string_view driver = owner.info().name;
  const bool is_level_zero = driver.find("Level-Zero") != driver.npos ||
                             driver.find("Level Zero") != driver.npos ||
                             driver.find("level-zero") != driver.npos;
  return backend == "sycl" && is_level_zero ? level_zero_advice(advice) : std::nullopt;
}

// As advice_number(). Throws unsupported if there is no number.
[[nodiscard]] inline std::uint32_t require_advice(const isthmus::device& device,
                                                  isthmus::advice advice) {
  const std::string filter(device.info().filter);
  if (!device.can(capability::advise)) {
    raise(status::unsupported,
          filter + " does not support advice on memory: it lacks the capability \"advise\"");
  }
  const auto number = advice_number(device, advice);
  if (!number) {
    raise(status::unsupported, "the driver of " + filter + " does not support the advice \"" +
                                   std::string(name(advice)) + "\"");
  }
  return *number;
}

}  // namespace detail

// Passes advice for the device of the buffer's queue.
inline void advise(const buffer& memory, isthmus::advice advice,
                   isthmus::operation operation = {}) {
  advise(memory, detail::require_advice(memory.queue().device(), advice), std::move(operation));
}
inline event advise_async(const buffer& memory, isthmus::advice advice,
                          isthmus::operation operation = {}) {
  return advise_async(memory, detail::require_advice(memory.queue().device(), advice),
                      std::move(operation));
}

}  // namespace v1
}  // namespace isthmus
