// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL context and the memory that belongs to it: USM, or SVM as a substitute. Thread-safe.

#include <atomic>
#include <unordered_map>

#include "backend/context.hpp"
#include "backend/opencl/device.hpp"
#include "backend/opencl/driver.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::opencl {

class Context final : public isthmus::Context {
 public:
  // Takes ownership of one reference to `native.handle`. `owner` is released after that reference.
  Context(const NativeContext& native, std::vector<isthmus::Device*> devices,
          isthmus::Platform* owning_platform, Owner owner)
      : isthmus::Context{std::move(devices), owning_platform},
        owner_{std::move(owner)},
        native_{native} {}
  ~Context() override;

  [[nodiscard]] const NativeContext& native_context() const noexcept { return native_; }
  [[nodiscard]] PointerFacts query(const void* pointer) noexcept override;
  [[nodiscard]] std::uintptr_t key() const noexcept override;
  [[nodiscard]] void* native() const noexcept override { return native_.handle; }

 protected:
  [[nodiscard]] Result<void*> do_allocate(isthmus::Device& device,
                                          const AllocationRequest& request) override;
  void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> make_queue(isthmus::Device& device,
                                                       bool platform_owned) override;

 private:
  [[nodiscard]] const Api& calls() const noexcept { return native_.driver.calls; }
  [[nodiscard]] void* allocate_native(const Device& device, UsmKind kind, std::size_t nbytes,
                                      std::size_t alignment, cl_int& outcome) noexcept;
  [[nodiscard]] void* allocate_usm(const Device& device, UsmKind kind, std::size_t nbytes,
                                   std::size_t alignment, cl_int& outcome) const noexcept;
  [[nodiscard]] void* allocate_padded(const Device& device, const AllocationRequest& request,
                                      cl_int& outcome);
  void free_native(void* pointer) noexcept;
  [[nodiscard]] bool is_usm(const void* pointer) noexcept;

  Owner owner_;
  NativeContext native_;
  // If the driver refuses an alignment, the context allocates more and aligns the start itself.
  // `padded_` maps the aligned start to the driver's pointer. It is empty with drivers that support
  // all alignments.
  Mutex padded_lock_;
  std::unordered_map<void*, void*> padded_ ISTHMUS_GUARDED_BY(padded_lock_);
  std::atomic<std::size_t> padded_count_{0};
};

}  // namespace isthmus::opencl
