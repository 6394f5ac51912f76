// SPDX-License-Identifier: Apache-2.0
// Memory resources that wrap other resources, and resources implemented by the caller.

#include "c/common.hpp"
#include "memory/adaptors/aligned_resource.hpp"
#include "memory/adaptors/binning_resource.hpp"
#include "memory/adaptors/custom_resource.hpp"
#include "memory/adaptors/failure_callback_resource.hpp"
#include "memory/adaptors/fallback_resource.hpp"
#include "memory/adaptors/limit_resource.hpp"
#include "memory/adaptors/log_resource.hpp"
#include "memory/adaptors/prefetch_resource.hpp"
#include "memory/deferred_release.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

void isthmus::c::write_counts(const UsageCounter::Counts& counts,
                              isthmus_statistics_t& out) noexcept {
  out.current_bytes = counts.current.bytes;
  out.current_count = counts.current.count;
  out.peak_bytes = counts.peak.bytes;
  out.peak_count = counts.peak.count;
  out.total_bytes = counts.total.bytes;
  out.total_count = counts.total.count;
}

namespace {

template <class Adaptor>
Result<void> give_made(isthmus_resource_t** out, Result<Ref<Adaptor>> made) {
  ISTHMUS_TRY(made);
  return give(Result<Ref<MemoryResource>>{*std::move(made)}, out);
}

template <class Adaptor, class... Args>
Result<void> give_new(isthmus_resource_t** out, Args&&... args) {
  if (os::is_forked_child()) {
    return refuse_child();
  }
  return give_made(out, Result{make_ref<Adaptor>(std::forward<Args>(args)...)});
}

Result<CustomResource::Operations> operations_of(const isthmus_resource_operations_t& given) {
  if (given.struct_size < sizeof given) {
    return is_too_small("operations", given.struct_size, sizeof given);
  }
  if (given.allocate == nullptr || given.deallocate == nullptr) {
    return is_null(given.allocate == nullptr ? "operations->allocate" : "operations->deallocate");
  }
  return given;
}

Result<StatisticsResource*> counting(isthmus_resource_t* resource) {
  auto* counts = dynamic_cast<StatisticsResource*>(object(resource));
  if (counts == nullptr) {
    return fail(
        ISTHMUS_ERROR_INVALID_ARGUMENT,
        "this resource does not count allocations: create one with isthmus_resource_statistics");
  }
  return counts;
}

Result<void> tell(const UsageCounter::Counts& counts, isthmus_statistics_t& out) {
  if (out.struct_size < sizeof out) {
    return is_too_small("statistics", out.struct_size, sizeof out);
  }
  write_counts(counts, out);
  return {};
}

}  // namespace

isthmus_status_t isthmus_resource_custom(isthmus_context_t* context, isthmus_device_t* device,
                                         isthmus_kind_t kind,
                                         const isthmus_resource_operations_t* operations,
                                         isthmus_owner_t keep,
                                         isthmus_resource_t** resource) noexcept {
  Owner kept{keep};
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(context);
    ISTHMUS_NEEDS(operations);
    ISTHMUS_NEEDS(resource);
    auto how = operations_of(*operations);
    ISTHMUS_TRY(how);
    auto used_device = device_for(*object(context), device, kind);
    ISTHMUS_TRY(used_device);
    return give_new<CustomResource>(resource, *object(context), **used_device, kind, *how,
                                    std::move(kept));
  });
}

isthmus_status_t isthmus_resource_statistics(isthmus_resource_t* upstream,
                                             isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    return give_new<StatisticsResource>(resource, *object(upstream));
  });
}

isthmus_status_t isthmus_statistics_query(isthmus_resource_t* resource,
                                          isthmus_statistics_t* statistics) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(statistics);
    auto counts = counting(resource);
    ISTHMUS_TRY(counts);
    release_on_demand();
    return tell((*counts)->read(), *statistics);
  });
}

isthmus_status_t isthmus_statistics_reset(isthmus_resource_t* resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    auto counts = counting(resource);
    ISTHMUS_TRY(counts);
    (*counts)->reset();
    return {};
  });
}

isthmus_status_t isthmus_scope_create(isthmus_resource_t* resource, isthmus_scope_t* outer,
                                      isthmus_scope_t** scope) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    ISTHMUS_NEEDS(scope);
    auto counts = counting(resource);
    ISTHMUS_TRY(counts);
    return give(Result{make_ref<StatisticsScope>(**counts, object(outer))}, scope);
  });
}

void isthmus_scope_retain(isthmus_scope_t* scope) noexcept {
  if (scope != nullptr) {
    object(scope)->retain();
  }
}

