/* SPDX-License-Identifier: Apache-2.0 */
/* Isthmus: a memory management library for programs whose data live on a host and on its devices.
 *
 * This header is the contract of the shared library: C99, opaque handles, no types of any standard
 * library. `experimental.h` beside it declares the parts that may still change: simulated devices,
 * the allocation tracker, arrays, unified buffers and dirty tracking. `isthmus.hpp` is header-only
 * C++20 over both.
 *
 * Conventions that hold for every function unless its comment says otherwise:
 *  - A function that can fail returns `isthmus_status_t`; `ISTHMUS_OK` is 0. On failure the outputs
 *    are unchanged and nothing is half done. `isthmus_error_message()` then describes this thread's
 *    failure: the value, the limit and the remedy.
 *  - Handles are reference-counted. The caller owns a handle that a function returns through a
 *    `**` parameter, and releases it with the type's `release` function. Every other handle is
 *    borrowed: one in a structure that the library fills in lives as long as the object that was
 *    queried, one that is passed to a callback until the callback returns. `retain` makes a
 *    borrowed handle the caller's own. Strings are borrowed in the same way.
 *  - `retain` and `release` accept NULL and never fail. They do not block, except where
 *    isthmus_buffer_free_may_wait returns 1. They may be called from any thread, and in a forked
 *    child, where `release` does nothing.
 *  - `isthmus_X_info(object, info)` reports the properties of an object in an `isthmus_X_info_t`.
 *    The properties that inner loops need have functions of their own as well, which check nothing
 *    but NULL: isthmus_context_key, isthmus_queue_key, isthmus_buffer_pointer, isthmus_buffer_idle,
 *    isthmus_buffer_watch and isthmus_buffer_free_may_wait.
 *  - Every function is thread-safe, on the same handles too.
 *  - A structure that may grow begins with `struct_size`, which the caller sets to its `sizeof`.
 *  - Sizes, offsets and pitches are in bytes, times in nanoseconds.
 *  - Operations on one queue run in the order of their submission. An operation on a buffer also
 *    waits for earlier operations on that buffer that the library submitted to other queues. The
 *    caller declares its own driver work with `isthmus_buffer_record_*`.
 *  - The last parameter of an operation is `isthmus_event_t** event`. If it is NULL the call blocks
 *    until the operation has completed. Otherwise the call returns after the submission, and the
 *    event reports the completion.
 */
#ifndef ISTHMUS_ISTHMUS_H
#define ISTHMUS_ISTHMUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ISTHMUS_API __attribute__((visibility("default")))
#else
#define ISTHMUS_API
#endif

