#include "memory/adaptors/binning_resource.hpp"

#include <algorithm>

#include "core/sizes.hpp"

namespace isthmus {
namespace {

bool all_order_frees(const memory_resource& upstream,
                     const std::vector<binning_resource::bin>& bins) noexcept {
  return upstream.orders_frees() && std::all_of(bins.begin(), bins.end(), [](const auto& each) {
           return each.resource->orders_frees();
         });
}

}  // namespace

result<ref<binning_resource>> binning_resource::create(memory_resource& upstream,
                                                       std::vector<bin> bins) {
  for (std::size_t each = 0; each < bins.size(); ++each) {
    const auto& [most, from] = bins[each];
    if (from->home().key() != upstream.home().key() || from->kind() != upstream.kind()) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "bin {} gives {} memory on {}, and what is behind the bins {} memory on {}: all "
                  "must be of one context and kind",
                  each, kind_name(from->kind()), from->where().properties().filter,
                  kind_name(upstream.kind()), upstream.where().properties().filter);
    }
    if (each != 0 && most <= bins[each - 1].most_bytes) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "bin {} is for {}, and the one before it for {}: bins must grow", each,
                  describe_bytes(most), describe_bytes(bins[each - 1].most_bytes));
    }
  }
  return make_ref<binning_resource>(upstream, std::move(bins));
}

binning_resource::binning_resource(memory_resource& upstream, std::vector<bin> bins)
    : adaptor{upstream, all_order_frees(upstream, bins)}, bins_{std::move(bins)} {}

memory_resource* binning_resource::bin_for(std::size_t nbytes) const noexcept {
  const auto found =
      std::lower_bound(bins_.begin(), bins_.end(), nbytes,
                       [](const bin& each, std::size_t size) { return each.most_bytes < size; });
  return found == bins_.end() ? nullptr : found->resource.get();
}

// Of those that fall back to other kinds the one that has the pointer there tells.
usm_kind binning_resource::kind_of(const void* pointer) noexcept {
  for (const auto& each : bins_) {
    if (const auto told = each.resource->kind_of(pointer); told != kind()) {
      return told;
    }
  }
  return adaptor::kind_of(pointer);
}

result<void*> binning_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto* from = bin_for(nbytes);
  return from != nullptr ? from->allocate(nbytes, alignment, on)
                         : adaptor::allocate(nbytes, alignment, on);
}

result<void> binning_resource::deallocate(void* pointer, std::size_t nbytes,
                                          queue* behind) noexcept {
  auto* from = bin_for(nbytes);
  return from != nullptr ? from->deallocate(pointer, nbytes, behind)
                         : adaptor::deallocate(pointer, nbytes, behind);
}

memory_resource::memory_usage binning_resource::usage() noexcept {
  auto sum = adaptor::usage();
  for (const auto& each : bins_) {
    sum += each.resource->usage();
  }
  return sum;
}

// Each keeps what the others, as they are then, leave of it.
std::size_t binning_resource::trim(std::size_t keep) noexcept {
  std::size_t given_back = 0;
  const auto trim_one = [&](auto held, auto&& trim_to) {
    const auto others = usage().held_bytes - held;
    given_back += trim_to(keep - std::min(keep, others));
  };
  for (const auto& each : bins_) {
    trim_one(each.resource->usage().held_bytes,
             [&](std::size_t most) { return each.resource->trim(most); });
  }
  trim_one(adaptor::usage().held_bytes, [&](std::size_t most) { return adaptor::trim(most); });
  return given_back;
}

}  // namespace isthmus
