#pragma once
// A device of an OpenCL driver: what it tells of itself, and how our operations are put to it.

#include <array>

#include "backend/device.hpp"
#include "backend/opencl/api.hpp"

namespace isthmus::opencl {

// How this driver is to be spoken to.
struct device_traits {
  bool usm = false;
  bool svm = false;
  // Its memory is the host's: what it calls device memory our own code can read and write, in queue
  // order by native kernels where it has them.
  bool is_host = false;
  bool native_kernels = false;
  bool takes_host_memory = false;  // kernels may be given any pointer
  // On an in-order queue a failed user event ends what waits for it and nothing else. True of
  // Intel's CPU runtime; PoCL 3.1 ends all that is queued behind, and both crash on out-of-order
  // queues.
  bool ends_dependents = false;
  // Has to be empty when it is taken down (farewell.hpp).
  bool wants_farewell = false;
};

struct device_description {
  device_properties properties;
  device_traits traits;
};

// Next number of each type, over all OpenCL platforms: for filters.
using type_numbers = std::array<unsigned, ISTHMUS_DEVICE_ACCELERATOR + 1>;

struct platform_facts {
  bool is_intel = false;
  bool has_svm = false;  // OpenCL 2.0 or later, and its functions were found
};

// NOT_FOUND for a device that is not available or of a type of no use here.
[[nodiscard]] result<device_description> describe(const api& calls, const platform_facts& home,
                                                  device_handle handle, type_numbers& numbers);

class device final : public isthmus::device {
 public:
  device(isthmus::platform& home, device_description description, device_handle handle)
      : isthmus::device{home, std::move(description.properties)},
        traits_{description.traits},
        handle_{handle} {}

  [[nodiscard]] const device_traits& traits() const noexcept { return traits_; }
  [[nodiscard]] device_handle handle() const noexcept { return handle_; }
  [[nodiscard]] void* native() const noexcept override { return handle_; }
  [[nodiscard]] bool reaches_host_memory() const noexcept override {
    return traits_.takes_host_memory;
  }
  // Of a device that is the host: the machine's. OpenCL itself does not tell.
  [[nodiscard]] result<memory_info> memory() const override;

 private:
  device_traits traits_;
  device_handle handle_;
};

}  // namespace isthmus::opencl
