// SPDX-License-Identifier: Apache-2.0
// The host as a platform: its one device, its contexts and its queues.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include "backend/host/chunks.hpp"
#include "backend/host/open.hpp"
#include "backend/host/worker.hpp"
#include "backend/queue.hpp"
#include "core/aligned_memory.hpp"
#include "core/bytes.hpp"
#include "core/sanitizers.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/available_memory.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus::host {
namespace {

// Below this size, passing a copy to another thread costs more than the copy.
constexpr std::size_t k_inline_bytes = std::size_t{256} << 10;

class HostDevice final : public Device {
 public:
  using Device::Device;
  [[nodiscard]] Result<MemoryInfo> memory() const override {
    const auto physical = os::physical_memory();
    return MemoryInfo{physical.available, physical.total};
  }
  [[nodiscard]] bool reaches_host_memory() const noexcept override { return true; }
};

class HostQueue final : public Queue {
 public:
  using Queue::Queue;
  ~HostQueue() override { worker_->retire(); }

 protected:
  Result<Ref<Event>> do_copy(void* destination, const void* source, std::size_t nbytes,
                             WaitList after) override {
    return submit(nbytes, after, [=] {
      copy_bytes(destination, source, nbytes);
      return Error{};
    });
  }

  Result<Ref<Event>> do_copy_2d(const Copy2dShape& shape, WaitList after) override {
    return submit(shape.width * shape.height, after, [shape] {
      copy_rows(shape);
      return Error{};
    });
  }

  Result<Ref<Event>> do_copy_ranges(const RangedCopy& copy, WaitList after) override {
    return submit(copy.bytes(), after,
                  [copy, ranges = std::vector<CopyRange>{copy.ranges.begin(), copy.ranges.end()}] {
                    isthmus::copy_ranges({copy.destination, copy.source, ranges});
                    return Error{};
                  });
  }

  Result<Ref<Event>> do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                             WaitList after) override {
    return submit(nbytes, after, [=] {
      fill_bytes(destination, pattern, nbytes);
      return Error{};
    });
  }

  Result<Ref<Event>> do_prefetch(const void*, std::size_t, bool, WaitList after) override {
    return do_fence(after);
  }

  Result<Ref<Event>> do_fence(WaitList after) override {
    return submit(0, after, [] { return Error{}; });
  }

  Result<Ref<Event>> do_run(std::unique_ptr<HostFunction>& function, WaitList after,
                            FunctionStart&) override {
    // A function may block, so it never runs on the submitting thread.
    const auto shared = std::make_shared<std::unique_ptr<HostFunction>>(std::move(function));
    Undo restore_function{[&] { function = std::move(*shared); }};
    auto submitted =
        submit(SIZE_MAX, after, [shared, context_reference = Ref<Context>{&this->context()}] {
          return (*shared)->call(*context_reference);
        });
    if (submitted) {
      restore_function.dismiss();
    }
    return submitted;
  }

  bool can_wait_for(Event&) const noexcept override { return true; }

 private:
  template <class Effect>
  Result<Ref<Event>> submit(std::size_t nbytes, WaitList after, Effect&& effect) {
    auto next = make_ref<Task>(std::forward<Effect>(effect), after);
    if (auto result = worker_->submit(next, nbytes <= k_inline_bytes); !result) {
      return result.take_error();
    }
    return Ref<Event>{next};
  }

  std::shared_ptr<Worker> worker_ = std::make_shared<Worker>();
};

class HostContext final : public Context {
 public:
  using Context::Context;

  PointerFacts query(const void*) noexcept override { return {}; }
  bool takes_host_memory() const noexcept override { return true; }
  ChunkSource* chunks(Device&, UsmKind) noexcept override { return movable_chunks(); }

