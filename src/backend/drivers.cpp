// SPDX-License-Identifier: Apache-2.0
#include "backend/drivers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "backend/cuda/open.hpp"
#include "backend/host/open.hpp"
#include "backend/opencl/open.hpp"
#include "backend/sim/open.hpp"
#include "backend/sycl/open.hpp"
#include "core/expects.hpp"
#include "core/text.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

// One driver of the table: opened at most once, never closed.
class Driver {
 public:
  Driver(const char* name, OpenDriver open) : name_{name}, open_{open} {}

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Ref<Platform>>& platforms() {
    std::call_once(opened_, [this] {
      if (auto found = open_()) {
        platforms_ = *std::move(found);
        for (const auto& each : platforms_) {
          each->make_immortal();
        }
      } else {
        reason_ = found.failure().message();
      }
      os::watch_process();
      is_open_.store(true, std::memory_order_release);
    });
    return platforms_;
  }
  // The reason why no platform was found; empty if there is one.
  [[nodiscard]] const std::string& reason() const noexcept {
    ISTHMUS_EXPECTS(is_open());  // `platforms` was called
    return reason_;
  }
  [[nodiscard]] bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }

 private:
  const char* name_;
  OpenDriver open_;
  std::once_flag opened_;
  std::atomic<bool> is_open_{false};
  std::vector<Ref<Platform>> platforms_;
  std::string reason_;
};

using DriverTable = std::array<Driver, 5>;

// Never destroyed, since it must outlive every thread.
DriverTable& drivers() {
  static auto* const table = new DriverTable{Driver{"host", host::open}, Driver{"cuda", cuda::open},
                                             Driver{"opencl", opencl::open},
                                             Driver{"sim", sim::open}, Driver{"sycl", sycl::open}};
  return *table;
}

// Null for an unknown backend.
Driver* driver_named(std::string_view backend) {
  const auto found =
      std::ranges::find_if(drivers(), [&](const Driver& each) { return each.name() == backend; });
  return found != drivers().end() ? &*found : nullptr;
}

struct DeviceFilter {
  std::optional<std::string> backend;
  std::optional<isthmus_device_type_t> type;
  std::optional<std::size_t> number;
};

std::string lower(std::string_view text) {
  std::string lowered{text};
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  });
  return lowered;
}

std::optional<isthmus_device_type_t> type_named(std::string_view word) {
  if (word == "cpu") {
    return ISTHMUS_DEVICE_CPU;
  }
  if (word == "gpu") {
    return ISTHMUS_DEVICE_GPU;
  }
  if (word == "accelerator") {
    return ISTHMUS_DEVICE_ACCELERATOR;
  }
  return std::nullopt;
}

std::optional<std::size_t> number_in(std::string_view word) {
  std::size_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc{} || end != word.data() + word.size()) {
    return std::nullopt;
  }
  return value;
}

// Words appear in the order backend, type, number; each may be absent.
bool apply_word(DeviceFilter& filter, const std::string& word) {
  if (driver_named(word) != nullptr && !filter.backend && !filter.type && !filter.number) {
    filter.backend = word;
    return true;
  }
  if (const auto type = type_named(word); type && !filter.type && !filter.number) {
    filter.type = type;
    return true;
  }
  if (const auto number = number_in(word); number && !filter.number) {
    filter.number = number;
    return true;
  }
  return false;
}

Result<DeviceFilter> parse_filter(std::string_view text) {
  DeviceFilter filter;
  std::size_t start = 0;
  while (start <= text.size()) {
    const auto colon = std::min(text.find(':', start), text.size());
    const auto word = lower(text.substr(start, colon - start));
    if (!apply_word(filter, word)) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "device filter '{}': unexpected '{}'; a filter is [host|cuda|opencl|sycl|sim][:]["
                  "cpu|gpu|accelerator][:][number], such as \"gpu\", \"opencl:cpu:0\" or \"sim:1\"",
                  text, word);
    }
    start = colon + 1;
  }
  return filter;
}

// Higher is better: devices with true USM first, then the type that is likely to be fastest.
int score(const Device& candidate) {
  const auto& properties = candidate.properties();
  if (!candidate.can(ISTHMUS_CAN_USM)) {
    return 0;
  }
  if (candidate.platform().properties().backend == "host") {
    return 1;
  }
  switch (properties.type) {
    case ISTHMUS_DEVICE_GPU: return 4;
    case ISTHMUS_DEVICE_ACCELERATOR: return 3;
    default: return 2;
  }
}

bool must_be_named(const Driver& candidate) {
  return candidate.name() == "sim" || candidate.name() == "sycl";
}

// Most SYCL devices are also devices of other backends, and listing them takes half a second.
bool is_listed(const Driver& candidate) {
  return candidate.name() != "sycl" || candidate.is_open() || sycl::is_in_process();
}

// The score of the host. Every other device with USM has a higher one.
constexpr int k_host_score = 1;

