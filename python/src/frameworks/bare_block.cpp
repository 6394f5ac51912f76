// SPDX-License-Identifier: Apache-2.0
// Memory owned by a small Python object, for arrays of other libraries.

#include <cstdio>
#include <utility>

#include "core/arguments.hpp"
#include "core/gil.hpp"
#include "core/interruptible.hpp"
#include "frameworks/bindings.hpp"
#include "memory/resources.hpp"
#include "memory/sizes.hpp"

namespace isthmus::python {
namespace {

// A block of memory that is freed in the order of its queue, as the other library frees its own
// memory.
class BareBlock {
 public:
  BareBlock(const Resource& resource, const Queue& queue, std::size_t nbytes)
      : BareBlock{ResourceHandle::share(resource.raw.get()), QueueHandle::share(queue.raw.get()),
                  nbytes, resource.is_pool} {
    // May raise although memory was allocated, which the destructor then frees.
    call_interruptibly([&] {
      return isthmus_resource_allocate(resource_.get(), nbytes_, 0, queue_.get(), &pointer_);
    });
  }
  BareBlock(const BareBlock&) = delete;
  BareBlock& operator=(const BareBlock&) = delete;
  ~BareBlock() {
    if (pointer_ == nullptr) {
      return;
    }
    const GilRelease released{!is_pooled_};  // without a pool the driver may wait for its device
    if (isthmus_resource_deallocate(resource_.get(), pointer_, nbytes_, 0, queue_.get()) !=
            ISTHMUS_OK &&
        !is_forked_child()) {
      std::fprintf(stderr, "isthmus: %zu bytes at %p were not freed: %s\n", nbytes_, pointer_,
                   isthmus_error_message());
    }
  }
  [[nodiscard]] std::uintptr_t pointer() const noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer_);
  }

 private:
  BareBlock(OwnedHandle<ResourceHandle> resource, OwnedHandle<QueueHandle> queue,
            std::size_t nbytes, bool is_pooled)
      : resource_{std::move(resource)},
        queue_{std::move(queue)},
        nbytes_{nbytes},
        is_pooled_{is_pooled} {}

  OwnedHandle<ResourceHandle> resource_;
  OwnedHandle<QueueHandle> queue_;
  std::size_t nbytes_;
  bool is_pooled_;
  void* pointer_ = nullptr;
};

void init_block(BareBlock* self, nb::handle source, nb::handle target_queue, nb::handle nbytes) {
  const auto* queue = queue_of(target_queue);
  if (queue == nullptr) {
    raise_wrong_type(target_queue, "queue must be a Queue");
  }
  const auto& resource = require_resource(source, "resource");
  new (self)
      BareBlock{resource, *queue, to_allocation_size(nbytes, "nbytes", resource.kind, *queue)};
}

}  // namespace

void bind_bare_block(nb::module_& module) {
  nb::class_<BareBlock>(
      module, "BareBlock",
      "Memory that is returned, in the order of its queue, when this object is destroyed.")
      .def("__init__", &init_block, nb::arg("resource").none(), nb::arg("queue").none(),
           nb::arg("nbytes").none(),
           nb::sig("def __init__(self, resource: MemoryResource, queue: Queue, nbytes: int) -> "
                   "None"))
      .def_prop_ro("ptr", &BareBlock::pointer,
                   "The address of\n"
                   "the memory.");
}

}  // namespace isthmus::python
