// SPDX-License-Identifier: Apache-2.0
#pragma once
// An OpenCL context and the memory that belongs to it: USM, or SVM as a substitute. Thread-safe.

#include <mutex>
#include <unordered_map>

#include "backend/context.hpp"
#include "backend/opencl/platform.hpp"

namespace isthmus::opencl {

class context final : public isthmus::context {
 public:
  // Takes over one reference to `handle`. `keep` is released after it.
  context(platform& home, context_handle handle, std::vector<isthmus::device*> devices,
          isthmus::platform* whole, owner keep)
      : isthmus::context{std::move(devices), whole},
        keep_{std::move(keep)},
        driver_{home},
        handle_{handle} {}
  ~context() override;

  [[nodiscard]] platform& driver() const noexcept { return driver_; }
  [[nodiscard]] context_handle handle() const noexcept { return handle_; }
  [[nodiscard]] pointer_facts query(const void* pointer) noexcept override;
  [[nodiscard]] std::uintptr_t key() const noexcept override;
  [[nodiscard]] void* native() const noexcept override { return handle_; }

 protected:
  [[nodiscard]] result<void*> do_allocate(isthmus::device& where,
                                          const allocation_request& request) override;
  void do_deallocate(void* pointer, usm_kind kind, std::size_t nbytes) noexcept override;
  [[nodiscard]] result<ref<isthmus::queue>> make_queue(isthmus::device& where, bool part) override;

 private:
  [[nodiscard]] void* obtain(const device& where, usm_kind kind, std::size_t nbytes,
                             std::size_t alignment, code& outcome) noexcept;
  [[nodiscard]] void* obtain_usm(const device& where, usm_kind kind, std::size_t nbytes,
                                 std::size_t alignment, code& outcome) const noexcept;
  [[nodiscard]] void* obtain_larger(const device& where, const allocation_request& request,
                                    code& outcome);
  void give_back(void* pointer) noexcept;
  [[nodiscard]] bool is_usm(const void* pointer) noexcept;

  owner keep_;
  platform& driver_;
  context_handle handle_;
  // If the driver refuses an alignment, the context allocates more and aligns the start itself.
  // Maps the aligned start to the driver's pointer. Empty with drivers that support all alignments.
  std::mutex larger_lock_;
  std::unordered_map<void*, void*> larger_;
  std::atomic<std::size_t> larger_count_{0};
};

}  // namespace isthmus::opencl
