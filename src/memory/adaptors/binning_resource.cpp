// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/binning_resource.hpp"

#include <algorithm>

#include "core/sizes.hpp"

namespace isthmus {
result<ref<binning_resource>> binning_resource::create(memory_resource& upstream,
                                                       std::vector<bin> bins) {
  for (std::size_t each = 0; each < bins.size(); ++each) {
    const auto& [most, from] = bins[each];
    if (from->home().key() != upstream.home().key()) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "bin {} allocates memory on {}, and the resource for larger requests memory on "
                  "{}: all must be of one context",
                  each, from->where().properties().filter, upstream.where().properties().filter);
    }
    if (each != 0 && most <= bins[each - 1].most_bytes) {
      return fail(
          ISTHMUS_ERROR_INVALID_ARGUMENT,
          "bin {} is for {}, and the one before it for {}: sort the bins by increasing size", each,
          describe_bytes(most), describe_bytes(bins[each - 1].most_bytes));
    }
  }
  return make_ref<binning_resource>(upstream, std::move(bins));
}

memory_resource::nature binning_resource::nature_of(const memory_resource& upstream,
                                                    const std::vector<bin>& bins) noexcept {
  nature all{upstream.orders_frees(), upstream.kinds()};
  for (const auto& each : bins) {
    all.orders_frees = all.orders_frees && each.resource->orders_frees();
    all.kinds |= each.resource->kinds();
  }
  return all;
}

binning_resource::binning_resource(memory_resource& upstream, std::vector<bin> bins)
    : adaptor{upstream, nature_of(upstream, bins)}, bins_{std::move(bins)} {
  bases_.add(upstream);
  for (const auto& each : bins_) {
    bases_.add(*each.resource);
  }
}

memory_resource& binning_resource::resource_for(std::size_t nbytes) const noexcept {
  const auto found =
      std::lower_bound(bins_.begin(), bins_.end(), nbytes,
                       [](const bin& each, std::size_t size) { return each.most_bytes < size; });
  return found == bins_.end() ? upstream() : *found->resource;
}

result<void*> binning_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  return resource_for(nbytes).allocate(nbytes, alignment, on);
}

result<void> binning_resource::deallocate(void* pointer, std::size_t nbytes,
                                          queue* behind) noexcept {
  return resource_for(nbytes).deallocate(pointer, nbytes, behind);
}

bool binning_resource::may_take_back() const noexcept {
  return adaptor::may_take_back() || std::any_of(bins_.begin(), bins_.end(), [](const bin& each) {
           return each.resource->may_take_back();
         });
}

result<void> binning_resource::verify() {
  for (const auto& each : bins_) {
    ISTHMUS_TRY(each.resource->verify());
  }
  return adaptor::verify();
}

}  // namespace isthmus
