// SPDX-License-Identifier: Apache-2.0
#pragma once
// A SYCL context, and the USM that belongs to it. Thread-safe.

#include "backend/context.hpp"
#include "backend/sycl/platform.hpp"

namespace isthmus::sycl {

// A DRIVER error without a reason, since dpctl returns none.
[[nodiscard]] error call_failed(const char* what);

class context final : public isthmus::context {
 public:
  // `keep` is released after the reference.
  context(platform& home, owned_context reference, std::vector<isthmus::device*> devices,
          isthmus::platform* whole, owner keep)
      : isthmus::context{std::move(devices), whole},
        keep_{std::move(keep)},
        driver_{home},
        reference_{std::move(reference)},
        key_{calls().context_key(reference_.get())} {}

  [[nodiscard]] const api& calls() const noexcept { return driver_.calls(); }
  [[nodiscard]] context_reference reference() const noexcept { return reference_.get(); }
  [[nodiscard]] pointer_facts query(const void* pointer) noexcept override;
  [[nodiscard]] std::uintptr_t key() const noexcept override { return key_; }
  [[nodiscard]] void* native() const noexcept override { return reference_.get(); }
  [[nodiscard]] result<void*> retain_opencl() const override;
  [[nodiscard]] result<ref<event>> adopt_event(void* native, owner keep) override;

 protected:
  [[nodiscard]] result<void*> do_allocate(isthmus::device& where,
                                          const allocation_request& request) override;
  void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<ref<isthmus::queue>> make_queue(isthmus::device& where, bool part) override;

 private:
  // dpctl allocates through a queue, which determines device and context. One is opened for each
  // device on first use.
  [[nodiscard]] result<owned_queue> open_queue(const device& where) const;
  [[nodiscard]] result<queue_reference> allocator_of(const device& where);

  owner keep_;
  platform& driver_;
  owned_context reference_;
  const std::uintptr_t key_;  // read once: every request for memory needs it
  std::mutex allocators_lock_;
  // Guarded by allocators_lock_.
  std::vector<std::pair<const device*, owned_queue>> allocators_;
};

}  // namespace isthmus::sycl
