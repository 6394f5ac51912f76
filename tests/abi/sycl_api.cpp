// SPDX-License-Identifier: Apache-2.0
// Checks the declarations of src/backend/sycl/api.hpp against dpctl's own headers, where its wheel
// is in .venv. Only compiled.

#if __has_include(<dpctl_sycl_queue_interface.h>)

#include <dpctl_sycl_context_interface.h>
#include <dpctl_sycl_device_interface.h>
#include <dpctl_sycl_enum_types.h>
#include <dpctl_sycl_event_interface.h>
#include <dpctl_sycl_platform_interface.h>
#include <dpctl_sycl_platform_manager.h>
#include <dpctl_sycl_queue_interface.h>
#include <dpctl_sycl_usm_interface.h>
#include <dpctl_utils.h>
#include <dpctl_vector.h>

#include <type_traits>

#include "../../src/backend/sycl/api.hpp"

namespace isthmus::sycl {

// We declare enumerations as ints and vectors as plain pointers. An argument passed in a register
// of the same class and width makes the same call.
template <class Ours, class Theirs>
constexpr bool is_as_good_as =
    std::is_same_v<Ours, Theirs> || (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) ||
    (std::is_same_v<Ours, int> && std::is_enum_v<Theirs>);

template <class Ours, class Theirs>
struct is_same_call : std::false_type {};
template <class Ours, class... OurArguments, class Theirs, class... TheirArguments>
  requires(sizeof...(OurArguments) == sizeof...(TheirArguments))
struct is_same_call<Ours (*)(OurArguments...), Theirs (*)(TheirArguments...)>
    : std::bool_constant<is_as_good_as<Ours, Theirs> &&
                         (is_as_good_as<OurArguments, TheirArguments> && ...)> {};

#define ISTHMUS_SAME(member, name, ...) \
  static_assert(is_same_call<Api::Entry<__VA_ARGS__>, decltype(&::name)>::value, #name);
ISTHMUS_SYCL_FUNCTIONS(ISTHMUS_SAME)

static_assert(sizeof(DPCTLSyclUSMType) == sizeof(int));
static_assert(dp::k_type_accelerator == DPCTL_ACCELERATOR);
static_assert(dp::k_type_cpu == DPCTL_CPU);
static_assert(dp::k_type_gpu == DPCTL_GPU);
static_assert(dp::k_type_all == DPCTL_ALL);
static_assert(dp::k_aspect_usm_device == usm_device_allocations);
static_assert(dp::k_aspect_usm_host == usm_host_allocations);
static_assert(dp::k_aspect_usm_shared == usm_shared_allocations);
static_assert(dp::k_aspect_usm_system == usm_system_allocations);
static_assert(dp::k_usm_unknown == DPCTL_USM_UNKNOWN);
static_assert(dp::k_usm_device == DPCTL_USM_DEVICE);
static_assert(dp::k_usm_shared == DPCTL_USM_SHARED);
static_assert(dp::k_usm_host == DPCTL_USM_HOST);
static_assert(dp::k_backend_opencl == DPCTL_OPENCL);
static_assert(dp::k_in_order == DPCTL_IN_ORDER);
static_assert(dp::k_status_unknown == DPCTL_UNKNOWN_STATUS);
static_assert(dp::k_status_complete == DPCTL_COMPLETE);

}  // namespace isthmus::sycl

#endif
