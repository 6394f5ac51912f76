// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL context, and the USM that belongs to it. Thread-safe.

#include "backend/context.hpp"
#include "backend/sycl/device.hpp"
#include "backend/sycl/reference.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"

namespace isthmus::sycl {

class Context final : public isthmus::Context {
 public:
  // `owner` is released after `reference`. `calls` belongs to the platform, which is never
  // destroyed.
  Context(const Api& calls, OwnedContext reference, std::vector<isthmus::Device*> devices,
          isthmus::Platform* owning_platform, Owner owner)
      : isthmus::Context{std::move(devices), owning_platform},
        owner_{std::move(owner)},
        calls_{calls},
        reference_{std::move(reference)},
        key_{calls.context_key(reference_.get())} {}

  [[nodiscard]] const Api& calls() const noexcept { return calls_; }
  [[nodiscard]] ContextReference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] PointerFacts query(const void* pointer) noexcept override;
  [[nodiscard]] std::uintptr_t key() const noexcept override { return key_; }
  [[nodiscard]] void* native() const noexcept override { return reference_.get(); }
  [[nodiscard]] Result<void*> retain_opencl() const override;
  [[nodiscard]] Result<Ref<Event>> adopt_event(void* native, Owner owner) override;

 protected:
  [[nodiscard]] Result<void*> do_allocate(isthmus::Device& device,
                                          const AllocationRequest& request) override;
  void do_deallocate(void* pointer, UsmKind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] Result<Ref<isthmus::Queue>> make_queue(isthmus::Device& device,
                                                       bool platform_owned) override;

 private:
  // dpctl allocates through a queue, which determines device and context. One such queue is opened
  // for each device on first use.
  [[nodiscard]] Result<OwnedQueue> open_queue(const Device& device) const;
  [[nodiscard]] Result<QueueReference> allocator_of(const Device& device);

  Owner owner_;
  const Api& calls_;
  OwnedContext reference_;
  const std::uintptr_t key_;  // cached, since every allocation needs it
  Mutex allocators_lock_;
  std::vector<std::pair<const Device*, OwnedQueue>> allocators_
      ISTHMUS_GUARDED_BY(allocators_lock_);
};

}  // namespace isthmus::sycl