void add_devices(Driver& driver, const DeviceFilter& filter, std::vector<Device*>& found) {
  for (const auto& platform : driver.platforms()) {
    for (const auto& member : platform->devices()) {
      if (!filter.type || *filter.type == member->properties().type) {
        found.push_back(member.get());
      }
    }
  }
}

void sort_best_first(std::vector<Device*>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Device* a, const Device* b) { return score(*a) > score(*b); });
}

// Simulated devices match only filters that name their backend. SYCL devices also match other
// filters if no device with USM except the host was found.
std::vector<Device*> matching_devices(const DeviceFilter& filter) {
  std::vector<Device*> found;
  Driver* sycl_driver = nullptr;
  for (auto& candidate : drivers()) {
    if (filter.backend ? *filter.backend == candidate.name() : !must_be_named(candidate)) {
      add_devices(candidate, filter, found);
    } else if (candidate.name() == "sycl") {
      sycl_driver = &candidate;
    }
  }
  sort_best_first(found);
  if (!filter.backend && (found.empty() || score(*found.front()) <= k_host_score)) {
    add_devices(*sycl_driver, filter, found);
    sort_best_first(found);
  }
  return found;
}

Error no_matching_device(std::string_view filter) {
  std::string available_devices;
  for (const auto& platform : all_platforms()) {
    for (const auto& member : platform->devices()) {
      available_devices += (available_devices.empty() ? "" : ", ") + member->properties().filter;
    }
  }
  std::string absent;
  for (const auto& missing : absent_drivers()) {
    absent += formatted("; no {}: {}", missing.backend, missing.reason);
  }
  return fail(ISTHMUS_ERROR_NOT_FOUND, "no device matches '{}'; available: {}{}", filter,
              available_devices, absent);
}

Result<Device*> find_matching(std::string_view text) {
  auto filter = text.empty() ? Result<DeviceFilter>{DeviceFilter{}} : parse_filter(text);
  if (!filter) {
    return filter.take_error();
  }
  const auto found = matching_devices(*filter);
  const auto exact = std::find_if(found.begin(), found.end(), [&](const Device* candidate) {
    return candidate->properties().filter == lower(text);
  });
  if (exact != found.end()) {
    return *exact;
  }
  // In a complete filter the number is the device's own. In other filters it is an index into the
  // matching devices, best first.
  const bool is_complete = filter->backend && filter->type && filter->number;
  const auto number = filter->number.value_or(0);
  if (is_complete || number >= found.size()) {
    return no_matching_device(text);
  }
  return found[number];
}

Result<Device*> default_device() {
  static std::atomic<Device*> chosen{nullptr};
  if (auto* cached = chosen.load(std::memory_order_acquire)) {
    return cached;
  }
  const char* requested = std::getenv("ISTHMUS_DEVICE");
  auto found = find_matching(requested == nullptr ? "" : requested);
  if (found) {
    chosen.store(*found, std::memory_order_release);
  } else if (requested != nullptr) {
    return fail(found.failure().code(), "ISTHMUS_DEVICE: {}", found.failure().message());
  }
  return found;
}

Error forked_child_error() {
  return fail(ISTHMUS_ERROR_FORKED,
              "a forked child cannot use its parent's drivers: start the child with spawn");
}

}  // namespace

std::vector<Ref<Platform>> all_platforms() {
  std::vector<Ref<Platform>> all;
  for (auto& each : drivers()) {
    if (is_listed(each)) {
      all.insert(all.end(), each.platforms().begin(), each.platforms().end());
    }
  }
  return all;
}

std::vector<AbsentDriver> absent_drivers() {
  std::vector<AbsentDriver> absent;
  for (auto& each : drivers()) {
    if (!is_listed(each)) {
      absent.push_back({each.name(), "it is opened only when requested by name"});
    } else if (each.platforms().empty()) {
      absent.push_back({each.name(), each.reason()});
    }
  }
  return absent;
}

const char* backend_of(Event& candidate) noexcept {
  return cuda::owns_event(candidate)     ? "cuda"
         : opencl::owns_event(candidate) ? "opencl"
         : sycl::owns_event(candidate)   ? "sycl"
         : sim::owns_event(candidate)    ? "sim"
                                         : "host";
}

Result<Device*> find_device(std::string_view filter) {
  if (os::is_forked_child()) {
    return forked_child_error();
  }
  return filter.empty() ? default_device() : find_matching(filter);
}

Result<Device*> find_native_device(std::string_view backend, void* native) {
  if (os::is_forked_child()) {
    return forked_child_error();
  }
  auto* const driver = driver_named(backend);
  if (driver == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "there is no backend '{}': use \"cuda\", \"opencl\", \"sycl\", \"sim\" or \"host\"",
                backend);
  }
  for (const auto& platform : driver->platforms()) {
    if (auto* const found = platform->device_of(native)) {
      return found;
    }
  }
  return fail(
      ISTHMUS_ERROR_NOT_FOUND,
      "no usable device of {} has the handle {}: name the device by a filter string instead",
      backend, native);
}

}  // namespace isthmus
