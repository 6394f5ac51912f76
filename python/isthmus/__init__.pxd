# SPDX-License-Identifier: Apache-2.0
# The C interface for Cython, callable without the interpreter's lock, and the handles inside of
# Python's objects. Generated from isthmus.h, which documents each function, by generate_pxd.py.
#
#     from isthmus cimport queue_handle, isthmus_copy, ...
#
# Compile with include_dirs=[isthmus.get_include()] and link with the library that is loaded:
# library_dirs=[os.path.dirname(isthmus.get_library())], libraries=[":libisthmus.so.0"].

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t

cdef extern from "isthmus/isthmus.h" nogil:
    const char* isthmus_version()
    uint32_t isthmus_abi_version()
    ctypedef int32_t isthmus_status_t
    enum:
        ISTHMUS_OK
        ISTHMUS_PENDING
        ISTHMUS_ERROR_INVALID_ARGUMENT
        ISTHMUS_ERROR_OUT_OF_RANGE
        ISTHMUS_ERROR_OUT_OF_MEMORY
        ISTHMUS_ERROR_UNSUPPORTED
        ISTHMUS_ERROR_WRONG_CONTEXT
        ISTHMUS_ERROR_NOT_FOUND
        ISTHMUS_ERROR_CLOSED
        ISTHMUS_ERROR_READ_ONLY
        ISTHMUS_ERROR_DEVICE_LOST
        ISTHMUS_ERROR_DRIVER
        ISTHMUS_ERROR_TIMEOUT
        ISTHMUS_ERROR_DEPENDENCY
        ISTHMUS_ERROR_ABANDONED
        ISTHMUS_ERROR_CALLBACK
        ISTHMUS_ERROR_FORKED
        ISTHMUS_ERROR_INTERNAL
        ISTHMUS_ERROR_CONFLICT
    const char* isthmus_error_message()
    const char* isthmus_status_name(isthmus_status_t status)
    ctypedef struct isthmus_platform_t:
        pass
    ctypedef struct isthmus_device_t:
        pass
    ctypedef struct isthmus_context_t:
        pass
    ctypedef struct isthmus_queue_t:
        pass
    ctypedef struct isthmus_event_t:
        pass
    ctypedef struct isthmus_resource_t:
        pass
    ctypedef struct isthmus_scope_t:
        pass
    ctypedef struct isthmus_budget_t:
        pass
    ctypedef struct isthmus_buffer_t:
        pass
    ctypedef struct isthmus_oom_callback_t:
        pass
    ctypedef struct isthmus_pin_t:
        pass
    ctypedef struct isthmus_unified_t:
        pass
    ctypedef int32_t isthmus_kind_t
    enum:
        ISTHMUS_KIND_UNKNOWN
        ISTHMUS_KIND_DEVICE
        ISTHMUS_KIND_SHARED
        ISTHMUS_KIND_HOST
    ctypedef struct isthmus_owner_t:
        void* object
        void (*release)(void* object) noexcept nogil
    isthmus_status_t isthmus_driver_library(const char* backend, const char* path)
    ctypedef struct isthmus_platform_info_t:
        size_t struct_size
        const char* backend
        const char* name
        const char* vendor
        const char* version
        const char* library
        size_t device_count
    ctypedef int32_t isthmus_device_type_t
    enum:
        ISTHMUS_DEVICE_CPU
        ISTHMUS_DEVICE_GPU
        ISTHMUS_DEVICE_ACCELERATOR
    enum:
        ISTHMUS_CAN_DEVICE_KIND
        ISTHMUS_CAN_SHARED_KIND
        ISTHMUS_CAN_HOST_KIND
        ISTHMUS_CAN_USM
        ISTHMUS_CAN_WAIT_FOR_HOST
        ISTHMUS_CAN_PREFETCH
        ISTHMUS_CAN_ADVISE
        ISTHMUS_CAN_PROFILE
        ISTHMUS_CAN_QUERY_FREE_MEMORY
        ISTHMUS_CAN_RUN_FUNCTIONS
        ISTHMUS_CAN_EXPORT_HANDLES
        ISTHMUS_CAN_REMAP
        ISTHMUS_CAN_WRITE_COMBINE
        ISTHMUS_CAN_IPC
    ctypedef struct isthmus_device_info_t:
        size_t struct_size
        const char* backend
        const char* filter
        const char* name
        const char* vendor
        const char* driver_version
        isthmus_device_type_t type
        uint32_t compute_units
        uint32_t copy_engines
        uint64_t capabilities
        uint64_t memory_bytes
        uint64_t max_allocation_bytes
        uint64_t base_alignment
        uint64_t max_alignment
        const char* limitations
    isthmus_status_t isthmus_platform_count(size_t* count)
    isthmus_status_t isthmus_platform_get(size_t index, isthmus_platform_t** platform)
    void isthmus_platform_retain(isthmus_platform_t* platform)
    void isthmus_platform_release(isthmus_platform_t* platform)
    isthmus_status_t isthmus_platform_info(const isthmus_platform_t* platform,
        isthmus_platform_info_t* info)
    isthmus_status_t isthmus_platform_device(isthmus_platform_t* platform, size_t index,
        isthmus_device_t** device)
    isthmus_status_t isthmus_absent_count(size_t* count)
    isthmus_status_t isthmus_absent_get(size_t index, const char** backend, const char** reason)
    isthmus_status_t isthmus_device_find(const char* filter, isthmus_device_t** device)
    void isthmus_device_retain(isthmus_device_t* device)
    void isthmus_device_release(isthmus_device_t* device)
    isthmus_status_t isthmus_device_info(const isthmus_device_t* device,
        isthmus_device_info_t* info)
    isthmus_status_t isthmus_device_platform(const isthmus_device_t* device,
        isthmus_platform_t** platform)
    isthmus_status_t isthmus_device_memory(const isthmus_device_t* device, uint64_t* free_bytes,
        uint64_t* total_bytes)
    void* isthmus_device_native(const isthmus_device_t* device)
    isthmus_status_t isthmus_device_find_native(const char* backend, void* native,
        isthmus_device_t** device)
    isthmus_status_t isthmus_sim_create(const char* options, isthmus_device_t** device)
    isthmus_status_t isthmus_sim_configure(isthmus_device_t* device, const char* options)
    isthmus_status_t isthmus_sim_calls(const isthmus_device_t* device, const char* kind,
        uint64_t* count)
    isthmus_status_t isthmus_sim_state(const isthmus_device_t* device, uint64_t* clock_ns,
        uint64_t* device_bytes, uint64_t* host_bytes)
    isthmus_status_t isthmus_context_create(isthmus_device_t* const* devices, size_t count,
        isthmus_context_t** context)
    isthmus_status_t isthmus_context_default(isthmus_device_t* device, isthmus_context_t** context)
    isthmus_status_t isthmus_context_adopt(isthmus_device_t* device, void* native,
        isthmus_owner_t owner, isthmus_context_t** context)
    isthmus_status_t isthmus_context_share(isthmus_context_t* other, isthmus_device_t* device,
        isthmus_context_t** context)
    void isthmus_context_retain(isthmus_context_t* context)
    void isthmus_context_release(isthmus_context_t* context)
    isthmus_status_t isthmus_context_device_count(const isthmus_context_t* context, size_t* count)
    isthmus_status_t isthmus_context_device(const isthmus_context_t* context, size_t index,
        isthmus_device_t** device)
    uintptr_t isthmus_context_key(const isthmus_context_t* context)
    void* isthmus_context_native(const isthmus_context_t* context)
    isthmus_status_t isthmus_queue_create(isthmus_context_t* context, isthmus_device_t* device,
        isthmus_queue_t** queue)
    isthmus_status_t isthmus_queue_default(isthmus_device_t* device, isthmus_queue_t** queue)
    isthmus_status_t isthmus_queue_adopt(isthmus_device_t* device, void* native,
        isthmus_owner_t owner, isthmus_queue_t** queue)
    void isthmus_queue_retain(isthmus_queue_t* queue)
    void isthmus_queue_release(isthmus_queue_t* queue)
    isthmus_device_t* isthmus_queue_device(const isthmus_queue_t* queue)
    isthmus_context_t* isthmus_queue_context(const isthmus_queue_t* queue)
    uintptr_t isthmus_queue_key(const isthmus_queue_t* queue)
    void* isthmus_queue_native(isthmus_queue_t* queue)
    int isthmus_queue_idle(isthmus_queue_t* queue)
    isthmus_status_t isthmus_queue_wait(isthmus_queue_t* queue, int64_t timeout_ns)
    isthmus_status_t isthmus_queue_pending(isthmus_queue_t* queue, isthmus_event_t** event)
    isthmus_status_t isthmus_queue_fence(isthmus_queue_t* queue, isthmus_event_t* const* after,
        size_t after_count, isthmus_event_t** event)
    isthmus_status_t isthmus_queue_mark(isthmus_queue_t* queue, isthmus_event_t** event)
    isthmus_status_t isthmus_queue_close(isthmus_queue_t* queue)
    ctypedef struct isthmus_view_t:
        void* data
        size_t nbytes
    ctypedef isthmus_status_t (*isthmus_function_t)(void* object, const isthmus_view_t* views,
        size_t view_count, const char** message) noexcept nogil
    isthmus_status_t isthmus_queue_submit(isthmus_queue_t* queue, isthmus_function_t function,
        isthmus_owner_t owner, isthmus_buffer_t* const* buffers, size_t buffer_count,
        isthmus_event_t* const* after, size_t after_count, isthmus_event_t** event)
    void isthmus_event_retain(isthmus_event_t* event)
    void isthmus_event_release(isthmus_event_t* event)
    isthmus_status_t isthmus_event_status(isthmus_event_t* event)
    isthmus_status_t isthmus_event_wait(isthmus_event_t* event, int64_t timeout_ns)
    isthmus_status_t isthmus_event_notify(isthmus_event_t* event, int fd)
    isthmus_status_t isthmus_event_then(isthmus_event_t* event, isthmus_owner_t owner)
    isthmus_status_t isthmus_event_adopt(isthmus_context_t* context, void* native,
        isthmus_owner_t owner, isthmus_event_t** event)
    isthmus_status_t isthmus_event_create(isthmus_event_t** event)
    isthmus_status_t isthmus_event_complete(isthmus_event_t* event, isthmus_status_t status,
        const char* message)
    isthmus_status_t isthmus_event_times(isthmus_event_t* event, uint64_t* submitted_ns,
        uint64_t* started_ns, uint64_t* ended_ns)
    isthmus_status_t isthmus_event_elapsed(isthmus_event_t* event, isthmus_event_t* earlier,
        int64_t* elapsed_ns)
    const char* isthmus_event_backend(isthmus_event_t* event)
    void* isthmus_event_native(isthmus_event_t* event)
    isthmus_status_t isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device,
        isthmus_kind_t kind, isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_write_combined(isthmus_context_t* context,
        isthmus_device_t* device, isthmus_resource_t** resource)
    isthmus_status_t isthmus_bytes_parse(const char* text, isthmus_device_t* device,
        isthmus_kind_t kind, uint64_t* bytes)
    isthmus_status_t isthmus_budget_create(uint64_t limit_bytes, isthmus_budget_t** budget)
    void isthmus_budget_retain(isthmus_budget_t* budget)
    void isthmus_budget_release(isthmus_budget_t* budget)
    ctypedef struct isthmus_budget_info_t:
        size_t struct_size
        uint64_t limit_bytes
        uint64_t held_bytes
        uint64_t free_bytes
        uint64_t peak_held_bytes
        uint64_t pools
        uint64_t refusals
        uint64_t released_bytes
    isthmus_status_t isthmus_budget_query(isthmus_budget_t* budget, isthmus_budget_info_t* info)
    enum:
        ISTHMUS_POOL_UNCHECKED
        ISTHMUS_POOL_NO_REMAP
        ISTHMUS_POOL_DEVICE_WAIT
    ctypedef struct isthmus_pool_options_t:
        size_t struct_size
        uint64_t initial_bytes
        uint64_t growth_bytes
        uint64_t limit_bytes
        uint32_t flags
        uint64_t soft_limit_bytes
        isthmus_budget_t* budget
        uint64_t decay_ns
        int64_t wait_ns
    isthmus_status_t isthmus_resource_pool(isthmus_context_t* context, isthmus_device_t* device,
        isthmus_kind_t kind, const isthmus_pool_options_t* options, isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_pool_over(isthmus_resource_t* upstream,
        const isthmus_pool_options_t* options, isthmus_resource_t** resource)
    enum:
        ISTHMUS_DEFAULT_POOL_OF_ARRAYS
    isthmus_status_t isthmus_default_pool(isthmus_queue_t* queue, isthmus_kind_t kind,
        uint32_t flags, isthmus_resource_t** resource)
    isthmus_status_t isthmus_default_pools_trim(uint64_t* bytes)
    void isthmus_resource_retain(isthmus_resource_t* resource)
    void isthmus_resource_release(isthmus_resource_t* resource)
    isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
        size_t alignment, isthmus_queue_t* queue, void** pointer)
    isthmus_status_t isthmus_resource_deallocate(isthmus_resource_t* resource, void* pointer,
        size_t nbytes, size_t alignment, isthmus_queue_t* queue)
    isthmus_status_t isthmus_record_event(const void* pointer, isthmus_event_t* event)
    isthmus_status_t isthmus_record_queue(const void* pointer, isthmus_queue_t* queue)
    isthmus_status_t isthmus_resource_trim(isthmus_resource_t* resource, uint64_t keep_bytes,
        uint64_t* released_bytes)
    ctypedef struct isthmus_resource_info_t:
        size_t struct_size
        isthmus_kind_t kind
        uint32_t kinds
        isthmus_device_t* device
        uint64_t held_bytes
        uint64_t free_bytes
        uint64_t maps
        uint64_t unmaps
    isthmus_status_t isthmus_resource_query(isthmus_resource_t* resource,
        isthmus_resource_info_t* info)
    ctypedef struct isthmus_holder_t:
        const char* tag
        uint64_t bytes
        uint64_t count
    enum:
        ISTHMUS_MAX_HOLDERS
    ctypedef struct isthmus_snapshot_t:
        size_t struct_size
        uint64_t held_bytes
        uint64_t live_bytes
        uint64_t cached_bytes
        uint64_t waiting_bytes
        uint64_t free_bytes
        uint64_t largest_free_bytes
        size_t holder_count
        isthmus_holder_t holders[8]
        const char* device
        isthmus_kind_t kind
        uint32_t oom_stages
        uint64_t requested_bytes
        const char* advice
    isthmus_status_t isthmus_resource_snapshot(isthmus_resource_t* resource,
        isthmus_snapshot_t* snapshot)
    isthmus_status_t isthmus_error_snapshot(isthmus_snapshot_t* snapshot)
    ctypedef int32_t isthmus_oom_stage_t
    enum:
        ISTHMUS_OOM_STAGE_COLLECT
        ISTHMUS_OOM_STAGE_COLLECT_IDLE
        ISTHMUS_OOM_STAGE_GROW
        ISTHMUS_OOM_STAGE_TRIM
        ISTHMUS_OOM_STAGE_BUDGET
        ISTHMUS_OOM_STAGE_DEVICE_WAIT
        ISTHMUS_OOM_STAGE_CALLBACK
        ISTHMUS_OOM_STAGE_WAIT
    const char* isthmus_oom_stage_name(isthmus_oom_stage_t oom_stage)
    isthmus_status_t isthmus_resource_oom_stage(isthmus_resource_t* resource,
        isthmus_oom_stage_t oom_stage, uint64_t* tried, uint64_t* served)
    int isthmus_no_wait_swap(int no_wait)
    ctypedef struct isthmus_interrupt_t:
        int (*function)(void* object, const char** message) noexcept nogil
        void* object
    isthmus_interrupt_t isthmus_interrupt_swap(isthmus_interrupt_t interrupt)
    ctypedef struct isthmus_oom_request_t:
        size_t struct_size
        isthmus_device_t* device
        isthmus_kind_t kind
        uint64_t nbytes
    ctypedef uint64_t (*isthmus_oom_function_t)(void* object,
        const isthmus_oom_request_t* request) noexcept nogil
    isthmus_status_t isthmus_oom_callback_add(isthmus_oom_function_t function,
        isthmus_owner_t owner, isthmus_oom_callback_t** oom_callback)
    void isthmus_oom_callback_remove(isthmus_oom_callback_t* oom_callback, int wait)
    ctypedef struct isthmus_resource_operations_t:
        size_t struct_size
        isthmus_status_t (*allocate)(void* object, size_t nbytes, size_t alignment,
            isthmus_queue_t* queue, void** pointer, const char** message) noexcept nogil
        void (*deallocate)(void* object, void* pointer, size_t nbytes,
            isthmus_queue_t* queue) noexcept nogil
        void (*usage)(void* object, uint64_t* held_bytes, uint64_t* free_bytes) noexcept nogil
        uint64_t (*trim)(void* object, uint64_t keep_bytes) noexcept nogil
    isthmus_status_t isthmus_resource_custom(isthmus_context_t* context, isthmus_device_t* device,
        isthmus_kind_t kind, const isthmus_resource_operations_t* operations, isthmus_owner_t owner,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_statistics(isthmus_resource_t* upstream,
        isthmus_resource_t** resource)
    ctypedef struct isthmus_statistics_t:
        size_t struct_size
        uint64_t current_bytes
        uint64_t current_count
        uint64_t peak_bytes
        uint64_t peak_count
        uint64_t total_bytes
        uint64_t total_count
    isthmus_status_t isthmus_statistics_query(isthmus_resource_t* resource,
        isthmus_statistics_t* statistics)
    isthmus_status_t isthmus_statistics_reset(isthmus_resource_t* resource)
    isthmus_status_t isthmus_scope_create(isthmus_resource_t* resource, isthmus_scope_t* outer,
        isthmus_scope_t** scope)
    void isthmus_scope_retain(isthmus_scope_t* scope)
    void isthmus_scope_release(isthmus_scope_t* scope)
    isthmus_scope_t* isthmus_scope_swap(isthmus_scope_t* scope)
    isthmus_status_t isthmus_scope_query(isthmus_scope_t* scope, isthmus_statistics_t* statistics)
    isthmus_status_t isthmus_scope_query_net(isthmus_scope_t* scope,
        isthmus_statistics_t* statistics)
    isthmus_status_t isthmus_resource_limit(isthmus_resource_t* upstream, uint64_t limit_bytes,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_limit_query(isthmus_resource_t* resource, uint64_t* limit_bytes,
        uint64_t* in_use_bytes)
    isthmus_status_t isthmus_resource_fallback(isthmus_resource_t* first,
        isthmus_resource_t* second, isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_aligned(isthmus_resource_t* upstream, size_t alignment,
        size_t min_bytes, isthmus_resource_t** resource)
    ctypedef struct isthmus_bin_t:
        size_t max_bytes
        isthmus_resource_t* resource
    isthmus_status_t isthmus_resource_binning(isthmus_resource_t* upstream,
        const isthmus_bin_t* bins, size_t count, isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_log(isthmus_resource_t* upstream, const char* path,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_log_flush(isthmus_resource_t* resource)
    isthmus_status_t isthmus_resource_debug(isthmus_resource_t* upstream, uint64_t kept_bytes,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_verify(isthmus_resource_t* resource)
    ctypedef isthmus_status_t (*isthmus_failure_function_t)(void* object, size_t nbytes, int* retry,
        const char** message) noexcept nogil
    isthmus_status_t isthmus_resource_failure_callback(isthmus_resource_t* upstream,
        isthmus_failure_function_t function, isthmus_owner_t owner, isthmus_resource_t** resource)
    isthmus_status_t isthmus_tag_find(const char* name, const char** tag)
    const char* isthmus_tag_swap(const char* tag)
    ctypedef const char* (*isthmus_stack_function_t)(void* object) noexcept nogil
    enum:
        ISTHMUS_MAX_FRAMES
    isthmus_status_t isthmus_resource_tracking(isthmus_resource_t* upstream, uint32_t frames,
        isthmus_stack_function_t function, isthmus_owner_t owner, isthmus_resource_t** resource)
    ctypedef struct isthmus_tracked_t:
        size_t struct_size
        void* pointer
        size_t nbytes
        uintptr_t queue_key
        uint64_t order
        uint64_t thread
        const char* tag
        const char* stack
    ctypedef void (*isthmus_tracked_function_t)(void* object,
        const isthmus_tracked_t* block) noexcept nogil
    isthmus_status_t isthmus_allocation_tracker_visit(isthmus_resource_t* resource,
        isthmus_tracked_function_t function, void* object)
    isthmus_status_t isthmus_allocation_tracker_report(isthmus_resource_t* resource, char* text,
        size_t capacity, size_t* length)
    ctypedef void (*isthmus_tag_usage_function_t)(void* object, const char* tag,
        const isthmus_statistics_t* usage) noexcept nogil
    isthmus_status_t isthmus_allocation_tracker_usage(isthmus_resource_t* resource,
        isthmus_tag_usage_function_t function, void* object)
    isthmus_status_t isthmus_allocation_tracker_reset(isthmus_resource_t* resource)
    isthmus_status_t isthmus_resource_monotonic(isthmus_resource_t* upstream, size_t first_bytes,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_monotonic_release(isthmus_resource_t* resource)
    isthmus_status_t isthmus_resource_fixed_size(isthmus_resource_t* upstream, size_t block_bytes,
        size_t blocks, isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_arena(isthmus_resource_t* upstream, uint64_t limit_bytes,
        isthmus_resource_t** resource)
    isthmus_status_t isthmus_resource_prefetch(isthmus_resource_t* upstream,
        isthmus_resource_t** resource)
    void isthmus_live(isthmus_kind_t kind, uint64_t* count, uint64_t* bytes)
    ctypedef int32_t isthmus_memory_state_t
    enum:
        ISTHMUS_MEMORY_UNKNOWN
        ISTHMUS_MEMORY_LIVE
        ISTHMUS_MEMORY_WAITING
        ISTHMUS_MEMORY_FREE
    ctypedef struct isthmus_pointer_info_t:
        size_t struct_size
        isthmus_kind_t kind
        void* base
        size_t nbytes
        isthmus_device_t* device
        size_t requested_bytes
        uintptr_t queue_key
        isthmus_context_t* context
        isthmus_resource_t* resource
        isthmus_memory_state_t state
    isthmus_status_t isthmus_pointer_query(isthmus_context_t* context, const void* pointer,
        isthmus_pointer_info_t* info)
    isthmus_status_t isthmus_pointer_origin(const void* pointer, isthmus_context_t** context,
        isthmus_resource_t** resource)
    enum:
        ISTHMUS_TRACE_FREE
        ISTHMUS_TRACE_ALLOCATE
    ctypedef struct isthmus_trace_event_t:
        uint64_t nbytes
        uint32_t id
        uint16_t queue
        uint16_t action
    ctypedef struct isthmus_trace_sample_t:
        uint64_t held_bytes
        uint64_t ns
    ctypedef struct isthmus_replay_result_t:
        size_t struct_size
        uint64_t ns
        uint64_t peak_held_bytes
        uint64_t maps
        uint64_t unmaps
    isthmus_status_t isthmus_resource_replay(isthmus_resource_t* resource,
        isthmus_queue_t* const* queues, size_t queue_count, const isthmus_trace_event_t* events,
        size_t event_count, isthmus_trace_sample_t* samples, isthmus_replay_result_t* result)
    isthmus_status_t isthmus_buffer_create(size_t nbytes, isthmus_kind_t kind, int64_t alignment,
        isthmus_queue_t* queue, isthmus_resource_t* resource, isthmus_buffer_t** buffer)
    isthmus_status_t isthmus_buffer_adopt(void* pointer, size_t nbytes, isthmus_kind_t kind,
        int read_only, isthmus_queue_t* queue, isthmus_owner_t owner, isthmus_buffer_t** buffer)
    isthmus_status_t isthmus_buffer_slice(isthmus_buffer_t* base, size_t offset, size_t nbytes,
        isthmus_buffer_t** slice)
    isthmus_status_t isthmus_buffer_on_queue(isthmus_buffer_t* base, isthmus_queue_t* queue,
        isthmus_buffer_t** view)
    void isthmus_buffer_retain(isthmus_buffer_t* buffer)
    void isthmus_buffer_release(isthmus_buffer_t* buffer)
    void isthmus_buffer_free(isthmus_buffer_t* buffer)
    int isthmus_buffer_free_may_wait(isthmus_buffer_t* buffer)
    ctypedef struct isthmus_buffer_info_t:
        size_t struct_size
        void* pointer
        size_t nbytes
        size_t alignment
        isthmus_kind_t kind
        int read_only
        int is_slice
        isthmus_queue_t* queue
        size_t exports
    isthmus_status_t isthmus_buffer_info(const isthmus_buffer_t* buffer,
        isthmus_buffer_info_t* info)
    void* isthmus_buffer_pointer(const isthmus_buffer_t* buffer)
    isthmus_status_t isthmus_buffer_wait(isthmus_buffer_t* buffer, int64_t timeout_ns)
    isthmus_status_t isthmus_buffer_wait_for_writers(isthmus_buffer_t* buffer, int64_t timeout_ns)
    int isthmus_buffer_idle(const isthmus_buffer_t* buffer)
    enum:
        ISTHMUS_WATCHED
    size_t isthmus_buffer_watch(const isthmus_buffer_t* buffer, const unsigned char** flags,
        size_t capacity)
    isthmus_status_t isthmus_buffer_pending(isthmus_buffer_t* buffer, isthmus_event_t** event)
    isthmus_status_t isthmus_buffer_export(isthmus_buffer_t* buffer, void** pointer)
    isthmus_status_t isthmus_buffer_export_to_queue(isthmus_buffer_t* buffer,
        isthmus_queue_t* queue, void** pointer)
    void isthmus_buffer_unexport(isthmus_buffer_t* buffer)
    isthmus_status_t isthmus_buffer_disown(isthmus_buffer_t* buffer, void** pointer,
        isthmus_owner_t* owner)
    isthmus_status_t isthmus_buffer_record_event(isthmus_buffer_t* buffer, isthmus_event_t* event)
    isthmus_status_t isthmus_buffer_record_queue(isthmus_buffer_t* buffer, isthmus_queue_t* queue)
    ctypedef struct isthmus_ipc_handle_t:
        size_t struct_size
        unsigned char handle[64]
        uint64_t offset
        uint64_t nbytes
    isthmus_status_t isthmus_buffer_ipc_handle(isthmus_buffer_t* buffer,
        isthmus_ipc_handle_t* handle)
    isthmus_status_t isthmus_buffer_open_ipc(const isthmus_ipc_handle_t* handle,
        isthmus_queue_t* queue, isthmus_buffer_t** buffer)
    ctypedef struct isthmus_endpoint_t:
        isthmus_buffer_t* buffer
        void* pointer
        size_t offset
    ctypedef struct isthmus_operation_t:
        size_t struct_size
        isthmus_event_t* const* after
        size_t after_count
        const isthmus_owner_t* owners
        size_t owner_count
    isthmus_status_t isthmus_copy(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
        const isthmus_endpoint_t* source, size_t nbytes, const isthmus_operation_t* operation,
        isthmus_event_t** event)
    isthmus_status_t isthmus_copy_2d(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
        size_t destination_pitch, const isthmus_endpoint_t* source, size_t source_pitch,
        size_t width, size_t height, const isthmus_operation_t* operation, isthmus_event_t** event)
    ctypedef struct isthmus_range_t:
        size_t destination_offset
        size_t source_offset
        size_t nbytes
    isthmus_status_t isthmus_copy_ranges(isthmus_queue_t* queue,
        const isthmus_endpoint_t* destination, const isthmus_endpoint_t* source,
        const isthmus_range_t* ranges, size_t range_count, const isthmus_operation_t* operation,
        isthmus_event_t** event)
    isthmus_status_t isthmus_copy_nd(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
        const size_t* destination_strides, const isthmus_endpoint_t* source,
        const size_t* source_strides, const size_t* shape, size_t dimensions, size_t item_bytes,
        const isthmus_operation_t* operation, isthmus_event_t** event)
    isthmus_status_t isthmus_fill(isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
        const void* pattern, size_t pattern_bytes, size_t nbytes,
        const isthmus_operation_t* operation, isthmus_event_t** event)
    isthmus_status_t isthmus_prefetch(isthmus_queue_t* queue, const isthmus_endpoint_t* endpoint,
        size_t nbytes, int to_host, const isthmus_operation_t* operation, isthmus_event_t** event)
    isthmus_status_t isthmus_advise(isthmus_queue_t* queue, const isthmus_endpoint_t* endpoint,
        size_t nbytes, uint32_t advice, const isthmus_operation_t* operation,
        isthmus_event_t** event)
    isthmus_status_t isthmus_pin_add(isthmus_device_t* device, const void* pointer, size_t nbytes,
        int read_only, isthmus_owner_t owner, isthmus_pin_t** pin)
    ctypedef struct isthmus_pin_info_t:
        size_t struct_size
        const void* pointer
        size_t nbytes
        int is_registered
        isthmus_device_t* device
    isthmus_status_t isthmus_pin_info(isthmus_pin_t* pin, isthmus_pin_info_t* info)
    isthmus_status_t isthmus_pin_wait(isthmus_pin_t* pin, int64_t timeout_ns)
    void isthmus_pin_remove(isthmus_pin_t* pin, int wait)
    isthmus_status_t isthmus_result_allocate(size_t nbytes, void** pointer)
    void isthmus_result_free(void* pointer)
    void isthmus_stop_functions()
    ctypedef int32_t isthmus_dtype_t
    enum:
        ISTHMUS_BOOL
        ISTHMUS_INT8
        ISTHMUS_INT16
        ISTHMUS_INT32
        ISTHMUS_INT64
        ISTHMUS_UINT8
        ISTHMUS_UINT16
        ISTHMUS_UINT32
        ISTHMUS_UINT64
        ISTHMUS_FLOAT16
        ISTHMUS_BFLOAT16
        ISTHMUS_FLOAT32
        ISTHMUS_FLOAT64
        ISTHMUS_LONGDOUBLE
        ISTHMUS_COMPLEX64
        ISTHMUS_COMPLEX128
        ISTHMUS_CLONGDOUBLE
    ctypedef struct isthmus_dtype_info_t:
        size_t struct_size
        const char* name
        size_t nbytes
        size_t alignment
        char kind
        uint8_t dlpack_code
        uint8_t dlpack_bits
    isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype, isthmus_dtype_info_t* info)
    ctypedef int32_t isthmus_casting_t
    enum:
        ISTHMUS_CASTING_NO
        ISTHMUS_CASTING_SAFE
        ISTHMUS_CASTING_SAME_KIND
        ISTHMUS_CASTING_UNSAFE
    int isthmus_can_cast(isthmus_dtype_t source, isthmus_dtype_t target, isthmus_casting_t casting)
    ctypedef struct isthmus_array_t:
        isthmus_endpoint_t endpoint
        isthmus_dtype_t dtype
        size_t dimensions
        const int64_t* shape
        const int64_t* strides
    isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
        const isthmus_array_t* source, isthmus_casting_t casting,
        const isthmus_operation_t* operation, isthmus_event_t** event)
    isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue, const isthmus_array_t* destination,
        const void* value, isthmus_dtype_t value_dtype, isthmus_casting_t casting,
        const isthmus_operation_t* operation, isthmus_event_t** event)
    int isthmus_arrays_overlap(const isthmus_array_t* one, const isthmus_array_t* other)
    ctypedef int32_t isthmus_unified_state_t
    enum:
        ISTHMUS_UNIFIED_UNINITIALIZED
        ISTHMUS_UNIFIED_HOST_ONLY
        ISTHMUS_UNIFIED_DEVICE_ONLY
        ISTHMUS_UNIFIED_SYNCHRONIZED
        ISTHMUS_UNIFIED_HOST_DIRTY
        ISTHMUS_UNIFIED_DEVICE_DIRTY
    ctypedef int32_t isthmus_winner_t
    enum:
        ISTHMUS_WINNER_NONE
        ISTHMUS_WINNER_HOST
        ISTHMUS_WINNER_DEVICE
    ctypedef int32_t isthmus_tracking_t
    enum:
        ISTHMUS_TRACKING_DEFAULT
        ISTHMUS_TRACKING_PAGES
        ISTHMUS_TRACKING_BYTES
        ISTHMUS_TRACKING_HASHES
    ctypedef struct isthmus_unified_options_t:
        size_t struct_size
        int32_t pinned
        int32_t separate
        isthmus_winner_t on_conflict
        int32_t by_page
        isthmus_tracking_t tracking
        size_t element_bytes
        isthmus_resource_t* resource
    ctypedef struct isthmus_unified_info_t:
        size_t struct_size
        size_t nbytes
        isthmus_unified_state_t state
        isthmus_tracking_t tracking
        uint64_t granule
        int32_t pinned
        int32_t one_memory
        isthmus_queue_t* queue
        size_t host_views
        uint64_t bytes_to_device
        uint64_t bytes_to_host
        uint64_t copies
    ctypedef struct isthmus_byte_range_t:
        size_t begin
        size_t end
    isthmus_status_t isthmus_unified_create(size_t nbytes, isthmus_queue_t* queue,
        const isthmus_unified_options_t* options, isthmus_unified_t** unified)
    void isthmus_unified_retain(isthmus_unified_t* unified)
    void isthmus_unified_release(isthmus_unified_t* unified)
    void isthmus_unified_free(isthmus_unified_t* unified)
    isthmus_status_t isthmus_unified_info(isthmus_unified_t* unified, isthmus_unified_info_t* info)
    isthmus_status_t isthmus_unified_state(isthmus_unified_t* unified,
        isthmus_unified_state_t* state)
    isthmus_status_t isthmus_unified_dirty_ranges(isthmus_unified_t* unified, int of_device,
        isthmus_byte_range_t* ranges, size_t capacity, size_t* count)
    isthmus_status_t isthmus_unified_host(isthmus_unified_t* unified, size_t offset, size_t nbytes,
        void** pointer)
    void isthmus_unified_end_host(isthmus_unified_t* unified)
    isthmus_status_t isthmus_unified_read_host(isthmus_unified_t* unified, size_t offset,
        size_t nbytes, const void** pointer)
    isthmus_status_t isthmus_unified_begin_write(isthmus_unified_t* unified, size_t offset,
        size_t nbytes, int keep_contents, void** pointer)
    isthmus_status_t isthmus_unified_end_write(isthmus_unified_t* unified, size_t offset,
        size_t nbytes, int keep_contents)
    isthmus_status_t isthmus_unified_device(isthmus_unified_t* unified, isthmus_queue_t* queue,
        size_t offset, size_t nbytes, isthmus_buffer_t** device)
    isthmus_status_t isthmus_unified_begin_device_write(isthmus_unified_t* unified,
        isthmus_queue_t* queue, size_t offset, size_t nbytes, isthmus_buffer_t** device)
    isthmus_status_t isthmus_unified_to_device(isthmus_unified_t* unified, isthmus_queue_t* queue,
        size_t offset, size_t nbytes, isthmus_event_t** event)
    isthmus_status_t isthmus_unified_to_host(isthmus_unified_t* unified, isthmus_queue_t* queue,
        size_t offset, size_t nbytes, isthmus_event_t** event)
    ctypedef int32_t isthmus_arrival_t
    enum:
        ISTHMUS_ARRIVAL_BEGUN
        ISTHMUS_ARRIVAL_FETCH
        ISTHMUS_ARRIVAL_WORK
    isthmus_status_t isthmus_unified_arrival(isthmus_unified_t* unified, isthmus_queue_t* queue,
        size_t offset, size_t nbytes, isthmus_arrival_t mode, isthmus_event_t** event)
    isthmus_status_t isthmus_unified_synchronize(isthmus_unified_t* const* unified, size_t count,
        isthmus_queue_t* queue)
    isthmus_status_t isthmus_unified_mark_host(isthmus_unified_t* unified, size_t offset,
        size_t nbytes)
    isthmus_status_t isthmus_unified_mark_device(isthmus_unified_t* unified, size_t offset,
        size_t nbytes)
    isthmus_status_t isthmus_unified_resolve(isthmus_unified_t* unified, isthmus_winner_t winner,
        size_t offset, size_t nbytes)
    isthmus_status_t isthmus_unified_forget(isthmus_unified_t* unified)
    isthmus_status_t isthmus_tracking_query(isthmus_tracking_t* tracking, uint64_t* granule,
        const char** reason)
    isthmus_status_t isthmus_tracking_force(isthmus_tracking_t tracking)

# The handle inside of a Python object, borrowed: it lives as long as the object. TypeError for
# other objects.
cdef isthmus_device_t* device_handle(object device) except NULL
cdef isthmus_context_t* context_handle(object context) except NULL
cdef isthmus_queue_t* queue_handle(object queue) except NULL
cdef isthmus_event_t* event_handle(object event) except NULL
cdef isthmus_buffer_t* buffer_handle(object buffer) except NULL

# Raises the exception of a status with this thread's message: `if status: raise_error(status)`.
cdef int raise_error(isthmus_status_t status) except -1
