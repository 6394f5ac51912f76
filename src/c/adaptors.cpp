// SPDX-License-Identifier: Apache-2.0
// Memory resources that wrap other resources, and custom resources.

#include "c/common.hpp"
#include "core/expects.hpp"
#include "memory/resources/aligned_resource.hpp"
#include "memory/resources/binning_resource.hpp"
#include "memory/resources/custom_resource.hpp"
#include "memory/resources/failure_callback_resource.hpp"
#include "memory/resources/fallback_resource.hpp"
#include "memory/resources/limit_resource.hpp"
#include "memory/resources/log_resource.hpp"
#include "memory/resources/prefetch_resource.hpp"
#include "os/process.hpp"

using namespace isthmus;
using namespace isthmus::c;

void isthmus::c::write_counts(const UsageCounter::Counts& counts,
                              isthmus_statistics_info_t& out) noexcept {
  ISTHMUS_EXPECTS(out.struct_size >= sizeof out, out.struct_size);
  out.current_bytes = counts.current.bytes;
  out.current_count = counts.current.count;
  out.peak_bytes = counts.peak.bytes;
  out.peak_count = counts.peak.count;
  out.total_bytes = counts.total.bytes;
  out.total_count = counts.total.count;
}

namespace {

template <class Adaptor>
Result<void> return_resource(isthmus_resource_t** out, Result<Ref<Adaptor>> created) {
  ISTHMUS_TRY(created);
  return return_handle(Result<Ref<MemoryResource>>{*std::move(created)}, out);
}

template <class Adaptor, class... Args>
Result<void> return_new_resource(isthmus_resource_t** out, Args&&... args) {
  return return_resource(out, Result{make_ref<Adaptor>(std::forward<Args>(args)...)});
}

Result<CustomResource::Operations> operations_of(const isthmus_resource_operations_t& operations) {
  ISTHMUS_TRY(check_struct_size(operations, "operations"));
  if (operations.allocate == nullptr || operations.deallocate == nullptr) {
    return null_pointer_error(operations.allocate == nullptr ? "operations->allocate"
                                                             : "operations->deallocate");
  }
  return operations;
}

Result<StatisticsResource*> statistics_resource_of(isthmus_resource_t* resource) {
  auto* counter = dynamic_cast<StatisticsResource*>(object(resource));
  if (counter == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "this resource does not count allocations: put a statistics resource over it");
  }
  return counter;
}

Result<void> write_statistics(const UsageCounter::Counts& counts, isthmus_statistics_info_t& out) {
  ISTHMUS_TRY(check_struct_size(out, "statistics"));
  write_counts(counts, out);
  return {};
}

}  // namespace

isthmus_status_t isthmus_resource_custom(isthmus_context_t* context, isthmus_device_t* device,
                                         isthmus_kind_t kind,
                                         const isthmus_resource_operations_t* operations,
                                         isthmus_owner_t raw_owner,
                                         isthmus_resource_t** resource) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(operations, resource), [&]() -> Result<void> {
    auto checked_operations = operations_of(*operations);
    ISTHMUS_TRY(checked_operations);
    auto location = location_for(context, device, kind);
    ISTHMUS_TRY(location);
    return return_new_resource<CustomResource>(resource, *location->context, location->device, kind,
                                               *checked_operations, std::move(owner));
  });
}

isthmus_status_t isthmus_resource_statistics(isthmus_resource_t* upstream,
                                             isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    return return_new_resource<StatisticsResource>(resource, *object(upstream));
  });
}

isthmus_status_t isthmus_statistics_info(isthmus_resource_t* resource,
                                         isthmus_statistics_info_t* statistics) noexcept {
  return entry_after_releases(ISTHMUS_NEEDS(resource, statistics), [&]() -> Result<void> {
    auto counter = statistics_resource_of(resource);
    ISTHMUS_TRY(counter);
    return write_statistics((*counter)->read(), *statistics);
  });
}

isthmus_status_t isthmus_statistics_reset(isthmus_resource_t* resource) noexcept {
  return entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto counter = statistics_resource_of(resource);
    ISTHMUS_TRY(counter);
    (*counter)->reset();
    return {};
  });
}