 protected:
  Result<void*> do_allocate(Device& device, const AllocationRequest& request) override {
    void* const pointer = allocate_or_map(request);
    if (pointer == nullptr) {
      return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "the host cannot allocate {} for {} memory on {}",
                  describe_bytes(request.nbytes), kind_name(request.kind),
                  device.properties().filter);
    }
    return pointer;
  }
  void do_deallocate(void* pointer, UsmKind, std::size_t nbytes) noexcept override {
    is_mapped(nbytes) ? os::unmap_pages(pointer, nbytes) : free_aligned(pointer);
  }

  Result<Ref<Queue>> make_queue(Device& device, bool platform_owned) override {
    return Ref<Queue>{
        make_ref<HostQueue>(*this, device, QueueTraits{.is_default = platform_owned})};
  }

 private:
  // Requests of at least a huge page get a separate mapping. malloc writes its metadata next to the
  // blocks that it returns. If that memory was advised to use huge pages before, the write causes
  // the kernel to clear a whole huge page, which takes 0.4 ms. Under AddressSanitizer all requests
  // use malloc, since the sanitizer detects accesses beyond a block only there.
  static bool is_mapped(std::size_t nbytes) noexcept {
    return nbytes >= os::k_huge_page && !k_address_sanitizer;
  }
  // Returns null if memory is exhausted.
  static void* allocate_or_map(const AllocationRequest& request) {
    if (!is_mapped(request.nbytes)) {
      const auto boundary = request.nbytes < os::k_huge_page ? 1 : os::k_huge_page;
      void* const block = allocate_aligned(request.nbytes, std::max(request.alignment, boundary));
      os::prefer_huge_pages(block, request.nbytes);
      return block;
    }
    auto mapped = os::map_pages(request.nbytes, std::max<std::size_t>(request.alignment, 1));
    return mapped ? *mapped : nullptr;
  }
};

std::string processor_name() {
  std::string name = "processor";
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      const char* colon = std::strchr(line, ':');
      if (std::strncmp(line, "model name", 10) == 0 && colon != nullptr) {
        name.assign(colon + 2, std::strcspn(colon + 2, "\n"));
        break;
      }
    }
    std::fclose(file);
  }
  return name;
}

DeviceProperties describe_host() {
  DeviceProperties host;
  const auto memory = os::physical_memory();
  host.filter = "host:cpu:0";
  host.name = processor_name();
  host.vendor = "Isthmus";
  host.driver_version = isthmus_version();
  host.compute_units = std::max(1U, std::thread::hardware_concurrency());
  host.copy_engines = host.compute_units;
  host.capabilities = ISTHMUS_CAN_DEVICE_KIND | ISTHMUS_CAN_SHARED_KIND | ISTHMUS_CAN_HOST_KIND |
                      ISTHMUS_CAN_USM | ISTHMUS_CAN_WAIT_FOR_HOST | ISTHMUS_CAN_PREFETCH |
                      ISTHMUS_CAN_PROFILE | ISTHMUS_CAN_QUERY_FREE_MEMORY |
                      ISTHMUS_CAN_RUN_FUNCTIONS;
  if (movable_chunks() != nullptr) {
    host.capabilities |= ISTHMUS_CAN_REMAP;
  }
  host.memory_bytes = memory.total;
  host.max_allocation_bytes = memory.total;
  host.base_alignment = 64;
  host.max_alignment = std::uint64_t{1} << 30;
  return host;
}

class HostPlatform final : public Platform {
 public:
  HostPlatform() : Platform{{"host", "Host", "Isthmus", isthmus_version(), ""}} {
    add(std::make_unique<HostDevice>(*this, describe_host()));
  }

 protected:
  Result<Ref<Context>> make_context(std::vector<Device*> members,
                                    Platform* owning_platform) override {
    return Ref<Context>{make_ref<HostContext>(std::move(members), owning_platform)};
  }
};

}  // namespace

Result<std::vector<Ref<Platform>>> open() {
  return std::vector<Ref<Platform>>{make_ref<HostPlatform>()};
}

}  // namespace isthmus::host
