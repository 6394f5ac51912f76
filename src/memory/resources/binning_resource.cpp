// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/binning_resource.hpp"

#include <algorithm>

#include "core/sizes.hpp"

namespace isthmus {
Result<Ref<BinningResource>> BinningResource::create(MemoryResource& upstream,
                                                     std::vector<Bin> bins) {
  for (std::size_t index = 0; index < bins.size(); ++index) {
    const auto& [max_bytes, resource] = bins[index];
    if (resource->context().key() != upstream.context().key()) {
      return fail(
          ISTHMUS_ERROR_WRONG_CONTEXT,
          "bin {} allocates memory on {}, and the resource for larger requests allocates it "
          "on {}, in another context: use resources of one context",
          index, resource->device().properties().filter, upstream.device().properties().filter);
    }
    if (index != 0 && max_bytes <= bins[index - 1].max_bytes) {
      return fail(
          ISTHMUS_ERROR_INVALID_ARGUMENT,
          "bin {} serves up to {}, and the previous bin up to {}: sort the bins by increasing size",
          index, describe_bytes(max_bytes), describe_bytes(bins[index - 1].max_bytes));
    }
  }
  return make_ref<BinningResource>(upstream, std::move(bins));
}

MemoryResource::Nature BinningResource::nature_of(const MemoryResource& upstream,
                                                  const std::vector<Bin>& bins) noexcept {
  Nature all{upstream.orders_frees(), upstream.kinds()};
  for (const auto& each : bins) {
    all.orders_frees = all.orders_frees && each.resource->orders_frees();
    all.kinds |= each.resource->kinds();
  }
  return all;
}

BinningResource::BinningResource(MemoryResource& upstream, std::vector<Bin> bins)
    : Adaptor{upstream, nature_of(upstream, bins)}, bins_{std::move(bins)} {
  bases_.add(upstream);
  for (const auto& each : bins_) {
    bases_.add(*each.resource);
  }
}

MemoryResource& BinningResource::resource_for(std::size_t nbytes) const noexcept {
  const auto found =
      std::lower_bound(bins_.begin(), bins_.end(), nbytes,
                       [](const Bin& each, std::size_t size) { return each.max_bytes < size; });
  return found == bins_.end() ? upstream() : *found->resource;
}

Result<void*> BinningResource::allocate(std::size_t nbytes, std::size_t alignment, Queue& queue) {
  return resource_for(nbytes).allocate(nbytes, alignment, queue);
}

Result<void> BinningResource::deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept {
  return resource_for(nbytes).deallocate(pointer, nbytes, after);
}

bool BinningResource::may_release_early() const noexcept {
  return Adaptor::may_release_early() ||
         std::any_of(bins_.begin(), bins_.end(),
                     [](const Bin& each) { return each.resource->may_release_early(); });
}

Result<void> BinningResource::verify() {
  for (const auto& each : bins_) {
    ISTHMUS_TRY(each.resource->verify());
  }
  return Adaptor::verify();
}

}  // namespace isthmus
