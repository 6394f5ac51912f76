// SPDX-License-Identifier: Apache-2.0
#include "backend/opencl/platform.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "backend/opencl/context.hpp"
#include "backend/opencl/errors.hpp"
#include "backend/opencl/library.hpp"
#include "backend/opencl/queue.hpp"
#include "core/text.hpp"

namespace isthmus::opencl {
namespace {

void load_usm(Api& calls, cl_platform_id handle) noexcept {
#define ISTHMUS_OPENCL_LOAD(member, name) \
  calls.member = reinterpret_cast<::name##_fn>(calls.get_extension(handle, #name));
    ISTHMUS_OPENCL_USM(ISTHMUS_OPENCL_LOAD)
#undef ISTHMUS_OPENCL_LOAD
}

std::vector<cl_device_id> list_devices(const Api& calls, cl_platform_id handle) {
  cl_uint count = 0;
  if (calls.get_devices(handle, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) {
    return {};
  }
  std::vector<cl_device_id> handles(count);
  calls.get_devices(handle, CL_DEVICE_TYPE_ALL, count, handles.data(), nullptr);
  return handles;
}

// The version has the form "OpenCL 3.0 vendor's text".
bool is_at_least_2(std::string_view version) noexcept {
  constexpr std::string_view prefix = "OpenCL ";
  return version.starts_with(prefix) && version.size() > prefix.size() &&
         version[prefix.size()] >= '2';
}

}  // namespace

std::string platform_text(const Api& calls, cl_platform_id handle, cl_platform_info property) {
  std::size_t nbytes = 0;
  if (calls.get_platform_info(handle, property, 0, nullptr, &nbytes) != CL_SUCCESS || nbytes == 0) {
    return {};
  }
  std::string result(nbytes, '\0');
  calls.get_platform_info(handle, property, nbytes, result.data(), nullptr);
  result.resize(std::min(result.find('\0'), result.size()));
  return result;
}

Platform::Platform(PlatformProperties properties, const Api& calls, cl_platform_id handle,
                   TypeNumbers& numbers, std::vector<std::string>& reasons)
    : isthmus::Platform{std::move(properties)}, driver_{.calls = calls}, handle_{handle} {
  load_usm(driver_.calls, handle);
  const auto& platform_properties = this->properties();
  const PlatformFacts facts{
      .is_intel = platform_properties.vendor.starts_with("Intel"),
      .has_svm = is_at_least_2(platform_properties.version) &&
                 driver_.calls.allocate_svm != nullptr && driver_.calls.free_svm != nullptr &&
                 driver_.calls.copy_svm != nullptr && driver_.calls.fill_svm != nullptr};
  for (auto* device_handle : list_devices(driver_.calls, handle)) {
    if (auto description = describe(driver_.calls, facts, device_handle, numbers)) {
      if (description->traits.needs_drain_at_exit) {
        driver_.needs_drain_at_exit = true;
      }
      add(std::make_unique<opencl::Device>(*this, *std::move(description), device_handle));
    } else {
      reasons.push_back(
          formatted("{}: {}", platform_properties.name, description.failure().message()));
    }
  }
}

Result<Ref<isthmus::Context>> Platform::make_context(std::vector<isthmus::Device*> members,
                                                     isthmus::Platform* owning_platform) {
  std::vector<cl_device_id> handles;
  std::transform(members.begin(), members.end(), std::back_inserter(handles),
                 [](auto* member) { return static_cast<cl_device_id>(member->native()); });
  const std::array<cl_context_properties, 3> context_properties = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(handle_), 0};
  cl_int outcome = CL_SUCCESS;
  auto* context =
      calls().create_context(context_properties.data(), static_cast<cl_uint>(handles.size()),
                             handles.data(), nullptr, nullptr, &outcome);
  if (context == nullptr) {
    return call_failed("clCreateContext", outcome);
  }
  return Ref<isthmus::Context>{make_ref<opencl::Context>(
      NativeContext{driver_, context}, std::move(members), owning_platform, Owner{})};
}

Result<std::vector<isthmus::Device*>> Platform::members_of(cl_context native) const {
  std::size_t nbytes = 0;
  auto outcome = calls().get_context_info(native, CL_CONTEXT_DEVICES, 0, nullptr, &nbytes);
  std::vector<cl_device_id> handles(nbytes / sizeof(cl_device_id));
  if (outcome == CL_SUCCESS) {
    outcome = calls().get_context_info(native, CL_CONTEXT_DEVICES, nbytes, handles.data(), nullptr);
  }
  if (outcome != CL_SUCCESS) {
    return call_failed("clGetContextInfo", outcome);
  }
  std::vector<isthmus::Device*> members;
  for (auto* handle : handles) {
    if (auto* device = device_of(handle)) {  // null for a sub-device
      members.push_back(device);
    }
  }
  return members;
}

Result<Ref<isthmus::Context>> Platform::adopt_context(isthmus::Device& member, void* native,
                                                      Owner owner) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a cl_context");
  }
  auto* handle = static_cast<cl_context>(native);
  auto members = members_of(handle);
  if (!members) {
    return members.take_error();
  }
  if (std::find(members->begin(), members->end(), &member) == members->end()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "{} is not a device of the context: pass one of the context's devices",
                member.properties().filter);
  }
  if (const auto outcome = calls().retain_context(handle); outcome != CL_SUCCESS) {
    return call_failed("clRetainContext", outcome);
  }
  return Ref<isthmus::Context>{make_ref<opencl::Context>(
      NativeContext{driver_, handle}, *std::move(members), nullptr, std::move(owner))};
}

Result<Ref<isthmus::Context>> Platform::share_context(isthmus::Device& member,
                                                      isthmus::Context& context) {
  auto handle = context.retain_opencl();
  ISTHMUS_TRY(handle);
  auto adopted = adopt_context(member, *handle, Owner{});
  calls().release_context(static_cast<cl_context>(*handle));
  return adopted;
}

Result<Ref<isthmus::Queue>> Platform::adopt_queue(isthmus::Device& member, void* native,
                                                  Owner owner) {
  if (native == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "a null pointer is not a cl_command_queue");
  }
  auto* handle = static_cast<cl_command_queue>(native);
  auto facts = query_queue(calls(), handle);
  if (!facts) {
    return facts.take_error();
  }
  if (facts->device != member.native()) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue does not belong to {}: pass the device of the queue",
                member.properties().filter);
  }
  auto adopted = adopt_context(member, facts->context, Owner{});
  if (!adopted) {
    return adopted.take_error();
  }
  if (const auto outcome = calls().retain_queue(handle); outcome != CL_SUCCESS) {
    return call_failed("clRetainCommandQueue", outcome);
  }
  auto& context = static_cast<opencl::Context&>(**adopted);
  return Ref<isthmus::Queue>{make_ref<opencl::Queue>(context, context.native_context(),
                                                     static_cast<opencl::Device&>(member), handle,
                                                     facts->properties, std::move(owner))};
}

}  // namespace isthmus::opencl