isthmus_status_t isthmus_scope_create(isthmus_resource_t* resource, isthmus_scope_t* outer,
                                      isthmus_scope_t** scope) noexcept {
  return entry(ISTHMUS_NEEDS(resource, scope), [&]() -> Result<void> {
    auto counter = statistics_resource_of(resource);
    ISTHMUS_TRY(counter);
    return return_handle(Result{make_ref<StatisticsScope>(**counter, object(outer))}, scope);
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

isthmus_status_t isthmus_scope_info(isthmus_scope_t* scope,
                                    isthmus_statistics_info_t* statistics) noexcept {
  return entry(ISTHMUS_NEEDS(scope, statistics), [&]() -> Result<void> {
    return write_statistics(object(scope)->read(), *statistics);
  });
}

isthmus_status_t isthmus_scope_net_info(isthmus_scope_t* scope,
                                        isthmus_statistics_info_t* statistics) noexcept {
  return entry(ISTHMUS_NEEDS(scope, statistics), [&]() -> Result<void> {
    return write_statistics(object(scope)->read_net(), *statistics);
  });
}

isthmus_status_t isthmus_resource_limit(isthmus_resource_t* upstream, uint64_t limit_bytes,
                                        isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    return return_new_resource<LimitResource>(resource, *object(upstream), limit_bytes);
  });
}

isthmus_status_t isthmus_limit_info(isthmus_resource_t* resource,
                                    isthmus_limit_info_t* info) noexcept {
  return entry(ISTHMUS_NEEDS(resource, info), [&]() -> Result<void> {
    ISTHMUS_TRY(check_struct_size(*info, "info"));
    const auto* limit = dynamic_cast<const LimitResource*>(object(resource));
    if (limit == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this resource has no limit: put a limit resource over it");
    }
    info->limit_bytes = limit->limit();
    info->in_use_bytes = limit->in_use();
    return {};
  });
}

isthmus_status_t isthmus_resource_fallback(isthmus_resource_t* first, isthmus_resource_t* second,
                                           isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(first, second, resource), [&]() -> Result<void> {
    if (object(first)->context().key() != object(second)->context().key()) {
      return fail(
          ISTHMUS_ERROR_WRONG_CONTEXT,
          "the resources of {} and {} belong to different contexts: use resources of one context",
          object(first)->device().properties().filter,
          object(second)->device().properties().filter);
    }
    return return_new_resource<FallbackResource>(resource, *object(first), *object(second));
  });
}

isthmus_status_t isthmus_resource_aligned(isthmus_resource_t* upstream, size_t alignment,
                                          size_t min_bytes,
                                          isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    auto& upstream_resource = *object(upstream);
    if (alignment == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "the alignment cannot be 0: use a power of two");
    }
    if (auto error = upstream_resource.context().check(upstream_resource.device(),
                                                       {upstream_resource.kind(), 0, alignment})) {
      return error;
    }
    return return_new_resource<AlignedResource>(resource, upstream_resource, alignment, min_bytes);
  });
}

isthmus_status_t isthmus_resource_prefetch(isthmus_resource_t* upstream,
                                           isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    return return_new_resource<PrefetchResource>(resource, *object(upstream));
  });
}

isthmus_status_t isthmus_resource_binning(isthmus_resource_t* upstream, const isthmus_bin_t* bins,
                                          size_t count, isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, resource), [&]() -> Result<void> {
    ISTHMUS_TRY(check_array(bins, "bins", count));
    std::vector<BinningResource::Bin> bin_list;
    for (size_t index = 0; index < count; ++index) {
      if (bins[index].resource == nullptr) {
        return null_pointer_error("bins[index].resource");
      }
      bin_list.push_back({bins[index].max_bytes, Ref{object(bins[index].resource)}});
    }
    return return_resource(resource,
                           BinningResource::create(*object(upstream), std::move(bin_list)));
  });
}

isthmus_status_t isthmus_resource_log(isthmus_resource_t* upstream, const char* path,
                                      isthmus_resource_t** resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(upstream, path, resource), [&]() -> Result<void> {
    return return_resource(resource, LogResource::create(*object(upstream), path));
  });
}

isthmus_status_t isthmus_log_flush(isthmus_resource_t* resource) noexcept {
  return driver_entry(ISTHMUS_NEEDS(resource), [&]() -> Result<void> {
    auto* log = dynamic_cast<LogResource*>(object(resource));
    if (log == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                  "this resource has no log: put a log resource over it");
    }
    return log->flush();
  });
}

isthmus_status_t isthmus_resource_failure_callback(isthmus_resource_t* upstream,
                                                   isthmus_failure_function_t function,
                                                   isthmus_owner_t raw_owner,
                                                   isthmus_resource_t** resource) noexcept {
  Owner owner{raw_owner};
  return driver_entry(ISTHMUS_NEEDS(upstream, function, resource), [&]() -> Result<void> {
    return return_new_resource<FailureCallbackResource>(resource, *object(upstream), function,
                                                        std::move(owner));
  });
}
