// SPDX-License-Identifier: Apache-2.0
#include "frameworks/torch_hooks.hpp"

#include <string>
#include <utility>

namespace isthmus::python {
namespace {

constinit std::array<StreamAllocator, k_torch_allocators> allocators{};

template <unsigned Number>
struct Hooks {
  static void* allocate(std::size_t nbytes, int device, CudaStream stream) {
    return allocators[Number].allocate(nbytes, device, stream);
  }
  static void free(void* pointer, std::size_t nbytes, int device, CudaStream stream) {
    allocators[Number].deallocate(pointer, nbytes, device, stream);
  }
  // torch.cuda.empty_cache()
  static void reset() { allocators[Number].trim(); }
  // torch.cuda.set_per_process_memory_fraction()
  static void limit(double share, int device) { allocators[Number].limit(share, device); }
};

// Throws if the library does not find a device that PyTorch uses. Without this check, the error
// would be raised by a later allocation.
void open_devices(int count) {
  for (int each = 0; each < count; ++each) {
    try {
      static_cast<void>(device{"cuda:" + std::to_string(each)});
    } catch (const error& problem) {
      throw std::runtime_error{std::string{"Isthmus did not find a device that PyTorch uses: "} +
                               problem.what()};
    }
  }
}

void* base_block(void* pointer, std::size_t* nbytes) { return find_block(pointer, nbytes); }

void record_stream(void* pointer, CudaStream stream) { record_stream_use(pointer, stream); }

template <class Function>
std::uintptr_t address_of(Function* function) noexcept {
  return reinterpret_cast<std::uintptr_t>(function);
}

using HookList = std::array<TorchHook, 7>;

template <unsigned Number>
HookList list_hooks() noexcept {
  return {{{"alloc", address_of(&Hooks<Number>::allocate)},
           {"free", address_of(&Hooks<Number>::free)},
           {"set_init_fn", address_of(&open_devices)},
           {"set_reset_fn", address_of(&Hooks<Number>::reset)},
           {"set_memory_fraction_fn", address_of(&Hooks<Number>::limit)},
           {"set_base_alloc_fn", address_of(&base_block)},
           {"set_record_stream_fn", address_of(&record_stream)}}};
}

template <unsigned... Numbers>
const HookList& list_of(unsigned number, std::integer_sequence<unsigned, Numbers...>) noexcept {
  static const std::array<HookList, sizeof...(Numbers)> all{list_hooks<Numbers>()...};
  return all[number];
}

}  // namespace

StreamAllocator& torch_allocator(unsigned number) noexcept { return allocators[number]; }

std::span<const TorchHook> hooks_of(unsigned number) noexcept {
  return list_of(number, std::make_integer_sequence<unsigned, k_torch_allocators>{});
}

}  // namespace isthmus::python