void isthmus_scope_release(isthmus_scope_t* scope) noexcept {
  if (scope != nullptr && !os::is_forked_child()) {
    object(scope)->release();
  }
}

isthmus_scope_t* isthmus_scope_swap(isthmus_scope_t* scope) noexcept {
  return handle(StatisticsScope::swap_current(object(scope)));
}

isthmus_status_t isthmus_scope_query(isthmus_scope_t* scope,
                                     isthmus_statistics_t* statistics) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(scope);
    ISTHMUS_NEEDS(statistics);
    return tell(object(scope)->read(), *statistics);
  });
}

isthmus_status_t isthmus_scope_query_net(isthmus_scope_t* scope,
                                         isthmus_statistics_t* statistics) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(scope);
    ISTHMUS_NEEDS(statistics);
    return tell(object(scope)->read_net(), *statistics);
  });
}

isthmus_status_t isthmus_resource_limit(isthmus_resource_t* upstream, uint64_t limit_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    return give_new<LimitResource>(resource, *object(upstream), limit_bytes);
  });
}

isthmus_status_t isthmus_limit_query(isthmus_resource_t* resource, uint64_t* limit_bytes,
                                     uint64_t* in_use_bytes) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    const auto* limit = dynamic_cast<const LimitResource*>(object(resource));
    if (limit == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this resource has no limit: create one with isthmus_resource_limit");
    }
    if (limit_bytes != nullptr) {
      *limit_bytes = limit->most();
    }
    if (in_use_bytes != nullptr) {
      *in_use_bytes = limit->in_use();
    }
    return {};
  });
}

isthmus_status_t isthmus_resource_fallback(isthmus_resource_t* first, isthmus_resource_t* second,
                                           isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(first);
    ISTHMUS_NEEDS(second);
    ISTHMUS_NEEDS(resource);
    if (object(first)->context().key() != object(second)->context().key()) {
      return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                  "the resources of {} and {} belong to different contexts",
                  object(first)->device().properties().filter,
                  object(second)->device().properties().filter);
    }
    return give_new<FallbackResource>(resource, *object(first), *object(second));
  });
}

isthmus_status_t isthmus_resource_aligned(isthmus_resource_t* upstream, size_t alignment,
                                          size_t from_bytes,
                                          isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    auto& under = *object(upstream);
    if (alignment == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "alignment must be a power of two, not 0");
    }
    if (auto bad = under.context().check(under.device(), {under.kind(), 0, alignment})) {
      return bad;
    }
    return give_new<AlignedResource>(resource, under, alignment, from_bytes);
  });
}

isthmus_status_t isthmus_resource_prefetch(isthmus_resource_t* upstream,
                                           isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    return give_new<PrefetchResource>(resource, *object(upstream));
  });
}

isthmus_status_t isthmus_resource_binning(isthmus_resource_t* upstream, const isthmus_bin_t* bins,
                                          size_t count, isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(resource);
    if (count != 0) {
      ISTHMUS_NEEDS(bins);
    }
    if (os::is_forked_child()) {
      return refuse_child();
    }
    std::vector<BinningResource::Bin> all;
    for (size_t index = 0; index < count; ++index) {
      ISTHMUS_NEEDS(bins[index].resource);
      all.push_back({bins[index].most_bytes, Ref{object(bins[index].resource)}});
    }
    return give_made(resource, BinningResource::create(*object(upstream), std::move(all)));
  });
}

isthmus_status_t isthmus_resource_log(isthmus_resource_t* upstream, const char* path,
                                      isthmus_resource_t** resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(path);
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    return give_made(resource, LogResource::create(*object(upstream), path));
  });
}

isthmus_status_t isthmus_log_flush(isthmus_resource_t* resource) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(resource);
    if (os::is_forked_child()) {
      return refuse_child();
    }
    auto* log = dynamic_cast<LogResource*>(object(resource));
    if (log == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this resource has no log: create one with isthmus_resource_log");
    }
    return log->flush();
  });
}

isthmus_status_t isthmus_resource_failure_callback(isthmus_resource_t* upstream,
                                                   isthmus_failure_function_t function,
                                                   isthmus_owner_t keep,
                                                   isthmus_resource_t** resource) noexcept {
  Owner kept{keep};
  return guarded([&]() -> Result<void> {
    ISTHMUS_NEEDS(upstream);
    ISTHMUS_NEEDS(function);
    ISTHMUS_NEEDS(resource);
    return give_new<FailureCallbackResource>(resource, *object(upstream), function,
                                             std::move(kept));
  });
}