#ifdef __cplusplus
#define ISTHMUS_NOEXCEPT noexcept
extern "C" {
#else
#define ISTHMUS_NOEXCEPT
#endif

/* ---- version --------------------------------------------------------------------------------- */

#define ISTHMUS_VERSION_MAJOR 0
#define ISTHMUS_VERSION_MINOR 1
#define ISTHMUS_VERSION_PATCH 0
/* Version of the binary interface. It grows by one whenever functions are added. Within a major
 * version of the library nothing is removed and no layout changes. */
#define ISTHMUS_ABI_VERSION 1

/* "0.1.0": the version of the loaded library, which may be newer than this header. */
ISTHMUS_API const char* isthmus_version(void) ISTHMUS_NOEXCEPT;
ISTHMUS_API uint32_t isthmus_abi_version(void) ISTHMUS_NOEXCEPT;

/* ---- status and errors ----------------------------------------------------------------------- */

typedef int32_t isthmus_status_t;
enum {
  ISTHMUS_OK = 0,
  ISTHMUS_PENDING = 1,                 /* not an error: the event has not completed */
  ISTHMUS_ERROR_INVALID_ARGUMENT = -1, /* a value that the documentation does not allow */
  ISTHMUS_ERROR_OUT_OF_RANGE = -2,     /* an index, or bytes past either end of their memory */
  ISTHMUS_ERROR_OUT_OF_MEMORY = -3,    /* no memory of the requested kind is left */
  ISTHMUS_ERROR_UNSUPPORTED = -4, /* not supported by this driver or device; see its capabilities */
  ISTHMUS_ERROR_WRONG_CONTEXT = -5, /* objects of different contexts, or an unknown pointer */
  ISTHMUS_ERROR_NOT_FOUND = -6,     /* no object with that name, number or address */
  ISTHMUS_ERROR_CLOSED = -7,        /* a freed buffer or a closed queue */
  ISTHMUS_ERROR_READ_ONLY = -8,     /* a write to memory marked read-only */
  ISTHMUS_ERROR_DEVICE_LOST = -9,   /* the device and its memory were lost */
  ISTHMUS_ERROR_DRIVER = -10,       /* the driver failed; the message names the call and its code */
  ISTHMUS_ERROR_TIMEOUT = -11,      /* the timeout expired; the operation continues */
  ISTHMUS_ERROR_DEPENDENCY = -12,   /* a dependency failed, so the operation did not run */
  ISTHMUS_ERROR_ABANDONED = -13,    /* a host event was released before it was completed */
  ISTHMUS_ERROR_CALLBACK = -14,     /* a function passed to the library failed */
  ISTHMUS_ERROR_FORKED = -15,       /* a call that needs a driver, in a forked child */
  ISTHMUS_ERROR_INTERNAL = -16,     /* a bug in this library: please report it */
  ISTHMUS_ERROR_CONFLICT = -17,     /* host and device both wrote the same bytes */
  ISTHMUS_ERROR_DEADLOCK = -18      /* a function on a queue would wait for its own end */
};

/* Message of the last failure on this thread, or "" if there was none. Valid until the next failure
 * on this thread. */
ISTHMUS_API const char* isthmus_error_message(void) ISTHMUS_NOEXCEPT;
/* "out of memory" for ISTHMUS_ERROR_OUT_OF_MEMORY, and so on; "unknown status" for other numbers.
 */
ISTHMUS_API const char* isthmus_status_name(isthmus_status_t status) ISTHMUS_NOEXCEPT;

/* ---- object types ---------------------------------------------------------------------------- */

typedef struct isthmus_platform_t isthmus_platform_t; /* one vendor's driver, or the host */
typedef struct isthmus_device_t isthmus_device_t;
typedef struct isthmus_context_t isthmus_context_t; /* USM belongs to a context */
typedef struct isthmus_queue_t isthmus_queue_t;     /* in order */
typedef struct isthmus_event_t isthmus_event_t;
typedef struct isthmus_resource_t isthmus_resource_t; /* allocates memory of one kind */
typedef struct isthmus_using_t isthmus_using_t;       /* a block with a current resource */
typedef struct isthmus_scope_t isthmus_scope_t;       /* counts allocations made within it */
typedef struct isthmus_budget_t isthmus_budget_t;     /* a limit shared by several pools */
typedef struct isthmus_buffer_t isthmus_buffer_t;
typedef struct isthmus_oom_callback_t
    isthmus_oom_callback_t;                 /* a callback for out-of-memory conditions */
typedef struct isthmus_pin_t isthmus_pin_t; /* pinned memory of the caller */

/* USM kinds; the numbers are those of dpctl. */
typedef int32_t isthmus_kind_t;
enum {
  ISTHMUS_KIND_UNKNOWN = 0, /* not USM known to the library, for example plain host memory */
  ISTHMUS_KIND_DEVICE = 1,
  ISTHMUS_KIND_SHARED = 2,
  ISTHMUS_KIND_HOST = 3
};

/* Keeps an object of the caller alive. The library calls `release(object)` exactly once, on any
 * thread, as soon as it no longer needs the object, and also when the call that took it fails.
 * `release` may release buffers and events of this library. It must call no other function of the
 * library and must not throw. A NULL `release` does nothing. */
typedef struct isthmus_owner_s {
  void* object;
  void (*release)(void* object);
} isthmus_owner_t;

/* ---- platforms and devices ------------------------------------------------------------------- */

/* Sets the path of the library file to open for "cuda", "opencl" or "sycl"; "" selects the standard
 * file. Separate several OpenCL libraries by ':'. Call it before devices are first queried, since a
 * driver is opened once. The environment variables ISTHMUS_CUDA_LIBRARY, ISTHMUS_OPENCL_LIBRARY and
 * ISTHMUS_SYCL_LIBRARY take precedence, except in programs that run with more privileges than their
 * caller. INVALID_ARGUMENT for another backend. */
ISTHMUS_API isthmus_status_t isthmus_driver_library(const char* backend,
                                                    const char* path) ISTHMUS_NOEXCEPT;

typedef struct isthmus_platform_info_s {
  size_t struct_size;
  const char* backend; /* "host", "sim", "cuda", "opencl", "sycl" */
  const char* name;
  const char* vendor;
  const char* version;
  const char* library; /* the driver's file as it was opened, or "" */
  size_t device_count;
} isthmus_platform_info_t;

typedef int32_t isthmus_device_type_t;
enum { ISTHMUS_DEVICE_CPU = 1, ISTHMUS_DEVICE_GPU = 2, ISTHMUS_DEVICE_ACCELERATOR = 3 };

/* Capabilities of a device. */
enum {
  ISTHMUS_CAN_DEVICE_KIND = 1 << 0,
  ISTHMUS_CAN_SHARED_KIND = 1 << 1,
  ISTHMUS_CAN_HOST_KIND = 1 << 2,
  ISTHMUS_CAN_USM = 1 << 3,           /* kinds are true USM; otherwise they are emulated with SVM */
  ISTHMUS_CAN_WAIT_FOR_HOST = 1 << 4, /* its queues can wait for host events */
  ISTHMUS_CAN_PREFETCH = 1 << 5,
  ISTHMUS_CAN_ADVISE = 1 << 6,
  ISTHMUS_CAN_PROFILE = 1 << 7, /* events record their times */
  ISTHMUS_CAN_QUERY_FREE_MEMORY = 1 << 8,
  ISTHMUS_CAN_RUN_FUNCTIONS = 1 << 9, /* functions submitted to a queue may access device memory */
  ISTHMUS_CAN_EXPORT_HANDLES = 1 << 10, /* contexts and queues have native handles */
  ISTHMUS_CAN_REMAP = 1 << 11,          /* memory can move between addresses; pools use this */
  ISTHMUS_CAN_WRITE_COMBINE = 1 << 12,  /* supports isthmus_resource_write_combined */
  ISTHMUS_CAN_IPC = 1 << 13             /* device memory can be shared with other processes */
};

typedef struct isthmus_device_info_s {
  size_t struct_size;
  const char* backend;
  const char* filter; /* "opencl:cpu:0": identifies this device */
  const char* name;
  const char* vendor;
  const char* driver_version;
  isthmus_device_type_t type;
  uint32_t compute_units;
  uint32_t copy_engines;
  uint64_t capabilities; /* ISTHMUS_CAN_* */
  uint64_t memory_bytes;
  uint64_t max_allocation_bytes;
  size_t base_alignment; /* of an allocation without an alignment */
  size_t max_alignment;
  const char* limitations; /* missing features and their substitutes, or "" */
  isthmus_platform_t* platform;
  /* The driver's handle (OpenCL: cl_device_id; SYCL: a DPCTLSyclDeviceRef), or NULL where it has
   * none. A CUDA device has a number instead, which is the last part of the filter. */
  void* native;
} isthmus_device_info_t;

/* The number of platforms found, and the platform at an index (OUT_OF_RANGE). The first call of
 * either opens every driver. */
ISTHMUS_API isthmus_status_t isthmus_platform_count(size_t* count) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_platform_get(size_t index,
                                                  isthmus_platform_t** platform) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_platform_retain(isthmus_platform_t* platform) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_platform_release(isthmus_platform_t* platform) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_platform_info(const isthmus_platform_t* platform,
                                                   isthmus_platform_info_t* info) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_platform_device(isthmus_platform_t* platform, size_t index,
                                                     isthmus_device_t** device) ISTHMUS_NOEXCEPT;

/* Drivers that are absent or unusable, with the reason. OUT_OF_RANGE for an unknown index. */
ISTHMUS_API isthmus_status_t isthmus_absent_driver_count(size_t* count) ISTHMUS_NOEXCEPT;
typedef struct isthmus_absent_driver_info_s {
  size_t struct_size;
  const char* backend; /* the strings are never freed */
  const char* reason;
} isthmus_absent_driver_info_t;
ISTHMUS_API isthmus_status_t
isthmus_absent_driver_info(size_t index, isthmus_absent_driver_info_t* info) ISTHMUS_NOEXCEPT;

/* Finds a device by filter: up to three of backend ("host", "sim", "cuda", "opencl", "sycl"), type
 * ("cpu", "gpu", "accelerator") and number, in that order, joined by ':', as in SYCL's filter
 * selector: "gpu", "opencl:cpu:0", "cuda:1". NULL or "" selects the default: the device that the
 * environment variable ISTHMUS_DEVICE names, otherwise the best device with USM (GPUs, then
 * accelerators, then CPU drivers, then the host). Simulated devices are found by name only. Opens
 * only the drivers that the filter allows. The message of NOT_FOUND lists the devices found. */
ISTHMUS_API isthmus_status_t isthmus_device_find(const char* filter,
                                                 isthmus_device_t** device) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_device_retain(isthmus_device_t* device) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_device_release(isthmus_device_t* device) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_device_info(const isthmus_device_t* device,
                                                 isthmus_device_info_t* info) ISTHMUS_NOEXCEPT;
typedef struct isthmus_device_memory_info_s {
  size_t struct_size;
  uint64_t free_bytes;
  uint64_t total_bytes;
} isthmus_device_memory_info_t;
/* The memory of a device, as the driver reports it now. UNSUPPORTED where it does not. */
ISTHMUS_API isthmus_status_t isthmus_device_memory_info(
    const isthmus_device_t* device, isthmus_device_memory_info_t* info) ISTHMUS_NOEXCEPT;
/* Finds the device of a backend by the driver's handle (SYCL: a DPCTLSyclDeviceRef of any object
 * for the same device). INVALID_ARGUMENT for an unknown backend. NOT_FOUND for a device that is not
 * listed, and for backends whose devices have no handles. Precondition: `native` is a live handle
 * of that driver. */
ISTHMUS_API isthmus_status_t isthmus_device_find_native(const char* backend, void* native,
                                                        isthmus_device_t** device) ISTHMUS_NOEXCEPT;

/* ---- contexts -------------------------------------------------------------------------------- */

/* Creates a context of `count` devices of one platform. */
ISTHMUS_API isthmus_status_t isthmus_context_create(isthmus_device_t* const* devices, size_t count,
                                                    isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* The default context of the device's platform, shared by its devices. Every call returns the same
 * context. */
ISTHMUS_API isthmus_status_t isthmus_context_default(isthmus_device_t* device,
                                                     isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* Adopts a driver's context of `device`'s platform (OpenCL: cl_context; SYCL: sycl::context, as
 * dpctl's reference; CUDA: the primary CUcontext of `device`, which returns the default context).
 * `owner` keeps the driver's context alive; without an owner the driver's reference count does. */
ISTHMUS_API isthmus_status_t isthmus_context_adopt(isthmus_device_t* device, void* native,
                                                   isthmus_owner_t owner,
                                                   isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* One driver context in two backends: returns `other`, a SYCL context on OpenCL, as a context of
 * `device`, an OpenCL device. SYCL memory can then be adopted as OpenCL memory
 * (isthmus_buffer_adopt). UNSUPPORTED for other backends, and where this version of the SYCL
 * library does not expose native handles. WRONG_CONTEXT if `device` is not a device of `other`. */
ISTHMUS_API isthmus_status_t isthmus_context_share(isthmus_context_t* other,
                                                   isthmus_device_t* device,
                                                   isthmus_context_t** context) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_context_retain(isthmus_context_t* context) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_context_release(isthmus_context_t* context) ISTHMUS_NOEXCEPT;
typedef struct isthmus_context_info_s {
  size_t struct_size;
  size_t device_count;
  uintptr_t key; /* two handles of the same driver context have the same key */
  void* native;  /* the driver's handle, or NULL where it has none */
} isthmus_context_info_t;
ISTHMUS_API isthmus_status_t isthmus_context_info(const isthmus_context_t* context,
                                                  isthmus_context_info_t* info) ISTHMUS_NOEXCEPT;
/* The key alone, for inner loops. 0 for NULL. */
ISTHMUS_API uintptr_t isthmus_context_key(const isthmus_context_t* context) ISTHMUS_NOEXCEPT;
/* The device at an index. OUT_OF_RANGE. */
ISTHMUS_API isthmus_status_t isthmus_context_device(const isthmus_context_t* context, size_t index,
                                                    isthmus_device_t** device) ISTHMUS_NOEXCEPT;

/* ---- queues ---------------------------------------------------------------------------------- */

/* Creates a queue of `device`. `context` NULL: the default context of `device`. */
ISTHMUS_API isthmus_status_t isthmus_queue_create(isthmus_context_t* context,
                                                  isthmus_device_t* device,
                                                  isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
/* The default queue of a device on its default context, created on first use; `device` NULL: the
 * default device. Cheap: the device is selected once. */
ISTHMUS_API isthmus_status_t isthmus_queue_default(isthmus_device_t* device,
                                                   isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
/* Adopts a driver's queue of `device`'s platform (OpenCL: cl_command_queue; SYCL: sycl::queue, as
 * dpctl's reference; CUDA: CUstream). WRONG_CONTEXT for a queue of another device.
 *
 * Out-of-order queues: every operation of this library is preceded by a barrier. On an out-of-order
 * queue of a CPU the library queries whether freed memory is still in use only within a call: a
 * wait for a queue, a trim, isthmus_live_info, a query of a resource, or, once 64 MiB or 64 blocks
 * of such memory are pending, an allocation or adoption. Intel's OpenCL runtime fails if one thread
 * waits for such a queue while another submits to it.
 *
 * Adopting a SYCL queue again returns the same queue. Ownership is as in isthmus_context_adopt,
 * except that CUDA has no reference counts: the owner keeps a stream alive. Without an owner the
 * stream must outlive the queue and all memory used on it. For a stream that the library created,
 * the call returns the queue of that stream; CLOSED if that queue no longer exists.
 *
 * CU_STREAM_PER_THREAD returns the calling thread's queue for that stream. It needs no owner:
 * `owner` is released at once. The queue may be used on any thread, also after its own thread has
 * ended: operations that other threads submit to it are executed on the legacy default stream,
 * which has the same order. CLOSED on a thread that is ending. INVALID_ARGUMENT for a NULL
 * `native`: pass CU_STREAM_LEGACY for CUDA's default stream. */
ISTHMUS_API isthmus_status_t isthmus_queue_adopt(isthmus_device_t* device, void* native,
                                                 isthmus_owner_t owner,
                                                 isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_queue_retain(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_queue_release(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
typedef struct isthmus_queue_info_s {
  size_t struct_size;
  isthmus_device_t* device;
  isthmus_context_t* context;
  uintptr_t key; /* two handles of the same driver queue have the same key */
} isthmus_queue_info_t;
ISTHMUS_API isthmus_status_t isthmus_queue_info(const isthmus_queue_t* queue,
                                                isthmus_queue_info_t* info) ISTHMUS_NOEXCEPT;
/* The key alone, for inner loops. 0 for NULL. */
ISTHMUS_API uintptr_t isthmus_queue_key(const isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Exports the driver's handle, to which the caller may submit work of its own. From then on the
 * queue may have external work: memory freed on it is reused only after a fence. `native` receives
 * NULL where the driver has no handle. The error of the driver if it cannot order external work
 * after the operations that precede it. */
ISTHMUS_API isthmus_status_t isthmus_queue_export_native(isthmus_queue_t* queue,
                                                         void** native) ISTHMUS_NOEXCEPT;
/* 1 if nothing that the library submitted is pending, else 0. */
ISTHMUS_API int isthmus_queue_idle(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Waits for everything submitted so far. TIMEOUT after `timeout_ns`; a negative value waits
 * indefinitely. */
ISTHMUS_API isthmus_status_t isthmus_queue_wait(isthmus_queue_t* queue,
                                                int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* An event that completes, with success, once everything submitted so far has ended. Works on a
 * closed queue too. Submits nothing unless the handle of the queue was exported. */
ISTHMUS_API isthmus_status_t isthmus_queue_pending(isthmus_queue_t* queue,
                                                   isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event that completes once everything submitted so far, and all of `after`, has completed. */
ISTHMUS_API isthmus_status_t isthmus_queue_fence(isthmus_queue_t* queue,
                                                 isthmus_event_t* const* after, size_t after_count,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event that completes once everything submitted so far has completed, and that records its time
 * for isthmus_event_elapsed. */
ISTHMUS_API isthmus_status_t isthmus_queue_mark(isthmus_queue_t* queue,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Rejects further work with CLOSED; submitted work still runs. Never blocks. INVALID_ARGUMENT for a
 * device's default queue. */
ISTHMUS_API isthmus_status_t isthmus_queue_close(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* The bytes of one buffer, as passed to a function submitted to a queue. `data` may be accessed
 * until the function returns. */
typedef struct isthmus_view_s {
  void* data;
  size_t nbytes;
} isthmus_view_t;
/* Returns ISTHMUS_OK, or an error with a message, which is copied from `message` (may be NULL).
 * TIMEOUT and numbers that are not errors count as CALLBACK. */
typedef isthmus_status_t (*isthmus_function_t)(void* object, const isthmus_view_t* views,
                                               size_t view_count, const char** message);
/* Runs `function(owner.object, ...)` in queue order on a thread of the library, with views of the
 * buffers. `owner.release` is called afterwards, or at once on failure. Buffers of device kind need
 * ISTHMUS_CAN_RUN_FUNCTIONS.
 *
 * The function may use the library. A call in it that would wait, without a timeout, for work that
 * starts only after the function has returned fails with DEADLOCK: later work on the same queue,
 * work that depends on that or on the function, and functions that wait for this one. The library
 * does not detect waits for another thread, for a host event, for a pin, for work that others
 * submitted to the driver's queue, or through another handle that was adopted for the same queue of
 * the driver. Such waits may deadlock.
 *
 * If the function fails and the last reference to its event is released before isthmus_event_wait
 * or isthmus_event_status returned the failure, the failure is printed to stderr. */
ISTHMUS_API isthmus_status_t isthmus_queue_submit(
    isthmus_queue_t* queue, isthmus_function_t function, isthmus_owner_t owner,
    isthmus_buffer_t* const* buffers, size_t buffer_count, isthmus_event_t* const* after,
    size_t after_count, isthmus_event_t** event) ISTHMUS_NOEXCEPT;

/* ---- events ---------------------------------------------------------------------------------- */

ISTHMUS_API void isthmus_event_retain(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* A pending host event whose last reference is released completes with ABANDONED, so that no queue
 * waits for it indefinitely. */
ISTHMUS_API void isthmus_event_release(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* ISTHMUS_PENDING, ISTHMUS_OK, or the error of the operation. Does not block. */
ISTHMUS_API isthmus_status_t isthmus_event_status(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* Waits for completion and returns the operation's status. TIMEOUT after `timeout_ns` (negative
 * waits indefinitely, 0 polls). DEADLOCK without waiting as in isthmus_queue_submit. */
ISTHMUS_API isthmus_status_t isthmus_event_wait(isthmus_event_t* event,
                                                int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* Declares that the caller reports a failure of the event itself, so that the library does not
 * print it. For language bindings. NULL does nothing. */
ISTHMUS_API void isthmus_event_mark_reported(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* Writes 8 bytes (the number 1) to a duplicate of the descriptor `fd`, an eventfd for example, when
 * the event completes, or at once if it has. This is for event loops. Never blocks and raises no
 * SIGPIPE; if a pipe is full, nothing is written. */
ISTHMUS_API isthmus_status_t isthmus_event_notify(isthmus_event_t* event, int fd) ISTHMUS_NOEXCEPT;
/* Calls `owner.release(owner.object)` on completion, or at once if the event is complete. Here
 * `release` may call any function of the library. It is called on a thread of the library, or by
 * the call that completes a host event, after other operations that wait for that event were
 * started. If no thread can be started, the thread that completes the event calls it, and it may
 * then only release buffers and events. */
ISTHMUS_API isthmus_status_t isthmus_event_then(isthmus_event_t* event,
                                                isthmus_owner_t owner) ISTHMUS_NOEXCEPT;
/* Adopts a driver's event (SYCL: sycl::event, as dpctl's reference). It completes when the driver
 * reports its completion. Ownership as in isthmus_context_adopt. INVALID_ARGUMENT for NULL;
 * UNSUPPORTED for other drivers; DRIVER if the driver fails. */
ISTHMUS_API isthmus_status_t isthmus_event_adopt(isthmus_context_t* context, void* native,
                                                 isthmus_owner_t owner,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Creates a host event, which the program completes. */
ISTHMUS_API isthmus_status_t isthmus_event_create(isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Completes a host event. `status` is OK or an error other than TIMEOUT; `message` may be NULL.
 * INVALID_ARGUMENT for a driver's event or one that is complete. */
ISTHMUS_API isthmus_status_t isthmus_event_complete(isthmus_event_t* event, isthmus_status_t status,
                                                    const char* message) ISTHMUS_NOEXCEPT;
typedef struct isthmus_event_times_info_s {
  size_t struct_size;
  uint64_t submitted_ns; /* on the clock of the device */
  uint64_t started_ns;
  uint64_t ended_ns;
} isthmus_event_times_info_t;
/* The times of a completed operation. UNSUPPORTED where the driver does not record them, PENDING
 * before completion. */
ISTHMUS_API isthmus_status_t
isthmus_event_times_info(isthmus_event_t* event, isthmus_event_times_info_t* info) ISTHMUS_NOEXCEPT;
/* Nanoseconds from the end of `earlier` to the end of `event`, on their device clock; negative if
 * `event` ended first. PENDING until both have completed. The events are marks of queues of one
 * device (isthmus_queue_mark) or other events that record their times. UNSUPPORTED where the driver
 * records no times, and for host events. INVALID_ARGUMENT for events of two devices and for failed
 * ones. */
ISTHMUS_API isthmus_status_t isthmus_event_elapsed(isthmus_event_t* event, isthmus_event_t* earlier,
                                                   int64_t* elapsed_ns) ISTHMUS_NOEXCEPT;
typedef struct isthmus_event_info_s {
  size_t struct_size;
  const char* backend; /* such as "cuda"; "host" for a host event; never freed */
  /* The driver's event (OpenCL: cl_event; SYCL: sycl::event; CUDA: CUevent), or NULL where it has
   * none. */
  void* native;
} isthmus_event_info_t;
ISTHMUS_API isthmus_status_t isthmus_event_info(isthmus_event_t* event,
                                                isthmus_event_info_t* info) ISTHMUS_NOEXCEPT;

/* ---- memory resources ------------------------------------------------------------------------ */

/* The driver's allocator for one kind on one context and device. `context` NULL: the default
 * context of `device`; `device` NULL: the first of `context`; INVALID_ARGUMENT if both are NULL.
 * The other functions that create resources take the two in the same way. isthmus_queue_info
 * reports those of a queue. */
ISTHMUS_API isthmus_status_t
isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device, isthmus_kind_t kind,
                          isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The provider of write-combined memory of host kind. Such memory bypasses the host caches: devices
 * read it without snooping them, and the host writes it at full speed, sequentially and in whole
 * cache lines. Host reads take about a hundred times as long, and so do scattered writes of single
 * bytes. Use it for data that the host writes once and devices read. UNSUPPORTED without
 * ISTHMUS_CAN_WRITE_COMBINE. For a pool of it use isthmus_resource_pool_over. */
ISTHMUS_API isthmus_status_t
isthmus_resource_write_combined(isthmus_context_t* context, isthmus_device_t* device,
                                isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Parses a size: "4096", "64MiB", "1.5 GB", or "80%", a share of the total memory of `kind` on
 * `device`; that of kinds that reside on the host is what the control groups leave to this process.
 * kB to TB are powers of 1000, KiB to TiB of 1024; their letters may have either case. For other
 * text, also the ambiguous "64M": INVALID_ARGUMENT, and a message with both spellings. Only a share
 * needs a `device`, which may be NULL, and a `kind`. */
ISTHMUS_API isthmus_status_t isthmus_bytes_parse(const char* text, isthmus_device_t* device,
                                                 isthmus_kind_t kind,
                                                 uint64_t* bytes) ISTHMUS_NOEXCEPT;

/* A budget limits how much driver memory several pools, of any kinds and devices, hold together, in
 * use and free. A pool that would exceed it first releases its own free memory, then makes the
 * other pools release their free memory, and then fails with OUT_OF_MEMORY; the message lists what
 * each pool holds. Small and recent blocks in the caches of other threads do not count as free.
 * Thread-safe. A pool waits for another one only while the other one grows or is trimmed.
 * INVALID_ARGUMENT for 0 bytes. */
ISTHMUS_API isthmus_status_t isthmus_budget_create(uint64_t limit_bytes,
                                                   isthmus_budget_t** budget) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_budget_retain(isthmus_budget_t* budget) ISTHMUS_NOEXCEPT;
/* Pools that share the budget keep it alive. */
ISTHMUS_API void isthmus_budget_release(isthmus_budget_t* budget) ISTHMUS_NOEXCEPT;
typedef struct isthmus_budget_info_s {
  size_t struct_size;
  uint64_t limit_bytes;
  uint64_t held_bytes;      /* by its pools, and by live blocks of destroyed pools */
  uint64_t free_bytes;      /* of these, not in use and in no cache */
  uint64_t peak_held_bytes; /* so far */
  uint64_t pools;           /* alive */
  uint64_t refusals;        /* requests that did not fit at once */
  uint64_t released_bytes;  /* released so far by pools for requests of other pools */
} isthmus_budget_info_t;
ISTHMUS_API isthmus_status_t isthmus_budget_info(isthmus_budget_t* budget,
                                                 isthmus_budget_info_t* info) ISTHMUS_NOEXCEPT;

/* A pool caches freed memory: an allocation and its deallocation take about 10 ns, however long the
 * driver takes. Requests up to 256 KiB are rounded up to a size class (by at most 1/8), larger ones
 * to a multiple of 64 KiB. Memory freed on a queue is reused at once on that queue, and elsewhere
 * when the work before the free has completed. With ISTHMUS_CAN_REMAP, free memory is moved to
 * serve larger requests. Thread-safe. */
enum {
  ISTHMUS_POOL_UNCHECKED = 1u << 0, /* does not detect misuse of small blocks; saves about 3 ns */
  ISTHMUS_POOL_NO_REMAP = 1u << 1,  /* its memory never moves */
  /* If nothing else is free, a request takes memory that work on other queues still uses, and its
   * queue waits for that work on the device. */
  ISTHMUS_POOL_DEVICE_WAIT = 1u << 2
};
typedef struct isthmus_pool_options_s {
  size_t struct_size;
  uint64_t initial_bytes; /* obtained from the driver at once; 0: none */
  /* Minimum request to the driver; 0: 32 MiB or, if memory can move, 1/128 of the held bytes, from
   * 2 MiB to 32 MiB. */
  uint64_t growth_bytes;
  uint64_t limit_bytes; /* maximum of held bytes; 0: no limit */
  uint32_t flags;
  /* Above this size the pool releases all free memory before it grows, and then grows by no more
   * than it needs; 0: none. At most `limit_bytes`. */
  uint64_t soft_limit_bytes;
  isthmus_budget_t* budget; /* shared with other pools, which keep it alive; NULL: none */
  /* Free memory that was not used for this time is returned to the driver: within twice this time,
   * by a growth or trim of the pool, or on an idle thread of the library if there is one. Small and
   * recent blocks remain in thread caches while their threads are active. 0: never. */
  uint64_t decay_ns;
  /* Maximum wait of a request for memory that pending work still uses, before it fails; 0: 1 s,
   * negative: no wait; at most a year, since an unbounded wait may deadlock. */
  int64_t wait_ns;
} isthmus_pool_options_t;
/* `options` NULL: the defaults. The fields after `flags` may be omitted, with a smaller
 * `struct_size`. When the last reference is released the pool returns its memory to the driver,
 * after the work on it has completed. Blocks that are still allocated then remain valid and are
 * never returned. OUT_OF_MEMORY if the driver cannot provide `initial_bytes`. */
ISTHMUS_API isthmus_status_t isthmus_resource_pool(isthmus_context_t* context,
                                                   isthmus_device_t* device, isthmus_kind_t kind,
                                                   const isthmus_pool_options_t* options,
                                                   isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* A pool over another resource instead of the driver, of the same context, device and kind; the
 * pool keeps it alive. The pool requests at least `growth_bytes` at a time, aligned to 64 KiB; if
 * the device cannot align to that, it requests 64 KiB more instead. It requests on a separate queue
 * without work, and deallocates exactly these blocks. It calls upstream where it would call the
 * driver: without a lock, so from several threads at once, and never from a free. OUT_OF_MEMORY of
 * upstream starts the out-of-memory stages, whose trim also trims upstream; any other error fails
 * the request. Such memory does not move (ISTHMUS_POOL_NO_REMAP). UNSUPPORTED for an upstream that
 * is built on a pool, that provides memory of several kinds, or that is monotonic. Upstream memory
 * that a pool already holds is rejected with CALLBACK. */
ISTHMUS_API isthmus_status_t
isthmus_resource_pool_over(isthmus_resource_t* upstream, const isthmus_pool_options_t* options,
                           isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The default pool, which serves requests without a resource unless another resource is current
 * (isthmus_current_resource). There is one for each kind of memory of a device in a context, for
 * all languages. `queue` NULL: the default queue. A pool is created on first use, with the default
 * options except `decay_ns`, which is 10 s: memory that was not used for that long is returned to
 * the driver. The pool lives while it is referenced or its memory is in use.
 * ISTHMUS_DEFAULT_POOL_OF_ARRAYS selects the pool of arrays, the default of C++ and Python, instead
 * of that of buffers. The two are the same pool except on devices with ISTHMUS_CAN_IPC whose memory
 * can move (CUDA). There buffers are allocated from a pool with ISTHMUS_POOL_NO_REMAP, so that
 * isthmus_buffer_ipc_handle and other libraries can share their memory with other processes.
 * UNSUPPORTED for a kind that the device lacks. Takes about 10 ns. */
enum {
  ISTHMUS_DEFAULT_POOL_OF_ARRAYS = 1u << 0,
  ISTHMUS_NO_DEFAULT_POOL = 1u << 1 /* for isthmus_current_resource */
};
ISTHMUS_API isthmus_status_t isthmus_default_pool(isthmus_queue_t* queue, isthmus_kind_t kind,
                                                  uint32_t flags,
                                                  isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Makes all default pools return their free memory to the drivers. `bytes` (may be NULL) receives
 * the number of bytes returned. */
ISTHMUS_API isthmus_status_t isthmus_default_pools_trim(uint64_t* bytes) ISTHMUS_NOEXCEPT;

/* The current resource serves requests that name no resource: buffers, unified buffers, and the
 * arrays of C++ and Python. It is the first of these:
 *  - the resource of the innermost `using` block of the calling thread that decides about the
 *    request (isthmus_using_create),
 *  - the resource that was set for the process (isthmus_current_resource_set),
 *  - the default pool.
 * A resource serves requests of its kind in its context on its device; of host kind, those on any
 * device of the context. A unified buffer keeps the resource that was current when it was created.
 * While a resource calls a function of the program (a custom resource, a failure callback, an
 * out-of-memory callback), the thread has no current resource, except in blocks that the function
 * enters: otherwise the resource could request memory from itself.
 *
 * Returns the resource that is current for `kind` on `queue` (NULL: the default queue). `flags` as
 * for isthmus_default_pool; with ISTHMUS_NO_DEFAULT_POOL, `resource` receives NULL instead of the
 * default pool. Takes about as long as isthmus_default_pool. UNSUPPORTED as there. */
ISTHMUS_API isthmus_status_t isthmus_current_resource(isthmus_queue_t* queue, isthmus_kind_t kind,
                                                      uint32_t flags, isthmus_resource_t** resource)
    ISTHMUS_NOEXCEPT;
/* Makes `resource` the current one of the process for its kind, context and device, in place of the
 * previous one, for requests from now on. The library holds a reference to it, and thereby to its
 * context, until it is replaced or reset, and does not release it when the process exits. NULL
 * restores the default pools of every kind, context and device. */
ISTHMUS_API isthmus_status_t isthmus_current_resource_set(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;
/* Restores the default pool of the process for one kind in the context of `queue` (NULL: the
 * default queue) on its device. Does nothing if no resource was set. UNSUPPORTED for a kind that
 * the device lacks. */
ISTHMUS_API isthmus_status_t isthmus_current_resource_reset(isthmus_queue_t* queue,
                                                            isthmus_kind_t kind) ISTHMUS_NOEXCEPT;
/* The address of a counter that is 0 while the default pools serve all requests of the process: no
 * resource is set and no `using` block exists. For language bindings, which load it, atomically,
 * before they call isthmus_current_resource in an inner loop. */
ISTHMUS_API const uint32_t* isthmus_current_resource_watch(void) ISTHMUS_NOEXCEPT;

/* Creates a `using` block inside the calling thread's block, which it keeps alive, as it does
 * `resource`. In the block, `resource` is current for the requests that it serves; other requests
 * are served as outside of the block. NULL `resource`: the default pools serve all requests. */
ISTHMUS_API isthmus_status_t isthmus_using_create(isthmus_resource_t* resource,
                                                  isthmus_using_t** block) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_using_retain(isthmus_using_t* block) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_using_release(isthmus_using_t* block) ISTHMUS_NOEXCEPT;
/* Puts the calling thread into `block` (NULL: none). The caller keeps the block alive until the
 * thread has left it. Returns the previous block, NULL for none, which the caller restores to leave
 * `block`. Several threads may be in one block. Takes a few nanoseconds: coroutine runtimes may
 * call it at each switch. */
ISTHMUS_API isthmus_using_t* isthmus_using_swap(isthmus_using_t* block) ISTHMUS_NOEXCEPT;

ISTHMUS_API void isthmus_resource_retain(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_resource_release(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;
/* Allocates `nbytes`, ordered by `queue`, a queue of the resource's context. `alignment` is 0 or a
 * power of two. A request of 0 bytes returns NULL. */
ISTHMUS_API isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
                                                       size_t alignment, isthmus_queue_t* queue,
                                                       void** pointer) ISTHMUS_NOEXCEPT;
/* Frees memory of isthmus_resource_allocate after the work on `queue`. With a NULL `queue` the
 * caller guarantees two things: only uses known to the library still access the memory, and the
 * work that was pending on the allocation's queue at the allocation has completed. NULL `pointer`
 * does nothing. INVALID_ARGUMENT, without effect, for a pointer that was not allocated here, an
 * inner pointer, or a second free (an unchecked pool cannot always detect these). WRONG_CONTEXT,
 * without effect, for a queue of another context. It does not fail otherwise, and it blocks in one
 * case only: a pool with more than 65,533 queues in use at a time waits for the work of a further
 * queue. A free to a pool needs no memory, and calls the driver only in that case and if the
 * queue's handle was exported. If the queue cannot be queried now, the block is reused once that is
 * possible. */
ISTHMUS_API isthmus_status_t isthmus_resource_deallocate(isthmus_resource_t* resource,
                                                         void* pointer, size_t nbytes,
                                                         size_t alignment,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Declares that work unknown to the library uses the block that holds `pointer`. Until `event`, or
 * all work submitted to `queue` so far, has completed, the block is not reused, even if it is
 * freed, and operations on other queues wait. For memory of buffers use isthmus_buffer_record_*.
 * NOT_FOUND for memory that is not the library's; INVALID_ARGUMENT for memory of a pool that is not
 * allocated. */
ISTHMUS_API isthmus_status_t isthmus_record_event(const void* pointer,
                                                  isthmus_event_t* event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_record_queue(const void* pointer,
                                                  isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Returns free memory to the driver until `keep_bytes` or less are held, thread caches included;
 * memory whose decay time has passed is returned in any case. `released_bytes` (may be NULL)
 * receives the number of bytes returned. A provider holds nothing to return. */
ISTHMUS_API isthmus_status_t isthmus_resource_trim(isthmus_resource_t* resource,
                                                   uint64_t keep_bytes,
                                                   uint64_t* released_bytes) ISTHMUS_NOEXCEPT;
typedef struct isthmus_resource_info_s {
  size_t struct_size;
  isthmus_kind_t kind;
  uint32_t kinds; /* 1u << kind for each kind that it may provide */
  isthmus_device_t* device;
  uint64_t held_bytes; /* from the driver; of a provider: allocated */
  uint64_t free_bytes; /* of these, not in use and in no cache */
  /* How often the driver provided or mapped memory, and how often it was returned or unmapped. */
  uint64_t maps;
  uint64_t unmaps;
} isthmus_resource_info_t;
/* `maps` and `unmaps` may be omitted, with a smaller `struct_size`. */
ISTHMUS_API isthmus_status_t isthmus_resource_info(isthmus_resource_t* resource,
                                                   isthmus_resource_info_t* info) ISTHMUS_NOEXCEPT;
/* Live blocks that allocation trackers record, by the tag under which they were allocated. */
typedef struct isthmus_holder_s {
  const char* tag; /* NULL: untagged */
  uint64_t bytes;  /* as requested */
  uint64_t count;
} isthmus_holder_t;
enum { ISTHMUS_MAX_HOLDERS = 8 };
/* How the memory of a pool is divided, counted during the call; concurrent changes may be seen in
 * part. Takes several milliseconds for very large pools. */
typedef struct isthmus_snapshot_s {
  size_t struct_size;
  uint64_t held_bytes;    /* from the driver; the sum of the next four */
  uint64_t live_bytes;    /* in use; for an unchecked pool includes all small blocks */
  uint64_t cached_bytes;  /* in thread caches and in slabs of one size class */
  uint64_t waiting_bytes; /* free once the work before their free has completed */
  uint64_t free_bytes;    /* usable by any request */
  /* The largest request that the pool serves now without more memory from the driver, for the
   * calling thread on the queue on which it used the pool last (a new queue if there is none). It
   * includes free memory, joined or moved as a request would do it, blocks in this thread's cache
   * or a size class, and memory freed on that queue. Caches of other threads do not count, although
   * a request may get their blocks after they were idle for a while; neither does memory that waits
   * for work of other queues. */
  uint64_t largest_free_bytes;
  /* The largest holders, as far as allocation trackers over the pool record them, in descending
   * order. */
  size_t holder_count;
  isthmus_holder_t holders[ISTHMUS_MAX_HOLDERS];
  /* Of an error: the failed request, and the device and kind of its pool. 0 or NULL in the snapshot
   * of a pool. */
  const char* device; /* its filter; valid until this thread's next such error */
  isthmus_kind_t kind;
  uint32_t oom_stages; /* stages tried: 1u << isthmus_oom_stage_t of each */
  uint64_t requested_bytes;
  const char* advice; /* the remedy, as in the message; never freed */
} isthmus_snapshot_t;
/* The fields after `largest_free_bytes`, or after `holders`, may be omitted, with a smaller
 * `struct_size`, here and below. UNSUPPORTED for a resource that is not a pool. */
ISTHMUS_API isthmus_status_t isthmus_resource_snapshot(
    isthmus_resource_t* resource, isthmus_snapshot_t* snapshot) ISTHMUS_NOEXCEPT;
/* The snapshot of this thread's last error, if that was OUT_OF_MEMORY of a pool; else NOT_FOUND,
 * and the last error is unchanged. */
ISTHMUS_API isthmus_status_t isthmus_error_snapshot(isthmus_snapshot_t* snapshot) ISTHMUS_NOEXCEPT;

/* The out-of-memory stages of a pool, in this order. A request that alone exceeds the limit or
 * budget tries none, and one inside a driver's callback only the first three. */
typedef int32_t isthmus_oom_stage_t;
enum {
  /* Collects this thread's cache, and memory whose work has completed. */
  ISTHMUS_OOM_STAGE_COLLECT = 0,
  /* Collects caches that were idle for 10 ms or more, at most every 10 ms. */
  ISTHMUS_OOM_STAGE_COLLECT_IDLE = 1,
  ISTHMUS_OOM_STAGE_GROW = 2, /* requests more from the driver */
  /* Returns all free memory to the driver, caches of all threads included, and requests again. */
  ISTHMUS_OOM_STAGE_TRIM = 3,
  /* Makes other pools of its budget release free memory; after a refusal of the driver, all pools
   * of that memory. */
  ISTHMUS_OOM_STAGE_BUDGET = 4,
  /* Makes the request's queue wait on the device for other queues' work: with
   * ISTHMUS_POOL_DEVICE_WAIT. */
  ISTHMUS_OOM_STAGE_DEVICE_WAIT = 5,
  ISTHMUS_OOM_STAGE_CALLBACK = 6, /* calls the out-of-memory callbacks */
  ISTHMUS_OOM_STAGE_WAIT = 7      /* waits on the host, at most `wait_ns` */
};
/* The name used in error messages; NULL for an unknown stage. */
ISTHMUS_API const char* isthmus_oom_stage_name(isthmus_oom_stage_t oom_stage) ISTHMUS_NOEXCEPT;
typedef struct isthmus_oom_stage_info_s {
  size_t struct_size;
  uint64_t tried;  /* how often the pool tried the stage */
  uint64_t served; /* how often the stage served the request */
} isthmus_oom_stage_info_t;
/* UNSUPPORTED for a resource that is not a pool; NOT_FOUND for an unknown stage. */
ISTHMUS_API isthmus_status_t
isthmus_oom_stage_info(isthmus_resource_t* resource, isthmus_oom_stage_t oom_stage,
                       isthmus_oom_stage_info_t* info) ISTHMUS_NOEXCEPT;

/* Limits the out-of-memory stages of the calling thread's requests until the next swap. 0, the
 * initial value: all stages. 1: none after growth, since later stages may take long and need locks
 * that the caller may hold, such as an interpreter's; resources other than pools call no
 * out-of-memory callback then either. 2: a pool serves requests only from this thread's cache for
 * the queue that the thread used last, without a lock or driver call, and only if no other work is
 * submitted to that queue's stream. Otherwise the pool returns OUT_OF_MEMORY, and so do resources
 * over it. A resource without a pool behaves as with 1. Returns the previous value. Other numbers
 * are clamped to this range. */
ISTHMUS_API int isthmus_no_wait_swap(int no_wait) ISTHMUS_NOEXCEPT;

/* Interrupts waits of the calling thread, for example on a signal. While a request for memory
 * waits, an export or a device copy of a unified buffer waits for other queues, or
 * isthmus_oom_callback_remove waits, `function(object, &message)` is called on that thread about
 * every 50 ms. If it returns 0 the wait continues. Otherwise the call fails with CALLBACK and the
 * text at `message` (copied; NULL: a default text) and has no effect: no memory is held, and the
 * call may be repeated. Other waits have timeouts or cannot be undone; they do not call the
 * function. The function may call the library, must not throw, and must not wait for a thread that
 * is in a call on the same unified buffer. */
typedef struct isthmus_interrupt_s {
  int (*function)(void* object, const char** message); /* NULL: waits are not interrupted */
  void* object;
} isthmus_interrupt_t;
/* Sets the interrupt function of the calling thread until the next swap. Returns the previous one;
 * initially there is no function. */
ISTHMUS_API isthmus_interrupt_t isthmus_interrupt_swap(isthmus_interrupt_t interrupt)
    ISTHMUS_NOEXCEPT;

/* Out-of-memory callbacks. When a pool has no memory left, or the driver refuses a direct request,
 * they are called to release memory, such as that of a cache. They run on the requesting thread,
 * before it waits for anything, without a lock of the library; on several threads at once if
 * several requests fail; never from inside a callback, nor in a driver's callback. A callback may
 * allocate and free, and must not throw. It returns the approximate number of bytes that it
 * released. 0 is not an error, but then the driver is not called again. */
typedef struct isthmus_oom_request_s {
  size_t struct_size;
  isthmus_device_t* device;
  isthmus_kind_t kind;
  uint64_t nbytes; /* needed */
} isthmus_oom_request_t;
typedef uint64_t (*isthmus_oom_function_t)(void* object, const isthmus_oom_request_t* request);
/* Adds a callback for the whole process. It is called with `owner.object`, after those that were
 * added before. The library keeps the owner until the callback is removed. */
ISTHMUS_API isthmus_status_t
isthmus_oom_callback_add(isthmus_oom_function_t function, isthmus_owner_t owner,
                         isthmus_oom_callback_t** oom_callback) ISTHMUS_NOEXCEPT;
/* Removes a callback. No call of it begins after this returns. With `wait` not 0 none is running
 * either; the caller must then hold no lock that a callback takes. It does not wait from inside a
 * callback, this one or another; if the function of isthmus_interrupt_t interrupts the wait, a call
 * may still be running. Releases the handle, and the owner after the last call has ended. NULL does
 * nothing. */
ISTHMUS_API void isthmus_oom_callback_remove(isthmus_oom_callback_t* oom_callback,
                                             int wait) ISTHMUS_NOEXCEPT;

/* ---- adaptors, and memory resources of the caller -------------------------------------------- */

/* The operations of a custom resource. They are called from any thread, several at a time, and from
 * threads of the library. They may call the library but must not wait for work on a queue. */
typedef struct isthmus_resource_operations_s {
  size_t struct_size;
  /* Allocates memory of the resource's kind, aligned to `alignment`, a power of two (the device's
   * base alignment if the request has none). Work on `queue` uses the memory, and work on other
   * queues may use it too. Returns ISTHMUS_OK, or any error with a message copied from `message`
   * (may be NULL); OUT_OF_MEMORY if no memory is left. A NULL or misaligned pointer, or one of
   * another kind or device as far as the driver reports it, is rejected with CALLBACK and
   * deallocated. */
  isthmus_status_t (*allocate)(void* object, size_t nbytes, size_t alignment,
                               isthmus_queue_t* queue, void** pointer, const char** message);
  /* Deallocates memory of `allocate`, with the requested size. No work uses it any more. `queue`
   * (may be NULL) is the queue of the allocation. Must not fail or throw. Never called while the
   * process exits, nor in a forked child. */
  void (*deallocate)(void* object, void* pointer, size_t nbytes, isthmus_queue_t* queue);
  /* Reports the usage for isthmus_resource_info. NULL: the resource holds nothing. */
  void (*usage)(void* object, uint64_t* held_bytes, uint64_t* free_bytes);
  /* As isthmus_resource_trim; returns the number of bytes released. NULL: there is nothing to
   * release. */
  uint64_t (*trim)(void* object, uint64_t keep_bytes);
} isthmus_resource_operations_t;
/* A resource that calls `operations` (copied) with `owner.object`. The owner is released once
 * neither the resource nor its memory is referenced. `allocate` may return parts of memory that it
 * obtained from this library; that memory lives as long as the parts. */
ISTHMUS_API isthmus_status_t
isthmus_resource_custom(isthmus_context_t* context, isthmus_device_t* device, isthmus_kind_t kind,
                        const isthmus_resource_operations_t* operations, isthmus_owner_t owner,
                        isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The resources below are adaptors: each keeps its upstream alive and has the kind, context and
 * device of its upstream. A block must be deallocated through the adaptor that allocated it, not
 * through its upstream. A pool cannot detect which of several adaptors over it allocated a block:
 * freeing it through another one makes their counts wrong, but no count drops below 0. Usage and
 * trim apply to the base resources, each counted once. */

/* Counts allocations. Counts are exact, also with several threads; `nbytes` of a deallocation must
 * be the allocated size. A buffer counts until it is freed, even if its memory is released later,
 * when the work on it has completed. */
ISTHMUS_API isthmus_status_t isthmus_resource_statistics(
    isthmus_resource_t* upstream, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
typedef struct isthmus_statistics_info_s {
  size_t struct_size;
  uint64_t current_bytes; /* live now, as requested */
  uint64_t current_count;
  uint64_t peak_bytes; /* maximum live at a time since creation or reset */
  uint64_t peak_count;
  uint64_t total_bytes; /* allocated since then */
  uint64_t total_count;
} isthmus_statistics_info_t;
/* INVALID_ARGUMENT for a resource that is not a statistics resource. */
ISTHMUS_API isthmus_status_t isthmus_statistics_info(
    isthmus_resource_t* resource, isthmus_statistics_info_t* statistics) ISTHMUS_NOEXCEPT;
/* Sets the peaks to the current values, and the totals to 0. INVALID_ARGUMENT as above. */
ISTHMUS_API isthmus_status_t isthmus_statistics_reset(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;
/* Creates a scope. It counts the allocations that threads make from `resource`, a statistics
 * resource, while they are in the scope, and the frees of that memory, inside the scope or outside.
 * A thread in a scope is also in its `outer` scope, which may belong to another resource (NULL:
 * none). A scope keeps all its outer scopes alive. INVALID_ARGUMENT as above. */
ISTHMUS_API isthmus_status_t isthmus_scope_create(isthmus_resource_t* resource,
                                                  isthmus_scope_t* outer,
                                                  isthmus_scope_t** scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_scope_retain(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_scope_release(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
/* Puts the calling thread into `scope` (NULL: none). The caller keeps the scope alive until the
 * thread has left it. Returns the previous scope, NULL for none. Takes a few nanoseconds: coroutine
 * runtimes may call it at each switch. */
ISTHMUS_API isthmus_scope_t* isthmus_scope_swap(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t
isthmus_scope_info(isthmus_scope_t* scope, isthmus_statistics_info_t* statistics) ISTHMUS_NOEXCEPT;
/* As isthmus_scope_info, minus memory from outside the scope that threads freed while they were in
 * it. If they freed more than the scope counts, `current_bytes` and `current_count` are negative,
 * in two's complement; the peaks are those of these counts, at least 0. */
ISTHMUS_API isthmus_status_t isthmus_scope_net_info(
    isthmus_scope_t* scope, isthmus_statistics_info_t* statistics) ISTHMUS_NOEXCEPT;

/* Rejects with OUT_OF_MEMORY each request that would raise the live bytes, as requested, above
 * `limit_bytes`. The message states the request, the limit and the bytes in use. `nbytes` of a
 * deallocation must be the allocated size. */
ISTHMUS_API isthmus_status_t isthmus_resource_limit(isthmus_resource_t* upstream,
                                                    uint64_t limit_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
typedef struct isthmus_limit_info_s {
  size_t struct_size;
  uint64_t limit_bytes;
  uint64_t in_use_bytes; /* live now, as requested */
} isthmus_limit_info_t;
/* INVALID_ARGUMENT for a resource that is not a limit resource. */
ISTHMUS_API isthmus_status_t isthmus_limit_info(isthmus_resource_t* resource,
                                                isthmus_limit_info_t* info) ISTHMUS_NOEXCEPT;

/* Uses `second`, a resource of the same context, when `first` fails with OUT_OF_MEMORY. Kind and
 * device are those of `first`; memory of `second` may have others, and a buffer reports the kind
 * that it has. Memory is deallocated through the resource that allocated it. */
ISTHMUS_API isthmus_status_t
isthmus_resource_fallback(isthmus_resource_t* first, isthmus_resource_t* second,
                          isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Aligns requests of at least `min_bytes` to `alignment`, a power of two, or to the alignment of
 * the request if that is larger. */
ISTHMUS_API isthmus_status_t
isthmus_resource_aligned(isthmus_resource_t* upstream, size_t alignment, size_t min_bytes,
                         isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Requests of at most `max_bytes` go to `resource`. */
typedef struct isthmus_bin_s {
  size_t max_bytes;
  isthmus_resource_t* resource;
} isthmus_bin_t;
/* Sends each request to the first bin, in ascending order of size, that it fits in, and larger ones
 * to `upstream`. All resources have one context; kinds may differ. `nbytes` of a deallocation must
 * be the allocated size: it selects the resource. */
ISTHMUS_API isthmus_status_t
isthmus_resource_binning(isthmus_resource_t* upstream, const isthmus_bin_t* bins, size_t count,
                         isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Writes a row for each allocation, failure and free to a file, which is created or truncated, in
 * the columns of RMM's logs: Thread,Time,Action,Pointer,Size,Stream. Allocating threads write
 * several thousand rows at a time. Rows are also written by a flush, when the last reference is
 * released, and when the process calls `exit`. Any other termination loses unwritten rows.
 * INVALID_ARGUMENT for a file that cannot be created, or to which another log, of any process,
 * writes. */
ISTHMUS_API isthmus_status_t isthmus_resource_log(isthmus_resource_t* upstream, const char* path,
                                                  isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Writes all rows up to the first free that is in progress on another thread. INVALID_ARGUMENT for
 * a resource that is not a log resource. DRIVER, once, if rows were lost since the last flush
 * because the file could not be written. */
ISTHMUS_API isthmus_status_t isthmus_log_flush(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;

/* Detects writes outside of blocks and to freed blocks, for programs under test. Each block lies
 * between red zones of 64 bytes, or of its alignment if that is larger; `kept_bytes` of freed
 * blocks are poisoned and retained for a while. An allocation waits for the work on its queue; in a
 * callback, which must not wait, a block is not checked. Memory is freed once no work uses it.
 * Detected damage is written to standard error and reported by isthmus_resource_verify; a block
 * with a damaged red zone is retained until the resource is destroyed. UNSUPPORTED for an upstream
 * that may provide device memory, which the host cannot read, and for a monotonic one, which
 * releases blocks that were not freed. */
ISTHMUS_API isthmus_status_t isthmus_resource_debug(isthmus_resource_t* upstream,
                                                    uint64_t kept_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Verifies the records of the resource and of its upstreams. INTERNAL if the records of a pool
 * contradict one another; INVALID_ARGUMENT if a debug resource found damage, now or before. Takes
 * long, and blocks other threads meanwhile. */
ISTHMUS_API isthmus_status_t isthmus_resource_verify(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;

/* Called with the size that upstream rejected with OUT_OF_MEMORY, on the requesting thread, without
 * a lock: it may free and allocate. Set `*retry` (initially 0) to 1 to try again. Returns
 * ISTHMUS_OK, or the error of the request, with a message copied from `message`. */
typedef isthmus_status_t (*isthmus_failure_function_t)(void* object, size_t nbytes, int* retry,
                                                       const char** message);
ISTHMUS_API isthmus_status_t isthmus_resource_failure_callback(
    isthmus_resource_t* upstream, isthmus_failure_function_t function, isthmus_owner_t owner,
    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Tags: names under which threads allocate, for reports of memory use by tag. Sets `tag` to the
 * interned text of the name, which is never freed: equal names have equal addresses.
 * INVALID_ARGUMENT for an empty name. */
ISTHMUS_API isthmus_status_t isthmus_tag_find(const char* name, const char** tag) ISTHMUS_NOEXCEPT;
/* Makes the calling thread allocate under `tag`, a result of isthmus_tag_find (NULL: none). Returns
 * the previous tag. Takes a few nanoseconds. */
ISTHMUS_API const char* isthmus_tag_swap(const char* tag) ISTHMUS_NOEXCEPT;

/* Cuts consecutive blocks from chunks of upstream memory and returns all chunks together, in
 * isthmus_monotonic_release or when the last reference is released. The first chunk has
 * `first_bytes` (0: 64 KiB), and each further chunk twice the size of the previous one, or the size
 * of the request if that is larger. A deallocation returns nothing. However, a chunk whose blocks
 * were all freed is returned if a request of any resource would fail without it, provided that no
 * queue used here has work or was exported. INVALID_ARGUMENT for a pointer that was not allocated
 * here. A request takes about 10 ns. */
ISTHMUS_API isthmus_status_t
isthmus_resource_monotonic(isthmus_resource_t* upstream, size_t first_bytes,
                           isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Returns all chunks, after the work on every queue on which blocks were allocated or deallocated
 * and after all known uses. The blocks must not be used afterwards. A chunk that holds buffers
 * lives as long as they do. INVALID_ARGUMENT for a resource that is not monotonic. */
ISTHMUS_API isthmus_status_t isthmus_monotonic_release(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;

/* Allocates blocks of one size, cut from slabs of `blocks` each (0: as many as fill a MiB, at least
 * 8). The distance between blocks is `block_bytes` rounded up to the device's base alignment. A
 * request fails with INVALID_ARGUMENT if it is larger, and for an alignment above the largest power
 * of two, up to 4096, that divides this distance: use isthmus_resource_binning to serve such
 * requests from another resource. A block freed on a queue is reused there at once, and elsewhere
 * when the work before the free has completed. A slab without live blocks is returned by trim, and
 * if a request of any resource would fail without it. INVALID_ARGUMENT for a `block_bytes` of 0. */
ISTHMUS_API isthmus_status_t
isthmus_resource_fixed_size(isthmus_resource_t* upstream, size_t block_bytes, size_t blocks,
                            isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Cuts blocks of any size from superblocks of upstream memory, each of 1 MiB or the size of the
 * request if that is larger. Each pair of a thread and a queue uses one of 64 arenas of
 * superblocks; an arena without space obtains another superblock instead of searching other arenas.
 * A freed block returns to its arena, and is reused under the same rules as a block of a pool. A
 * superblock without live blocks is returned by trim, and if a request of any resource would fail
 * without it. The superblocks hold at most `limit_bytes` (0: no limit); OUT_OF_MEMORY beyond. */
ISTHMUS_API isthmus_status_t isthmus_resource_arena(isthmus_resource_t* upstream,
                                                    uint64_t limit_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* On allocation, prefetches shared memory to the device of the request's queue, on that queue. This
 * is a hint: it has no effect for other kinds or without ISTHMUS_CAN_PREFETCH, and a driver error
 * of the prefetch does not fail the request. Over a resource that is not ordered by queues, such as
 * a provider, the request waits for the prefetch, on a separate queue if the request's queue is
 * busy. */
ISTHMUS_API isthmus_status_t isthmus_resource_prefetch(
    isthmus_resource_t* upstream, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* ---- queries of memory ----------------------------------------------------------------------- */

typedef struct isthmus_live_info_s {
  size_t struct_size;
  uint64_t count;
  uint64_t bytes;
} isthmus_live_info_t;
/* Live allocations and their bytes in the whole process, of one kind (UNKNOWN: all). For default
 * pools these are blocks in use, with the sizes that the pool rounds them to; for all other memory
 * they are driver allocations, such as the chunks of other pools. Memory whose release is deferred
 * counts as live; pending releases that can be completed are drained first, for at most 4 ms. Takes
 * about 30 ns for each 64 KiB of default pools. A forked child counts no blocks of these pools. */
ISTHMUS_API isthmus_status_t isthmus_live_info(isthmus_kind_t kind,
                                               isthmus_live_info_t* info) ISTHMUS_NOEXCEPT;

/* The state of memory. */
typedef int32_t isthmus_memory_state_t;
enum {
  ISTHMUS_MEMORY_UNKNOWN = 0, /* not known to the library */
  ISTHMUS_MEMORY_LIVE = 1,    /* allocated; of an unchecked pool all small blocks */
  ISTHMUS_MEMORY_WAITING = 2, /* freed; released when the work on it has completed */
  ISTHMUS_MEMORY_FREE = 3     /* free in a pool, perhaps ordered after work on a queue */
};

/* The properties of the allocation that contains a pointer, which may point anywhere into it. A
 * buffer's whole block counts as the buffer's memory. */
typedef struct isthmus_pointer_info_s {
  size_t struct_size;
  isthmus_kind_t kind; /* UNKNOWN: not live, or not USM of the given context */
  void* base;          /* base and size of its allocation, or NULL and 0 if unknown */
  size_t nbytes;
  isthmus_device_t* device; /* lives as long as the context; NULL if unknown */
  /* As requested, where that is known: of driver allocations, of a pool's blocks above 256 KiB, and
   * of blocks of an allocation tracker; else 0. */
  size_t requested_bytes;
  uintptr_t queue_key; /* of the queue that it was allocated on */
  /* The context that the memory belongs to, and the resource that it is returned to. NULL if
   * unknown, or for the driver itself. Valid while the memory is live and the resource is
   * referenced: isthmus_pointer_origin returns references instead. */
  isthmus_context_t* context;
  isthmus_resource_t* resource;
  isthmus_memory_state_t state; /* if WAITING or FREE in a pool, nothing else is reported */
} isthmus_pointer_info_t;
/* Queries the registry, then `context`'s driver. `context` NULL: any context that the registry
 * knows. The fields after `device` may be omitted, with a smaller `struct_size`. */
ISTHMUS_API isthmus_status_t isthmus_pointer_info(isthmus_context_t* context, const void* pointer,
                                                  isthmus_pointer_info_t* info) ISTHMUS_NOEXCEPT;
/* The context and the resource of a pointer, owned by the caller: safe while other threads free the
 * memory or release these objects. NULL if unknown. Outputs may be NULL. */
ISTHMUS_API isthmus_status_t isthmus_pointer_origin(const void* pointer,
                                                    isthmus_context_t** context,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* ---- traces ---------------------------------------------------------------------------------- */

/* A trace is a recorded sequence of allocations and frees that is replayed on a memory resource. */
enum { ISTHMUS_TRACE_FREE = 0, ISTHMUS_TRACE_ALLOCATE = 1 };
typedef struct isthmus_trace_event_s {
  uint64_t nbytes; /* of an allocation, above 0 */
  uint32_t id;     /* of the block, below the number of events; may be reused after its free */
  uint16_t queue;  /* index of the queue; a free may use another than the allocation */
  uint16_t action;
} isthmus_trace_event_t;
/* The state after an event. */
typedef struct isthmus_trace_sample_s {
  uint64_t held_bytes; /* held by the resource */
  uint64_t ns;         /* of the event, without the time of reading the clock */
} isthmus_trace_sample_t;
typedef struct isthmus_replay_result_s {
  size_t struct_size;
  uint64_t ns;              /* all events together */
  uint64_t peak_held_bytes; /* of the samples; 0 without samples */
  uint64_t maps;            /* how often the driver provided or mapped memory */
  uint64_t unmaps;          /* how often memory was returned or unmapped */
} isthmus_replay_result_t;
/* Replays the events in order on the calling thread. `samples` NULL: only the total is timed, and
 * the clock is not read between events; else one sample is written for each event. All queues
 * belong to the resource's context. Blocks that are live after the last event, or when one fails,
 * are freed. INVALID_ARGUMENT, with the number of the event, before anything is replayed: an
 * allocation of a live id or of 0 bytes, a free of an id that is not live, or an unknown id, queue
 * or action. Errors of allocations are returned. Other threads may use the resource meanwhile;
 * their effects are included. */
ISTHMUS_API isthmus_status_t isthmus_resource_replay(
    isthmus_resource_t* resource, isthmus_queue_t* const* queues, size_t queue_count,
    const isthmus_trace_event_t* events, size_t event_count, isthmus_trace_sample_t* samples,
    isthmus_replay_result_t* result) ISTHMUS_NOEXCEPT;

/* ---- buffers --------------------------------------------------------------------------------- */

/* Creates a buffer. `alignment` is 0 for the device's base alignment, else a power of two. `queue`
 * NULL: the default queue. `resource` NULL: the current resource (isthmus_current_resource), which
 * is the default pool of buffers unless another one was set; otherwise its context must be the
 * queue's. isthmus_resource_provider provides driver memory without a pool. 0 bytes are allowed. */
ISTHMUS_API isthmus_status_t isthmus_buffer_create(size_t nbytes, isthmus_kind_t kind,
                                                   size_t alignment, isthmus_queue_t* queue,
                                                   isthmus_resource_t* resource,
                                                   isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;
/* A buffer over USM that another library allocated; `owner` keeps it alive and frees it. The
 * pointer must be known to the queue's context and, for device kind, belong to its device
 * (WRONG_CONTEXT). [pointer, pointer + nbytes) must lie within its allocation where the driver
 * reports that, and within the live buffer whose block it is in. ISTHMUS_KIND_UNKNOWN uses the kind
 * that the driver reports; INVALID_ARGUMENT for another kind than that. Memory that the library
 * allocated is kept alive too, and operations on it are ordered with those of its own buffer. */
ISTHMUS_API isthmus_status_t isthmus_buffer_adopt(void* pointer, size_t nbytes, isthmus_kind_t kind,
                                                  int read_only, isthmus_queue_t* queue,
                                                  isthmus_owner_t owner,
                                                  isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;
/* Bytes [offset, offset + nbytes) of `base`, which the slice keeps alive. Allocates no memory.
 * OUT_OF_RANGE if they do not lie in `base`. */
ISTHMUS_API isthmus_status_t isthmus_buffer_slice(isthmus_buffer_t* base, size_t offset,
                                                  size_t nbytes,
                                                  isthmus_buffer_t** slice) ISTHMUS_NOEXCEPT;
/* Another buffer of the same memory whose operations are ordered by `queue`. WRONG_CONTEXT for a
 * queue of another context. */
ISTHMUS_API isthmus_status_t isthmus_buffer_on_queue(isthmus_buffer_t* base, isthmus_queue_t* queue,
                                                     isthmus_buffer_t** view) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_buffer_retain(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* The memory is released once the last reference, slice and export has ended and the last operation
 * on it has completed. Does not block, unless isthmus_buffer_free_may_wait returns 1. */
ISTHMUS_API void isthmus_buffer_release(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Closes this buffer at once: further use of the buffer or of its slices returns CLOSED. The memory
 * is released as by isthmus_buffer_release, after the last export has ended. A second free does
 * nothing. Freeing a slice affects only the slice. */
ISTHMUS_API void isthmus_buffer_free(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* 1 if isthmus_buffer_free, or the end of the last export or reference, may call a custom resource,
 * or the driver, whose frees wait for all work on the device. A caller that holds a lock which such
 * work may need, such as Python's, must release the lock first. 0 if the memory returns to a pool.
 * Takes a few nanoseconds. */
ISTHMUS_API int isthmus_buffer_free_may_wait(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;

typedef struct isthmus_buffer_info_s {
  size_t struct_size;
  void* pointer; /* NULL for 0 bytes */
  size_t nbytes;
  size_t alignment; /* as requested, or the base alignment */
  isthmus_kind_t kind;
  int read_only;
  int is_slice;
  isthmus_queue_t* queue;
  size_t exports;
} isthmus_buffer_info_t;
/* CLOSED for a freed buffer. */
ISTHMUS_API isthmus_status_t isthmus_buffer_info(const isthmus_buffer_t* buffer,
                                                 isthmus_buffer_info_t* info) ISTHMUS_NOEXCEPT;
/* The address alone, for inner loops. NULL for 0 bytes, a freed buffer and NULL. */
ISTHMUS_API void* isthmus_buffer_pointer(const isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Waits for the work pending on the buffer's bytes, on any queue; errors of operations are reported
 * by their own events. TIMEOUT after `timeout_ns` (negative waits indefinitely, 0 polls).
 * DEPENDENCY, also instead of TIMEOUT, if a unified buffer's copy into some of the bytes has failed
 * and the bytes were not written since. */
ISTHMUS_API isthmus_status_t isthmus_buffer_wait(isthmus_buffer_t* buffer,
                                                 int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* As isthmus_buffer_wait, but only for operations that write to the bytes, and for external work: a
 * read by the host need not wait for other reads. DEPENDENCY likewise. */
ISTHMUS_API isthmus_status_t isthmus_buffer_wait_for_writers(isthmus_buffer_t* buffer,
                                                             int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* 1 if the buffer was not freed, nothing is pending on its memory and no copy into it has failed,
 * as far as is known without calling a driver; else 0: see isthmus_buffer_wait. For inner loops
 * that access single elements on the host, as is isthmus_buffer_watch. No other thread may free the
 * buffer meanwhile. */
ISTHMUS_API int isthmus_buffer_idle(const isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* The same check without a call: the buffer is idle while a few flag bytes, which live as long as
 * the buffer, are all 0. Load each with acquire semantics, and only if those before it were 0. If
 * one is not 0 call isthmus_buffer_idle, which may set them to 0.
 *
 * Writes the addresses of these bytes to `flags`, which has space for `capacity` addresses, and
 * returns their number. If `capacity` is too small, or `buffer` is NULL, it writes the address of
 * one byte that is always set, so that a program built for an older library calls each time.
 * Returns 0 if `capacity` is 0. */
enum { ISTHMUS_WATCHED = 5 }; /* maximum in this version */
ISTHMUS_API size_t isthmus_buffer_watch(const isthmus_buffer_t* buffer, const unsigned char** flags,
                                        size_t capacity) ISTHMUS_NOEXCEPT;
/* An event that completes, with success, once the work now pending on the buffer's bytes has ended.
 * CLOSED. */
ISTHMUS_API isthmus_status_t isthmus_buffer_pending(isthmus_buffer_t* buffer,
                                                    isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Waits for the pending operations of the buffer and returns a pointer that the host may use until
 * the matching `unexport`, even after `free`. UNSUPPORTED for device kind; DEPENDENCY as
 * isthmus_buffer_wait. */
ISTHMUS_API isthmus_status_t isthmus_buffer_export(isthmus_buffer_t* buffer,
                                                   void** pointer) ISTHMUS_NOEXCEPT;
/* Returns a pointer, of any kind, for external work on `queue`, valid until the matching
 * `unexport`, even after `free`. Work submitted to `queue` from now on is ordered after the work
 * pending on the buffer; external work on an out-of-order `queue` is not. Waits for nothing, unless
 * pending work waits for the host. NULL `queue`: no order. The external work is taken into account
 * if the buffer is one of that queue (isthmus_buffer_on_queue returns one) and the queue was
 * adopted or its handle exported: operations on other queues then wait for it, and so does the
 * release of the memory. CLOSED; DEPENDENCY as isthmus_buffer_wait, for failures that are known by
 * then. */
ISTHMUS_API isthmus_status_t isthmus_buffer_export_to_queue(isthmus_buffer_t* buffer,
                                                            isthmus_queue_t* queue,
                                                            void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_buffer_unexport(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Transfers the memory to another owner: returns the pointer, and an owner whose release frees the
 * memory. The buffer is closed afterwards. INVALID_ARGUMENT for 0 bytes and while slices, other
 * references or exports exist. `owner->release` does not block: the free is deferred until pending
 * operations have completed. */
ISTHMUS_API isthmus_status_t isthmus_buffer_disown(isthmus_buffer_t* buffer, void** pointer,
                                                   isthmus_owner_t* owner) ISTHMUS_NOEXCEPT;
/* Declares that work unknown to the library uses the memory. Until `event`, or all work submitted
 * to `queue` so far, has completed, the memory is not released, and operations on other queues
 * wait. */
ISTHMUS_API isthmus_status_t isthmus_buffer_record_event(isthmus_buffer_t* buffer,
                                                         isthmus_event_t* event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_buffer_record_queue(isthmus_buffer_t* buffer,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* Shares a buffer's bytes with another process of this machine: CUDA's legacy IPC. `handle` is the
 * CUipcMemHandle of the whole allocation that contains the buffer. Send it unchanged: CUDA does not
 * detect every modification. */
typedef struct isthmus_ipc_handle_s {
  size_t struct_size;
  unsigned char handle[64];
  uint64_t offset; /* of the first byte within the allocation */
  uint64_t nbytes;
} isthmus_ipc_handle_t;
/* Waits for the work pending on the buffer's bytes, since queues of other processes are not ordered
 * with those of this one: later uses must be synchronized by the two processes themselves. The
 * memory belongs to this process. Keep the buffer until the other processes have closed it: memory
 * that returns to a pool is reused here while they still access it, and for memory that returns to
 * the driver CUDA defines no behaviour. INVALID_ARGUMENT for 0 bytes; CLOSED. UNSUPPORTED without
 * ISTHMUS_CAN_IPC, and for memory that is not device memory of cuMemAlloc: a pool's memory can
 * move, unless the pool was created with ISTHMUS_POOL_NO_REMAP. DEPENDENCY as isthmus_buffer_wait.
 */
ISTHMUS_API isthmus_status_t
isthmus_buffer_ipc_handle(isthmus_buffer_t* buffer, isthmus_ipc_handle_t* handle) ISTHMUS_NOEXCEPT;
/* A buffer of device kind over memory of another process. `queue` NULL: the default queue of the
 * default device; it must be of the same device as in the exporting process. When the memory is
 * released, as in isthmus_buffer_release, the handle is closed, which waits for all work on the
 * device, as the driver's own free does. A handle may be opened several times: all these buffers
 * share one memory, whose uses are ordered. INVALID_ARGUMENT for a handle of this process, and for
 * one that CUDA does not recognize; OUT_OF_RANGE if the allocation does not contain all bytes;
 * WRONG_CONTEXT for memory of another device than the queue's; UNSUPPORTED without ISTHMUS_CAN_IPC.
 */
ISTHMUS_API isthmus_status_t isthmus_buffer_open_ipc(const isthmus_ipc_handle_t* handle,
                                                     isthmus_queue_t* queue,
                                                     isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;

/* ---- copies, fills, prefetch, advice --------------------------------------------------------- */

/* A source or destination: `offset` into `buffer`, or, if buffer is NULL, the address `pointer` +
 * `offset`:
 *  - in a live allocation of the library, whose bounds are then checked (OUT_OF_RANGE);
 *  - in memory that the library manages but that is not allocated, because it was freed or never
 *    allocated: INVALID_ARGUMENT. A pool with ISTHMUS_POOL_UNCHECKED treats all of its small blocks
 *    as live;
 *  - elsewhere: for a copy plain host memory, which the host reads or writes. To copy device memory
 *    of another library adopt it first (isthmus_buffer_adopt). isthmus_fill, _prefetch and _advise
 *    describe their own rules. */
typedef struct isthmus_endpoint_s {
  isthmus_buffer_t* buffer;
  void* pointer;
  size_t offset;
} isthmus_endpoint_t;

/* Optional; NULL: no dependencies and no owners. The owners are released when the operation has
 * completed, and also when the call fails. */
typedef struct isthmus_operation_s {
  size_t struct_size;
  isthmus_event_t* const* after; /* dependencies, of any context or platform */
  size_t after_count;
  const isthmus_owner_t* owners;
  size_t owner_count;
} isthmus_operation_t;

/* Copies between any two endpoints. `queue` NULL: the queue of the destination buffer, else of the
 * source; none for two host addresses (a plain memcpy, on a thread of the library if an event is
 * requested and one of `after` is pending). INVALID_ARGUMENT for overlapping ranges. Memory that
 * the host can access is copied by the host if nothing is pending on it. */
ISTHMUS_API isthmus_status_t isthmus_copy(isthmus_queue_t* queue,
                                          const isthmus_endpoint_t* destination,
                                          const isthmus_endpoint_t* source, size_t nbytes,
                                          const isthmus_operation_t* operation,
                                          isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Copies `height` rows of `width` bytes. For more than one row each pitch is at least `width`. */
ISTHMUS_API isthmus_status_t isthmus_copy_2d(
    isthmus_queue_t* queue, const isthmus_endpoint_t* destination, size_t destination_pitch,
    const isthmus_endpoint_t* source, size_t source_pitch, size_t width, size_t height,
    const isthmus_operation_t* operation, isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* `nbytes` bytes from `source_offset` in the source to `destination_offset` in the destination. */
typedef struct isthmus_range_s {
  size_t destination_offset;
  size_t source_offset;
  size_t nbytes;
} isthmus_range_t;

/* Copies many ranges between two endpoints as one operation, in unspecified order. All ranges are
 * checked before anything is copied: OUT_OF_RANGE names the range that exceeds its bounds.
 * INVALID_ARGUMENT for ranges whose destinations overlap, or that write what another reads.
 * `ranges` may be changed once this returns. */
ISTHMUS_API isthmus_status_t isthmus_copy_ranges(isthmus_queue_t* queue,
                                                 const isthmus_endpoint_t* destination,
                                                 const isthmus_endpoint_t* source,
                                                 const isthmus_range_t* ranges, size_t range_count,
                                                 const isthmus_operation_t* operation,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Copies an array of up to 8 dimensions: `shape[i]` elements of `item_bytes` along dimension i,
 * `strides[i]` bytes apart on each side. The order of the dimensions does not matter; contiguous
 * ones are joined. A stride of the source may be 0. Each destination stride must be at least the
 * extent of the dimensions inside it. If the extents of both sides overlap, the rows of one side
 * must lie between the rows of the other at one common distance. INVALID_ARGUMENT otherwise. */
ISTHMUS_API isthmus_status_t isthmus_copy_nd(
    isthmus_queue_t* queue, const isthmus_endpoint_t* destination,
    const size_t* destination_strides, const isthmus_endpoint_t* source,
    const size_t* source_strides, const size_t* shape, size_t dimensions, size_t item_bytes,
    const isthmus_operation_t* operation, isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Repeats a pattern of 1, 2, 4, 8 or 16 bytes; `nbytes` must be a multiple of it. A device other
 * than the host returns UNSUPPORTED for an address that is not a multiple of the pattern's size. An
 * address outside of the library's memory is filled if the driver of `queue` knows it (memory of
 * another library) or the device can access plain host memory, else INVALID_ARGUMENT; with `queue`
 * NULL the host fills it. */
ISTHMUS_API isthmus_status_t isthmus_fill(isthmus_queue_t* queue,
                                          const isthmus_endpoint_t* destination,
                                          const void* pattern, size_t pattern_bytes, size_t nbytes,
                                          const isthmus_operation_t* operation,
                                          isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Prefetches shared memory to the queue's device, or to the host. It is a hint that may have no
 * effect. UNSUPPORTED without ISTHMUS_CAN_PREFETCH. INVALID_ARGUMENT for an address that is neither
 * the library's memory nor known to the driver of `queue`. */
ISTHMUS_API isthmus_status_t isthmus_prefetch(isthmus_queue_t* queue,
                                              const isthmus_endpoint_t* endpoint, size_t nbytes,
                                              int to_host, const isthmus_operation_t* operation,
                                              isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Passes advice to the driver, as a number that the driver defines (OpenCL: cl_mem_advice_intel;
 * CUDA: CUmem_advise, 0 for none). UNSUPPORTED without ISTHMUS_CAN_ADVISE. Addresses as for
 * isthmus_prefetch. */
ISTHMUS_API isthmus_status_t isthmus_advise(isthmus_queue_t* queue,
                                            const isthmus_endpoint_t* endpoint, size_t nbytes,
                                            uint32_t advice, const isthmus_operation_t* operation,
                                            isthmus_event_t** event) ISTHMUS_NOEXCEPT;

/* Pins host memory of the caller for the platform of `device` (NULL: the default device). The
 * driver then copies it at bus speed while the host continues. Succeeds without effect if pinning
 * is not needed: host memory of the driver itself or already registered with it, a device that
 * works on host memory, 0 bytes; isthmus_pin_info reports that. Overlapping pins share their
 * memory, which is unpinned with the last of them. With CUDA pinning takes 25 to 115 ms per GiB,
 * and unpinning as much: use it for memory that is copied several times. `read_only` not 0: the
 * memory is only read, and may be write-protected.
 *
 * The memory must stay mapped until the pin is removed; if it is freed before, later mappings at
 * its address are copied incorrectly. `owner` keeps it alive until then. INVALID_ARGUMENT for
 * device memory, unmapped memory, or memory of which a part is already registered; UNSUPPORTED for
 * write-protected memory if the device cannot pin it; OUT_OF_MEMORY if the driver cannot pin more.
 */
ISTHMUS_API isthmus_status_t isthmus_pin_add(isthmus_device_t* device, const void* pointer,
                                             size_t nbytes, int read_only, isthmus_owner_t owner,
                                             isthmus_pin_t** pin) ISTHMUS_NOEXCEPT;
typedef struct isthmus_pin_info_s {
  size_t struct_size;
  const void* pointer;
  size_t nbytes;
  int is_registered; /* 0: not needed */
  isthmus_device_t* device;
} isthmus_pin_info_t;
ISTHMUS_API isthmus_status_t isthmus_pin_info(isthmus_pin_t* pin,
                                              isthmus_pin_info_t* info) ISTHMUS_NOEXCEPT;
/* Waits until no copy of that memory is pending on the library's queues. TIMEOUT after
 * `timeout_ns`; a negative value waits indefinitely. */
ISTHMUS_API isthmus_status_t isthmus_pin_wait(isthmus_pin_t* pin,
                                              int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* Removes the pin. With `wait` not 0 it waits as isthmus_pin_wait does, and the memory may be freed
 * once this returns, unless it has other pins. With 0 it does not wait, and `owner` is released
 * after the driver has unregistered the memory. The caller's own driver work on it must have
 * completed. NULL does nothing. */
ISTHMUS_API void isthmus_pin_remove(isthmus_pin_t* pin, int wait) ISTHMUS_NOEXCEPT;

/* Page-aligned host memory for results. The first access to a page costs more than copying the
 * page, so freed large blocks are cached for reuse (up to 1/16 of the memory that the process may
 * use, and 2 GiB at most), and the library's first copy into a fresh block faults in all its pages
 * at once. */
ISTHMUS_API isthmus_status_t isthmus_result_allocate(size_t nbytes,
                                                     void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_result_free(void* pointer) ISTHMUS_NOEXCEPT;

/* ---- process --------------------------------------------------------------------------------- */

/* Stops the host functions that were submitted to queues: those that have not started fail with
 * CALLBACK, and the call waits for running ones. Language bindings call it before their interpreter
 * shuts down. */
ISTHMUS_API void isthmus_shutdown_host_functions(void) ISTHMUS_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ISTHMUS_ISTHMUS_H */
