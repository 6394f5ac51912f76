// SPDX-License-Identifier: Apache-2.0
#include "backend/driver_library.hpp"

#include <algorithm>
#include <array>

#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "os/library.hpp"

namespace isthmus {
namespace {

struct KnownLibrary {
  std::string_view backend;
  const char* variable;
  std::string paths;
};

// Never destroyed, since it must outlive every thread.
struct KnownLibraries {
  Mutex lock;
  std::array<KnownLibrary, 3> all{{{"cuda", "ISTHMUS_CUDA_LIBRARY", {}},
                                   {"opencl", "ISTHMUS_OPENCL_LIBRARY", {}},
                                   {"sycl", "ISTHMUS_SYCL_LIBRARY", {}}}};

  [[nodiscard]] KnownLibrary* find(std::string_view backend) noexcept ISTHMUS_REQUIRES(lock) {
    const auto found = std::ranges::find(all, backend, &KnownLibrary::backend);
    return found != all.end() ? &*found : nullptr;
  }
};

KnownLibraries& known_libraries() {
  static auto* const instance = new KnownLibraries;
  return *instance;
}

}  // namespace

Result<void> set_driver_library(std::string_view backend, std::string paths) {
  auto& libraries = known_libraries();
  const LockGuard hold{libraries.lock};
  auto* const found = libraries.find(backend);
  if (found == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the driver library of backend '{}' cannot be set: pass cuda, opencl or sycl",
                backend);
  }
  found->paths = std::move(paths);
  return {};
}

std::string driver_library(std::string_view backend) {
  auto& libraries = known_libraries();
  const LockGuard hold{libraries.lock};
  const auto* const found = libraries.find(backend);
  ISTHMUS_EXPECTS(found != nullptr);
  const char* const environment_paths = os::trusted_variable(found->variable);
  return environment_paths != nullptr && *environment_paths != '\0' ? std::string{environment_paths}
                                                                    : found->paths;
}

}  // namespace isthmus
