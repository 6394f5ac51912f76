/* Isthmus: one memory layer for programs whose data live on both sides of a bus.
 *
 * This header is the whole contract of the shared library: C99, opaque handles, no types of any
 * standard library. `isthmus.hpp` beside it is header-only C++20 over these functions.
 *
 * Conventions, true of every function unless its comment says otherwise:
 *  - A function that can fail returns `isthmus_status_t`; `ISTHMUS_OK` is 0. On failure the outputs
 *    are left untouched, nothing is half done, and `isthmus_error_message()` tells this thread what
 *    was wrong: the value, the limit and what to do.
 *  - Handles are counted references. What a function gives through `**out` is owned by the caller
 *    and given back with the noun's `release`. `retain` and `release` accept NULL, never fail,
 *    never block, and may be called from any thread, in a forked child too (where they do nothing).
 *  - Every function may be called from any thread at any time, on the same handles too.
 *  - A structure that may grow begins with `struct_size`, which the caller sets to its `sizeof`.
 *  - Sizes, offsets and pitches are in bytes, times in nanoseconds.
 *  - Operations on one queue run in the order of their submission. An operation on a buffer also
 *    waits for the operations on that buffer which other queues were given before through this
 *    library. Work that the caller gave a driver himself is made known by
 *    `isthmus_buffer_record_*`.
 *  - An operation's last parameter is `isthmus_event_t** event`: NULL makes the call block until
 *    the operation has ended, else it returns once the operation is submitted, and the event tells.
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
/* Version of the binary interface: grows by one whenever functions are added; within a major
 * version of the library nothing is removed or changes its layout. */
#define ISTHMUS_ABI_VERSION 1

/* "0.1.0", of the library that runs, which may be newer than this header. */
ISTHMUS_API const char* isthmus_version(void) ISTHMUS_NOEXCEPT;
ISTHMUS_API uint32_t isthmus_abi_version(void) ISTHMUS_NOEXCEPT;

/* ---- status and errors ----------------------------------------------------------------------- */

typedef int32_t isthmus_status_t;
enum {
  ISTHMUS_OK = 0,
  ISTHMUS_PENDING = 1,                 /* not an error: the event has not completed */
  ISTHMUS_ERROR_INVALID_ARGUMENT = -1, /* a value outside what its description allows */
  ISTHMUS_ERROR_OUT_OF_RANGE = -2,     /* past either end of a buffer or allocation */
  ISTHMUS_ERROR_OUT_OF_MEMORY = -3,    /* no memory of that kind on that device */
  ISTHMUS_ERROR_UNSUPPORTED = -4,      /* this driver or device cannot; see its capabilities */
  ISTHMUS_ERROR_WRONG_CONTEXT = -5, /* objects of different contexts, or a pointer unknown to it */
  ISTHMUS_ERROR_NOT_FOUND = -6,     /* no such device or platform */
  ISTHMUS_ERROR_CLOSED = -7,        /* a buffer that was freed or a queue that was closed */
  ISTHMUS_ERROR_READ_ONLY = -8,     /* a write to memory marked read-only */
  ISTHMUS_ERROR_DEVICE_LOST = -9,   /* the device is gone; its memory with it */
  ISTHMUS_ERROR_DRIVER = -10,       /* the driver refused; the message names call and code */
  ISTHMUS_ERROR_TIMEOUT = -11,      /* the time given ran out; the operation goes on */
  ISTHMUS_ERROR_DEPENDENCY = -12,   /* an event waited for had failed, so this did not run */
  ISTHMUS_ERROR_ABANDONED = -13,    /* a host event was dropped before it was completed */
  ISTHMUS_ERROR_CALLBACK = -14,     /* a function given to the library failed */
  ISTHMUS_ERROR_FORKED = -15,       /* driver work in a forked child */
  ISTHMUS_ERROR_INTERNAL = -16,     /* a fault of this library: please report it */
  ISTHMUS_ERROR_CONFLICT = -17      /* host and device both wrote the same bytes */
};

/* Message of the last failure on this thread, "" if there was none; valid until the next failure on
 * this thread. */
ISTHMUS_API const char* isthmus_error_message(void) ISTHMUS_NOEXCEPT;
/* "out of memory" for ISTHMUS_ERROR_OUT_OF_MEMORY, and so on; "unknown status" for other
 * numbers. */
ISTHMUS_API const char* isthmus_status_name(isthmus_status_t status) ISTHMUS_NOEXCEPT;

/* ---- nouns ----------------------------------------------------------------------------------- */

typedef struct isthmus_platform_t isthmus_platform_t; /* one vendor's driver, or the host */
typedef struct isthmus_device_t isthmus_device_t;
typedef struct isthmus_context_t isthmus_context_t; /* USM belongs to a context */
typedef struct isthmus_queue_t isthmus_queue_t;     /* in order */
typedef struct isthmus_event_t isthmus_event_t;
typedef struct isthmus_resource_t isthmus_resource_t; /* hands out memory of one kind */
typedef struct isthmus_scope_t isthmus_scope_t;       /* counts what is allocated within it */
typedef struct isthmus_budget_t isthmus_budget_t;     /* bytes that several pools share */
typedef struct isthmus_buffer_t isthmus_buffer_t;
typedef struct isthmus_reclaimer_t isthmus_reclaimer_t; /* a callback for when memory is short */
typedef struct isthmus_pin_t isthmus_pin_t;             /* memory of the caller's that is pinned */
typedef struct isthmus_unified_t isthmus_unified_t;     /* one array on the host and on a device */

/* USM kinds; the numbers are those of SYCL's dpctl. */
typedef int32_t isthmus_kind_t;
enum {
  ISTHMUS_KIND_UNKNOWN = 0, /* not USM known here: plain host memory, say */
  ISTHMUS_KIND_DEVICE = 1,
  ISTHMUS_KIND_SHARED = 2,
  ISTHMUS_KIND_HOST = 3
};

/* Keeps something of the caller's alive: `release(object)` is called exactly once, on any thread,
 * as soon as it is no longer needed, also when the call that took it fails. It may release buffers
 * and events of this library, call nothing else of it, and must not throw. A NULL `release` means
 * that nothing is to be done. */
typedef struct isthmus_owner_s {
  void* object;
  void (*release)(void* object);
} isthmus_owner_t;

/* ---- platforms and devices ------------------------------------------------------------------- */

/* The library to be opened for "cuda", "opencl" or "sycl", by its path, several of OpenCL joined by
 * ':'; "" for the standard one. To be called before devices are first queried: a driver is opened
 * once. ISTHMUS_CUDA_LIBRARY, ISTHMUS_OPENCL_LIBRARY and ISTHMUS_SYCL_LIBRARY in the environment
 * come first, except in programs that run with more rights than their caller. INVALID_ARGUMENT for
 * another backend. */
ISTHMUS_API isthmus_status_t isthmus_driver_library(const char* backend,
                                                    const char* path) ISTHMUS_NOEXCEPT;

typedef struct isthmus_platform_info_s {
  size_t struct_size;
  const char* backend; /* "host", "sim", "cuda", "opencl" */
  const char* name;
  const char* vendor;
  const char* version;
  const char* library; /* the driver's file as it was opened, or "" */
  size_t device_count;
} isthmus_platform_info_t;

typedef int32_t isthmus_device_type_t;
enum { ISTHMUS_DEVICE_CPU = 1, ISTHMUS_DEVICE_GPU = 2, ISTHMUS_DEVICE_ACCELERATOR = 3 };

/* What a device can do. */
enum {
  ISTHMUS_CAN_DEVICE_KIND = 1 << 0,
  ISTHMUS_CAN_SHARED_KIND = 1 << 1,
  ISTHMUS_CAN_HOST_KIND = 1 << 2,
  ISTHMUS_CAN_USM = 1 << 3,           /* kinds are true USM; without it they are emulated (SVM) */
  ISTHMUS_CAN_WAIT_FOR_HOST = 1 << 4, /* its queues can wait for events the host completes */
  ISTHMUS_CAN_PREFETCH = 1 << 5,
  ISTHMUS_CAN_ADVISE = 1 << 6,
  ISTHMUS_CAN_PROFILE = 1 << 7, /* events know their times */
  ISTHMUS_CAN_TELL_FREE_MEMORY = 1 << 8,
  ISTHMUS_CAN_RUN_FUNCTIONS = 1 << 9,  /* functions given to a queue may touch device memory */
  ISTHMUS_CAN_LEND_HANDLES = 1 << 10,  /* contexts and queues have native handles */
  ISTHMUS_CAN_REMAP = 1 << 11,         /* its memory can move between addresses: pools do so */
  ISTHMUS_CAN_WRITE_COMBINE = 1 << 12, /* of the host's, isthmus_resource_write_combined gives it */
  ISTHMUS_CAN_IPC = 1 << 13            /* device memory can be in several processes */
};

typedef struct isthmus_device_info_s {
  size_t struct_size;
  const char* backend;
  const char* filter; /* "opencl:cpu:0": finds this device again */
  const char* name;
  const char* vendor;
  const char* driver_version;
  isthmus_device_type_t type;
  uint32_t compute_units;
  uint32_t copy_engines;
  uint64_t capabilities; /* ISTHMUS_CAN_* */
  uint64_t memory_bytes;
  uint64_t max_allocation_bytes;
  uint64_t base_alignment; /* of an allocation that asks for none */
  uint64_t max_alignment;
  const char* lacks; /* what this driver lacks and what stands in for it, or "" */
} isthmus_device_info_t;

/* Platforms found; opens every driver on the first call. */
ISTHMUS_API isthmus_status_t isthmus_platform_count(size_t* count) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_platform_get(size_t index,
                                                  isthmus_platform_t** platform) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_platform_retain(isthmus_platform_t* platform) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_platform_release(isthmus_platform_t* platform) ISTHMUS_NOEXCEPT;
/* The strings live as long as the platform. */
ISTHMUS_API isthmus_status_t isthmus_platform_info(const isthmus_platform_t* platform,
                                                   isthmus_platform_info_t* info) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_platform_device(isthmus_platform_t* platform, size_t index,
                                                     isthmus_device_t** device) ISTHMUS_NOEXCEPT;

/* Drivers looked for and not usable, with the reason. The strings live for ever. */
ISTHMUS_API isthmus_status_t isthmus_absent_count(size_t* count) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_absent_get(size_t index, const char** backend,
                                                const char** reason) ISTHMUS_NOEXCEPT;

/* Finds a device by filter: up to three of back-end ("host", "sim", "cuda", "opencl"), type ("cpu",
 * "gpu", "accelerator") and number, in that order, joined by ':', as in SYCL's filter selector:
 * "gpu", "opencl:cpu:0", "cuda:1". NULL or "" is the default: the environment variable
 * ISTHMUS_DEVICE, else the best device with USM (GPUs, then accelerators, then CPU drivers, then
 * the host); simulated devices are found only by name. Only the drivers that the filter allows are
 * opened. NOT_FOUND lists what there is. */
ISTHMUS_API isthmus_status_t isthmus_device_find(const char* filter,
                                                 isthmus_device_t** device) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_device_retain(isthmus_device_t* device) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_device_release(isthmus_device_t* device) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_device_info(const isthmus_device_t* device,
                                                 isthmus_device_info_t* info) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_device_platform(
    const isthmus_device_t* device, isthmus_platform_t** platform) ISTHMUS_NOEXCEPT;
/* Free memory as the driver knows it; UNSUPPORTED where it does not. */
ISTHMUS_API isthmus_status_t isthmus_device_memory(const isthmus_device_t* device,
                                                   uint64_t* free_bytes,
                                                   uint64_t* total_bytes) ISTHMUS_NOEXCEPT;
/* The driver's own handle (OpenCL: cl_device_id), NULL where it has none (CUDA: a number, which the
 * filter ends with). */
ISTHMUS_API void* isthmus_device_native(const isthmus_device_t* device) ISTHMUS_NOEXCEPT;
/* The device of a back-end whose handle of the driver's that is (SYCL: a DPCTLSyclDeviceRef, of any
 * object for the same device). INVALID_ARGUMENT for no back-end, NOT_FOUND for a device that is not
 * listed here, and where devices have no handles. Pre: `native` is a live handle of that driver. */
ISTHMUS_API isthmus_status_t isthmus_device_find_native(const char* backend, void* native,
                                                        isthmus_device_t** device) ISTHMUS_NOEXCEPT;

/* ---- simulated devices ----------------------------------------------------------------------- */

/* A new simulated device of its own platform, for tests; `options` as in the environment variable
 * ISTHMUS_SIM, described in docs/sim.md ("capacity=64MiB,fail=copy:3"); NULL for the defaults. */
ISTHMUS_API isthmus_status_t isthmus_sim_create(const char* options,
                                                isthmus_device_t** device) ISTHMUS_NOEXCEPT;
/* Changes the options that may change while the device lives: faults, effect, bandwidth,
 * latency. */
ISTHMUS_API isthmus_status_t isthmus_sim_configure(isthmus_device_t* device,
                                                   const char* options) ISTHMUS_NOEXCEPT;
/* Driver calls made so far of one kind ("allocate", "copy", ...; "any" for all). */
ISTHMUS_API isthmus_status_t isthmus_sim_calls(const isthmus_device_t* device, const char* kind,
                                               uint64_t* count) ISTHMUS_NOEXCEPT;
/* The device's virtual time and the bytes of device and other memory now allocated on it. */
ISTHMUS_API isthmus_status_t isthmus_sim_state(const isthmus_device_t* device, uint64_t* clock_ns,
                                               uint64_t* device_bytes,
                                               uint64_t* host_bytes) ISTHMUS_NOEXCEPT;

/* ---- contexts -------------------------------------------------------------------------------- */

ISTHMUS_API isthmus_status_t isthmus_context_create(isthmus_device_t* const* devices, size_t count,
                                                    isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* The context that the platform's devices share by default; always the same one. */
ISTHMUS_API isthmus_status_t isthmus_context_default(isthmus_device_t* device,
                                                     isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* Adopts a driver's context (OpenCL: cl_context; SYCL: sycl::context, as dpctl's reference; CUDA:
 * the primary CUcontext of `device`, which gives the default context) of `device`'s platform. With
 * an owner it is kept alive by the owner, without one by the driver's own reference count. */
ISTHMUS_API isthmus_status_t isthmus_context_adopt(isthmus_device_t* device, void* native,
                                                   isthmus_owner_t owner,
                                                   isthmus_context_t** context) ISTHMUS_NOEXCEPT;
/* One driver context in two back-ends: `of`, of SYCL on OpenCL, as a context of `device`'s, an
 * OpenCL device. Memory of SYCL is then that of OpenCL too, by isthmus_buffer_adopt. UNSUPPORTED
 * for other back-ends, and where this version of SYCL's library gives no native handles;
 * WRONG_CONTEXT where `device` is none of its devices. */
ISTHMUS_API isthmus_status_t isthmus_context_share(isthmus_context_t* of, isthmus_device_t* device,
                                                   isthmus_context_t** context) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_context_retain(isthmus_context_t* context) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_context_release(isthmus_context_t* context) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_context_device_count(const isthmus_context_t* context,
                                                          size_t* count) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_context_device(const isthmus_context_t* context, size_t index,
                                                    isthmus_device_t** device) ISTHMUS_NOEXCEPT;
/* Two handles that stand for the same driver context are equal: compare these keys. */
ISTHMUS_API uintptr_t isthmus_context_key(const isthmus_context_t* context) ISTHMUS_NOEXCEPT;
/* The driver's own handle, NULL where it has none; valid while `context` lives. */
ISTHMUS_API void* isthmus_context_native(const isthmus_context_t* context) ISTHMUS_NOEXCEPT;

/* ---- queues ---------------------------------------------------------------------------------- */

/* `context` NULL: the default context of `device`. */
ISTHMUS_API isthmus_status_t isthmus_queue_create(isthmus_context_t* context,
                                                  isthmus_device_t* device,
                                                  isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
/* One queue per device on its default context, made when first asked for; `device` NULL: the
 * default device. Cheap: no device selection after the first call. */
ISTHMUS_API isthmus_status_t isthmus_queue_default(isthmus_device_t* device,
                                                   isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
/* Adopts a driver's queue (OpenCL: cl_command_queue; SYCL: sycl::queue, as dpctl's reference;
 * CUDA: CUstream) of `device`'s platform. Where it is out of order, every operation of this
 * library stands behind a barrier; one that is out of order on a CPU is asked whether it still
 * uses what was freed only within a call: a wait for a queue, a trim, isthmus_live, a query of a
 * resource, or once 64 MiB or 64 pieces of such memory wait, an allocation or adoption (Intel's
 * OpenCL runtime fails where one thread waits for such a queue while another puts work there).
 * WRONG_CONTEXT for a queue of another device. One of SYCL's, however often it is adopted, is one
 * queue here. Ownership as in isthmus_context_adopt, but that CUDA counts no references: a stream
 * lives as long as its owner says, without one as long as the queue and the memory that was used
 * on it. A stream that the library made gives its own queue again; CLOSED if that is gone.
 * CU_STREAM_PER_THREAD gives the calling thread's one queue for it, which needs no owner: `owner`
 * is released at once. That queue may be used on any thread, and later than its own thread: from
 * others its operations go to the legacy default stream, which is the same order. CLOSED on a
 * thread that is ending. NULL is refused, also for CUDA's default stream: give CU_STREAM_LEGACY. */
ISTHMUS_API isthmus_status_t isthmus_queue_adopt(isthmus_device_t* device, void* native,
                                                 isthmus_owner_t owner,
                                                 isthmus_queue_t** queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_queue_retain(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_queue_release(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_device_t* isthmus_queue_device(const isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_context_t* isthmus_queue_context(const isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Two handles that stand for the same driver queue have the same key. */
ISTHMUS_API uintptr_t isthmus_queue_key(const isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* The driver's handle: NULL where it has none and, with an error message, where the driver refuses
 * to order it. From here on it may have work of others: what is freed on it waits for a fence. */
ISTHMUS_API void* isthmus_queue_native(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* 1 where nothing that the library submitted is pending, else 0. */
ISTHMUS_API int isthmus_queue_idle(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Waits for all submitted so far. TIMEOUT after `timeout_ns`; negative waits for ever. */
ISTHMUS_API isthmus_status_t isthmus_queue_wait(isthmus_queue_t* queue,
                                                int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* An event that completes, with success, once all submitted so far has ended; of a closed queue
 * too. Puts nothing on the queue unless its handle was lent. */
ISTHMUS_API isthmus_status_t isthmus_queue_pending(isthmus_queue_t* queue,
                                                   isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event that completes when all submitted so far, and all of `after`, has. */
ISTHMUS_API isthmus_status_t isthmus_queue_fence(isthmus_queue_t* queue,
                                                 isthmus_event_t* const* after, size_t after_count,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event that completes when all submitted so far has, and that knows when, to be given to
 * isthmus_event_elapsed. */
ISTHMUS_API isthmus_status_t isthmus_queue_mark(isthmus_queue_t* queue,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Refuses further work with CLOSED; what is submitted still runs. Never blocks. Not allowed on the
 * default queue of a device. */
ISTHMUS_API isthmus_status_t isthmus_queue_close(isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* What a function given to a queue sees of one buffer: `data` may be touched until it returns. */
typedef struct isthmus_view_s {
  void* data;
  size_t nbytes;
} isthmus_view_t;
/* Returns ISTHMUS_OK, or any error status with a message copied from `message` (may be NULL). */
typedef isthmus_status_t (*isthmus_function_t)(void* object, const isthmus_view_t* views,
                                               size_t view_count, const char** message);
/* Runs `function(owner.object, ...)` on a thread of the library in the queue's order, with views of
 * the buffers; `owner.release` is called afterwards, or at once on failure. Buffers of device kind
 * need ISTHMUS_CAN_RUN_FUNCTIONS. */
ISTHMUS_API isthmus_status_t isthmus_queue_submit(
    isthmus_queue_t* queue, isthmus_function_t function, isthmus_owner_t owner,
    isthmus_buffer_t* const* buffers, size_t buffer_count, isthmus_event_t* const* after,
    size_t after_count, isthmus_event_t** event) ISTHMUS_NOEXCEPT;

/* ---- events ---------------------------------------------------------------------------------- */

ISTHMUS_API void isthmus_event_retain(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* An uncompleted host event whose last reference goes is completed with ABANDONED, so that no queue
 * waits for ever. */
ISTHMUS_API void isthmus_event_release(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* ISTHMUS_PENDING, ISTHMUS_OK, or the error the operation ended with. Does not block. */
ISTHMUS_API isthmus_status_t isthmus_event_status(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* Waits for completion and gives the operation's own status; TIMEOUT after `timeout_ns` (negative
 * waits for ever, 0 polls). */
ISTHMUS_API isthmus_status_t isthmus_event_wait(isthmus_event_t* event,
                                                int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* Writes 8 bytes (the number 1) to a copy of the descriptor `fd`, an eventfd or the like, when the
 * event completes, at once if it has: what event loops wait for. Never blocks, raises no SIGPIPE:
 * a full pipe is told nothing. */
ISTHMUS_API isthmus_status_t isthmus_event_notify(isthmus_event_t* event, int fd) ISTHMUS_NOEXCEPT;
/* Calls `owner.release(owner.object)` on completion, at once if complete; on any thread. */
ISTHMUS_API isthmus_status_t isthmus_event_then(isthmus_event_t* event,
                                                isthmus_owner_t owner) ISTHMUS_NOEXCEPT;
/* Adopts a driver's event (SYCL: sycl::event, as dpctl's reference), which completes when the
 * driver says so. Ownership as in isthmus_context_adopt. INVALID_ARGUMENT, UNSUPPORTED for other
 * drivers, DRIVER. */
ISTHMUS_API isthmus_status_t isthmus_event_adopt(isthmus_context_t* context, void* native,
                                                 isthmus_owner_t owner,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event that the host completes. */
ISTHMUS_API isthmus_status_t isthmus_event_create(isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Completes a host event: `status` OK or an error other than TIMEOUT, `message` may be NULL.
 * INVALID_ARGUMENT for an event of a driver's or one completed before. */
ISTHMUS_API isthmus_status_t isthmus_event_complete(isthmus_event_t* event, isthmus_status_t status,
                                                    const char* message) ISTHMUS_NOEXCEPT;
/* Times of a completed operation on its device's clock; UNSUPPORTED where the driver keeps none,
 * PENDING before completion. */
ISTHMUS_API isthmus_status_t isthmus_event_times(isthmus_event_t* event, uint64_t* submitted_ns,
                                                 uint64_t* started_ns,
                                                 uint64_t* ended_ns) ISTHMUS_NOEXCEPT;
/* Nanoseconds from the end of `earlier` to that of `event`, on their device's clock; below 0
 * where it was the other way. PENDING before both have completed. Of two marks of queues of one
 * device; of other events where they know their times. UNSUPPORTED where the driver keeps none,
 * and for events of the host, INVALID_ARGUMENT for events of two devices and for failed ones. */
ISTHMUS_API isthmus_status_t isthmus_event_elapsed(isthmus_event_t* event, isthmus_event_t* earlier,
                                                   int64_t* elapsed_ns) ISTHMUS_NOEXCEPT;
/* The back-end that made it, such as "cuda"; "host" for one that the host completes. */
ISTHMUS_API const char* isthmus_event_backend(isthmus_event_t* event) ISTHMUS_NOEXCEPT;
/* The driver's own event where it has one (OpenCL: cl_event; SYCL: sycl::event; CUDA: CUevent),
 * NULL otherwise; valid while `event` lives. */
ISTHMUS_API void* isthmus_event_native(isthmus_event_t* event) ISTHMUS_NOEXCEPT;

/* ---- memory resources ------------------------------------------------------------------------ */

/* The driver's own allocator for one kind on one context and device; NULL device: the context's
 * first. */
ISTHMUS_API isthmus_status_t
isthmus_resource_provider(isthmus_context_t* context, isthmus_device_t* device, isthmus_kind_t kind,
                          isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The same of host kind, write-combined: past the host's caches, so that a device reads it without
 * asking these and the host writes it as fast as ever, in order and whole. To read it takes the
 * host some hundred times as long, and to write single bytes here and there too. Choose it for
 * what the host writes once and devices read. UNSUPPORTED without ISTHMUS_CAN_WRITE_COMBINE. A
 * pool of it is isthmus_resource_pool_over. */
ISTHMUS_API isthmus_status_t
isthmus_resource_write_combined(isthmus_context_t* context, isthmus_device_t* device,
                                isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Bytes as people write them: "4096", "64MiB", "1.5GiB" (B, KiB, MiB, GiB, TiB), or a share, "80%",
 * of the memory that there is for `kind` on `device`: what the device has, or, for memory that lies
 * in the host's, what of that this process may have, its control groups' limits included. `device`
 * may be NULL, and `kind` anything, for what is no share. INVALID_ARGUMENT for any other text. */
ISTHMUS_API isthmus_status_t isthmus_bytes_parse(const char* text, isthmus_device_t* device,
                                                 isthmus_kind_t kind,
                                                 uint64_t* bytes) ISTHMUS_NOEXCEPT;

/* A budget is a number of bytes that several pools, of any kinds and devices, may have of their
 * drivers' memory together, in use and free alike. A pool that would go over it gives back its own
 * free memory, then asks the others for theirs, and then fails with OUT_OF_MEMORY and a message
 * that says which pool holds what. What threads other than the asking one keep of small and recent
 * blocks is not free. Safe for threads; a pool waits for no other, but for a growth or a trim of it
 * that is under way. INVALID_ARGUMENT for 0 bytes. */
ISTHMUS_API isthmus_status_t isthmus_budget_create(uint64_t limit_bytes,
                                                   isthmus_budget_t** budget) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_budget_retain(isthmus_budget_t* budget) ISTHMUS_NOEXCEPT;
/* Its pools keep it too. */
ISTHMUS_API void isthmus_budget_release(isthmus_budget_t* budget) ISTHMUS_NOEXCEPT;
typedef struct isthmus_budget_info_s {
  size_t struct_size;
  uint64_t limit_bytes;
  uint64_t held_bytes;      /* by its pools, and for blocks of pools that have gone */
  uint64_t free_bytes;      /* of those, what no caller, thread or size class has */
  uint64_t peak_held_bytes; /* so far */
  uint64_t pools;           /* that live */
  uint64_t refusals;        /* times that a pool asked for what did not fit at once */
  uint64_t reclaimed_bytes; /* that pools gave back for others so far */
} isthmus_budget_info_t;
ISTHMUS_API isthmus_status_t isthmus_budget_query(isthmus_budget_t* budget,
                                                  isthmus_budget_info_t* info) ISTHMUS_NOEXCEPT;

/* A pool keeps what is freed for what comes next: an allocation and its free take some ten
 * nanoseconds, whatever the driver's take. Requests up to 256 KiB are rounded up to a size class
 * (at most 1/8 more), larger ones to 64 KiB. Memory freed behind work on a queue is reused at once
 * on that queue, elsewhere when that work has ended. Where the device has ISTHMUS_CAN_REMAP, free
 * memory moves to where a larger request needs it. Safe for threads. */
enum {
  ISTHMUS_POOL_UNCHECKED = 1u << 0, /* does not look for misuse of small blocks; some 3 ns less */
  ISTHMUS_POOL_NO_REMAP = 1u << 1,  /* its memory stays where it is */
  /* A request that finds nothing else takes memory that work on other queues still uses, and its
     own queue waits for that work, on the device. */
  ISTHMUS_POOL_DEVICE_WAIT = 1u << 2
};
typedef struct isthmus_pool_options_s {
  size_t struct_size;
  uint64_t initial_bytes; /* asked of the driver at once; 0: none */
  uint64_t growth_bytes;  /* asked at a time, at least; 0: 32 MiB, or 1/128 of what it holds if its
                             memory can move */
  uint64_t limit_bytes;   /* never held more; 0: no limit */
  uint32_t flags;
  /* Beyond it the pool gives back all that is free before it grows, and then grows by no more than
     is needed; 0: none. At most `limit_bytes`. */
  uint64_t soft_limit_bytes;
  isthmus_budget_t* budget; /* shared with other pools, which keep it alive; NULL: none */
  /* What is free and was not needed for so long goes back to the driver: within twice this time, by
     a growth or a trim of the pool or on a thread of the library that is idle, if there is one
     already. What threads keep of small and recent blocks stays while they work. 0: never. */
  uint64_t decay_ns;
  int64_t wait_ns; /* longest that a request waits for work that freed memory lies behind, before
                      there is none; 0: 1 s, negative: not at all; a year at most, as a wait
                      without an end may deadlock */
} isthmus_pool_options_t;
/* `options` NULL: the defaults; those behind `flags` may be left out, with a smaller `struct_size`.
 * With its last reference a pool gives its memory back to the driver,
 * once the work on it has ended; blocks that were not deallocated by then stay valid and are never
 * given back. OUT_OF_MEMORY if the driver has not `initial_bytes`. */
ISTHMUS_API isthmus_status_t isthmus_resource_pool(isthmus_context_t* context,
                                                   isthmus_device_t* device, isthmus_kind_t kind,
                                                   const isthmus_pool_options_t* options,
                                                   isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* The same over a resource in place of the driver, of its context, device and kind; the pool keeps
 * it. Upstream is asked for pieces of at least `growth_bytes`, aligned to 64 KiB or that much
 * larger, on a queue of the pool's own that has no work, and given back exactly these: by what asks
 * the driver else, with no lock held, so by several threads at once, never by a free. Its
 * OUT_OF_MEMORY makes the pool climb its rungs, where a trim goes on to upstream; any other error
 * is the request's. Such memory stays where it is (ISTHMUS_POOL_NO_REMAP). UNSUPPORTED for an
 * upstream that stands on a pool, or that gives memory of several kinds, or a monotonic one; memory
 * that a pool keeps already is refused as it comes, with CALLBACK. */
ISTHMUS_API isthmus_status_t
isthmus_resource_pool_over(isthmus_resource_t* upstream, const isthmus_pool_options_t* options,
                           isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The pool that memory comes from where the caller names no resource: one for each kind of memory
 * of a device in a context, for all languages. `queue` NULL: the default queue. Made when it is
 * first needed, with the default options but for `decay_ns`, which is 10 s: what was not needed for
 * that long goes back to the driver. It stays while a reference to it or memory of it is in use.
 * ISTHMUS_DEFAULT_POOL_OF_ARRAYS: what arrays come from, rather than buffers. It is the same pool
 * except on devices with ISTHMUS_CAN_IPC whose memory can move (CUDA): there buffers come from a
 * pool with ISTHMUS_POOL_NO_REMAP, so that isthmus_buffer_ipc_handle and other libraries can share
 * their memory with other processes. UNSUPPORTED for a kind that the device lacks. Some ten
 * nanoseconds. */
enum { ISTHMUS_DEFAULT_POOL_OF_ARRAYS = 1u << 0 };
ISTHMUS_API isthmus_status_t isthmus_default_pool(isthmus_queue_t* queue, isthmus_kind_t kind,
                                                  uint32_t flags,
                                                  isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Has all default pools return to their drivers what they have free. `bytes`, which may be NULL, is
 * how much that was. */
ISTHMUS_API isthmus_status_t isthmus_default_pools_trim(uint64_t* bytes) ISTHMUS_NOEXCEPT;

ISTHMUS_API void isthmus_resource_retain(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_resource_release(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;
/* Allocates `nbytes` ordered by `queue` (of the resource's context). `alignment` 0 or a power of
 * two. A request of 0 bytes gives NULL. */
ISTHMUS_API isthmus_status_t isthmus_resource_allocate(isthmus_resource_t* resource, size_t nbytes,
                                                       size_t alignment, isthmus_queue_t* queue,
                                                       void** pointer) ISTHMUS_NOEXCEPT;
/* Gives back what isthmus_resource_allocate gave, behind the work on `queue`; NULL `queue`: nothing
 * uses it but what the library knows of, and what was on the queue that it was allocated for before
 * that has ended. NULL `pointer`: nothing to do. INVALID_ARGUMENT for what did not come from here,
 * lies inside a block, or was deallocated before (an unchecked pool cannot always tell): nothing is
 * done then. Does not fail otherwise, and never blocks, unless a pool has more than 65,533 queues
 * in use at a time: behind work on one more it waits for that. Of a pool never calls the driver but
 * then, and where the queue's handle was lent, and needs no memory: where the queue cannot be asked
 * what runs there, the block waits till it can. */
ISTHMUS_API isthmus_status_t isthmus_resource_deallocate(isthmus_resource_t* resource,
                                                         void* pointer, size_t nbytes,
                                                         size_t alignment,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* The block that holds `pointer` is in use by work that the library does not know: until `event`,
 * or all now on `queue`, has completed, it is not reused, though it be freed, and operations on
 * other queues wait. For memory in buffers there is isthmus_buffer_record_*. NOT_FOUND for memory
 * that is none of the library's, INVALID_ARGUMENT for a pool's that is not allocated. */
ISTHMUS_API isthmus_status_t isthmus_record_event(const void* pointer,
                                                  isthmus_event_t* event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_record_queue(const void* pointer,
                                                  isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;
/* Gives what is free back to the driver while more than `keep_bytes` are held, and what decayed
 * even then, with what threads keep for themselves. `given_back` (may be NULL): bytes. A provider
 * has nothing to give. */
ISTHMUS_API isthmus_status_t isthmus_resource_trim(isthmus_resource_t* resource,
                                                   uint64_t keep_bytes,
                                                   uint64_t* given_back) ISTHMUS_NOEXCEPT;
typedef struct isthmus_resource_info_s {
  size_t struct_size;
  isthmus_kind_t kind;
  uint32_t kinds;           /* that it may give: 1u << kind, and the same of each other one */
  isthmus_device_t* device; /* borrowed */
  uint64_t held_bytes;      /* of the driver's; of a provider: what it handed out */
  uint64_t free_bytes;      /* of those, what no caller, thread or size class has */
  /* Times that the driver gave it memory, or mapped some where it was needed, and that it got some
   * back, or took some from where it was. */
  uint64_t maps;
  uint64_t unmaps;
} isthmus_resource_info_t;
/* `maps` and `unmaps` may be left out, with a smaller `struct_size`. */
ISTHMUS_API isthmus_status_t isthmus_resource_query(isthmus_resource_t* resource,
                                                    isthmus_resource_info_t* info) ISTHMUS_NOEXCEPT;
/* Live blocks that tracking resources know of, by the tag that they were allocated under. */
typedef struct isthmus_holder_s {
  const char* tag; /* NULL: under none */
  uint64_t bytes;  /* as requested */
  uint64_t count;
} isthmus_holder_t;
enum { ISTHMUS_MOST_HOLDERS = 8 };
/* How a pool's memory is divided, counted for the call; what others do meanwhile may be seen in
 * part. Takes some milliseconds where it holds very much. */
typedef struct isthmus_snapshot_s {
  size_t struct_size;
  uint64_t held_bytes;    /* of the driver's; all below together */
  uint64_t live_bytes;    /* callers have it; of an unchecked pool all of its small blocks */
  uint64_t cached_bytes;  /* by threads and in slabs of one size class, for the next caller */
  uint64_t waiting_bytes; /* free once the work that it was freed behind has ended */
  uint64_t free_bytes;    /* for anybody */
  /* The largest request that the pool serves now without more of the driver's memory: of the
   * calling thread, on the queue that it used the pool on last (without one, on a new queue). Of
   * free memory, joined or moved as requests do it, of blocks that this thread or a size class
   * keeps, and of memory freed behind work on that queue. What other threads keep does not count,
   * though a request may get it once they have not used it for a while; nor does what waits for
   * work of other queues. */
  uint64_t largest_free_bytes;
  /* Who holds most of it, as far as tracking resources over the pool know, the largest first. */
  size_t holder_count;
  isthmus_holder_t holders[ISTHMUS_MOST_HOLDERS];
  /* Of an error: the request that found no memory, and its pool's device and kind. 0 or NULL in a
     pool's own snapshot. */
  const char* device; /* its filter; lives till the thread's next such error */
  isthmus_kind_t kind;
  uint32_t rungs; /* that were tried: 1u << isthmus_rung_t of each */
  uint64_t requested_bytes;
  const char* advice; /* what to do, as in the message; lives for ever */
} isthmus_snapshot_t;
/* The fields behind `largest_free_bytes`, or behind `holders`, may be left out, with a smaller
 * `struct_size`, here and below. UNSUPPORTED for a resource that is no pool. */
ISTHMUS_API isthmus_status_t isthmus_resource_snapshot(
    isthmus_resource_t* resource, isthmus_snapshot_t* snapshot) ISTHMUS_NOEXCEPT;
/* Of the request that this thread's last error is about, if it was a pool's for lack of memory;
 * else NOT_FOUND, and the last error stays. */
ISTHMUS_API isthmus_status_t isthmus_error_snapshot(isthmus_snapshot_t* snapshot) ISTHMUS_NOEXCEPT;

/* What a pool does, in this order, before it says that there is no memory: nothing for a request
 * that is above its limit or its budget's, and only the first three inside a driver's callback. */
typedef int32_t isthmus_rung_t;
enum {
  ISTHMUS_RUNG_SETTLE = 0,      /* what this thread keeps, and what waits no longer, is free */
  ISTHMUS_RUNG_REVOKE = 1,      /* so is what threads keep that have not used it for 10 ms or more;
                                   looked for every 10 ms at most */
  ISTHMUS_RUNG_GROW = 2,        /* the driver is asked for more */
  ISTHMUS_RUNG_TRIM = 3,        /* all that is free goes back to the driver, with what any thread
                                   keeps, and the driver is asked again */
  ISTHMUS_RUNG_BUDGET = 4,      /* other pools of its budget give back what they have free; where
                                   the driver refused, so do all pools of that memory */
  ISTHMUS_RUNG_DEVICE_WAIT = 5, /* the request's queue waits, on the device, for work of others:
                                   with ISTHMUS_POOL_DEVICE_WAIT */
  ISTHMUS_RUNG_RECLAIM = 6,     /* reclaim callbacks give memory up */
  ISTHMUS_RUNG_WAIT = 7         /* the host waits, `wait_ns` at most */
};
/* As in an error's message; NULL for a rung that is none. */
ISTHMUS_API const char* isthmus_rung_name(isthmus_rung_t rung) ISTHMUS_NOEXCEPT;
/* How often a pool came to a rung, and how often it met a request there. Either may be NULL.
 * UNSUPPORTED for a resource that is no pool; NOT_FOUND for a rung that is none. */
ISTHMUS_API isthmus_status_t isthmus_resource_rung(isthmus_resource_t* resource,
                                                   isthmus_rung_t rung, uint64_t* tried,
                                                   uint64_t* served) ISTHMUS_NOEXCEPT;

/* How far requests of the calling thread go, until it is swapped again. 1: up to the rung grow at
 * most, as those behind it may take long, and need locks that the caller may hold, as an
 * interpreter's. No reclaim callback is called then for others' either. 2: a pool gives no more
 * than it keeps ready for this thread on the queue that the thread used last, if nobody else puts
 * work to its stream, without a lock or a driver's call; beyond that it is OUT_OF_MEMORY, for
 * resources over it too. Without a pool as with 1. Returns what it was, 0 at first: requests go all
 * the way. Any other number is taken as the nearest of these. */
ISTHMUS_API int isthmus_no_wait_swap(int no_wait) ISTHMUS_NOEXCEPT;

/* What may end a wait of the calling thread early, on a signal say. While a request for memory
 * waits, an export or a unified buffer's device copy for other queues, or isthmus_reclaimer_remove,
 * `function(object, &message)` is called on that thread about every 50 ms. With 0 the wait goes on.
 * Else the call fails with CALLBACK and the text at `message` (copied; NULL: one of the library's),
 * and nothing was done: no memory is held, and the same call may be made again. Other waits have a
 * timeout of their own, or cannot be undone: they do not call it. It may call the library, must not
 * throw, and must not wait for a thread that is in a call on the same unified buffer. */
typedef struct isthmus_interrupt_s {
  int (*function)(void* object, const char** message); /* NULL: waits are not interrupted */
  void* object;
} isthmus_interrupt_t;
/* Until it is swapped again. Returns what it was: at first no function. */
ISTHMUS_API isthmus_interrupt_t isthmus_interrupt_swap(isthmus_interrupt_t interrupt)
    ISTHMUS_NOEXCEPT;

/* Reclaim callbacks: asked, when a pool finds no memory, or the driver has none for who asks it
 * himself, to give up what they can (a cache, say). Called on the thread that asks for memory,
 * before it waits for anything, with no lock of the library held; by several threads at once if
 * several find none; never from inside one, nor in a driver's callback. It may allocate and free,
 * and must not throw. Returns about how many bytes it gave up: 0 is no error, but the driver is not
 * asked again. */
typedef struct isthmus_reclaim_request_s {
  size_t struct_size;
  isthmus_device_t* device; /* borrowed */
  isthmus_kind_t kind;
  uint64_t nbytes; /* that are needed */
} isthmus_reclaim_request_t;
typedef uint64_t (*isthmus_reclaim_t)(void* object, const isthmus_reclaim_request_t* request);
/* For the whole process, called with `owner.object`, behind those that were added before.
 * The library keeps it until it is removed. */
ISTHMUS_API isthmus_status_t
isthmus_reclaimer_add(isthmus_reclaim_t function, isthmus_owner_t owner,
                      isthmus_reclaimer_t** reclaimer) ISTHMUS_NOEXCEPT;
/* No call of it begins any more once this returns, and with `wait` not 0 none runs: the caller
 * holds no lock then that a callback takes. From inside a callback, this one or another, it does
 * not wait; where the thread's isthmus_interrupt_t ends the wait one may still run. Lets go of the
 * handle, and of the owner once the last call has ended. Nothing for NULL. */
ISTHMUS_API void isthmus_reclaimer_remove(isthmus_reclaimer_t* reclaimer,
                                          int wait) ISTHMUS_NOEXCEPT;

/* ---- memory resources over others, and of the caller's own ----------------------------------- */

/* What a resource of the caller's own does. Called from any thread, several at a time, and from
 * threads of the library; may call the library, but must not wait there for work on a queue. */
typedef struct isthmus_resource_operations_s {
  size_t struct_size;
  /* Memory of the resource's kind, aligned to `alignment`, a power of two (the device's own where
   * the request names none). It is used by work on `queue` and may be used by work on others.
   * Returns ISTHMUS_OK, or any error with a message copied from `message` (may be NULL):
   * OUT_OF_MEMORY where it has none left. What is NULL, is aligned otherwise, or is of another kind
   * or device as far as the driver can tell is refused, with CALLBACK, and given back. */
  isthmus_status_t (*allocate)(void* object, size_t nbytes, size_t alignment,
                               isthmus_queue_t* queue, void** pointer, const char** message);
  /* Takes back what `allocate` gave, with the size asked for. No work uses it any more; `queue`
   * (may be NULL) is the one that it was allocated on. Must not fail or throw. Never called once
   * the process ends, nor in a forked child. */
  void (*deallocate)(void* object, void* pointer, size_t nbytes, isthmus_queue_t* queue);
  /* As isthmus_resource_query tells; NULL: holds nothing. */
  void (*usage)(void* object, uint64_t* held_bytes, uint64_t* free_bytes);
  /* As isthmus_resource_trim; gives the bytes given back. NULL: has nothing to give. */
  uint64_t (*trim)(void* object, uint64_t keep_bytes);
} isthmus_resource_operations_t;
/* A resource that calls `operations` (copied) with `owner.object`, and releases the owner when
 * nothing refers to the resource or its memory any more. It may give out parts of memory that it
 * has from this library, which lives as long as these parts. */
ISTHMUS_API isthmus_status_t
isthmus_resource_custom(isthmus_context_t* context, isthmus_device_t* device, isthmus_kind_t kind,
                        const isthmus_resource_operations_t* operations, isthmus_owner_t owner,
                        isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* The resources below stand on another, which they keep alive and whose kind, context and device
 * they have. What they hand out is given back to them, not to what they stand on; of a pool's
 * blocks the pool cannot tell which of several resources over it handed them out, and then their
 * counts are wrong, but no count goes below 0. Usage and trim are those of what is at the bottom,
 * each once. */

/* Counts what goes through it. The counts are exact, each by itself, with threads too; `nbytes` of
 * a deallocation must be what allocate was given. Buffers count until they are freed, also where
 * their memory goes back later, when the work on it has ended. */
ISTHMUS_API isthmus_status_t isthmus_resource_statistics(
    isthmus_resource_t* upstream, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
typedef struct isthmus_statistics_s {
  size_t struct_size;
  uint64_t current_bytes; /* live now, as requested */
  uint64_t current_count;
  uint64_t peak_bytes; /* the most that were live at a time since the beginning or the reset */
  uint64_t peak_count;
  uint64_t total_bytes; /* allocated since then */
  uint64_t total_count;
} isthmus_statistics_t;
/* INVALID_ARGUMENT for a resource that does not count. */
ISTHMUS_API isthmus_status_t isthmus_statistics_query(
    isthmus_resource_t* resource, isthmus_statistics_t* statistics) ISTHMUS_NOEXCEPT;
/* The peaks become what is live now, the totals 0. INVALID_ARGUMENT as above. */
ISTHMUS_API isthmus_status_t isthmus_statistics_reset(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;
/* Counts what is allocated from `resource`, which counts, by threads while they are in the scope,
 * and that memory's end, wherever and whenever it comes. Who is in a scope is in its `outer` one
 * too (NULL: none; it may be of another resource), which it keeps alive with those around it.
 * INVALID_ARGUMENT as above. */
ISTHMUS_API isthmus_status_t isthmus_scope_create(isthmus_resource_t* resource,
                                                  isthmus_scope_t* outer,
                                                  isthmus_scope_t** scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_scope_retain(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_scope_release(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
/* The calling thread is in `scope` from here on (NULL: in none), which the caller keeps alive till
 * the thread has left it; gives the one that it was in, NULL for none. Takes some nanoseconds:
 * run-times of coroutines may call it at each switch. */
ISTHMUS_API isthmus_scope_t* isthmus_scope_swap(isthmus_scope_t* scope) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_scope_query(isthmus_scope_t* scope,
                                                 isthmus_statistics_t* statistics) ISTHMUS_NOEXCEPT;
/* The same, less memory from outside of the scope that threads freed while they were in it. Where
 * that is more, `current_bytes` and `current_count` are below 0, as two's complement, and the peaks
 * are those of these counts, at least 0. */
ISTHMUS_API isthmus_status_t
isthmus_scope_query_net(isthmus_scope_t* scope, isthmus_statistics_t* statistics) ISTHMUS_NOEXCEPT;

/* Refuses with OUT_OF_MEMORY what would make more than `limit_bytes`, as requested, live at a
 * time; the message names the request, the limit and what is in use. `nbytes` of a deallocation
 * must be what allocate was given. */
ISTHMUS_API isthmus_status_t isthmus_resource_limit(isthmus_resource_t* upstream,
                                                    uint64_t limit_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* INVALID_ARGUMENT for a resource that limits nothing. Outputs may be NULL. */
ISTHMUS_API isthmus_status_t isthmus_limit_query(isthmus_resource_t* resource,
                                                 uint64_t* limit_bytes,
                                                 uint64_t* in_use_bytes) ISTHMUS_NOEXCEPT;

/* Asks `second`, of the same context, where `first` has no memory (OUT_OF_MEMORY alone). Its kind
 * and device are the first's; what the second gives may be of other ones, and a buffer tells the
 * kind that it has. Memory goes back to the one that it came from. */
ISTHMUS_API isthmus_status_t
isthmus_resource_fallback(isthmus_resource_t* first, isthmus_resource_t* second,
                          isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Aligns requests of at least `from_bytes` to `alignment`, a power of two, or to more where they
 * ask for it. */
ISTHMUS_API isthmus_status_t
isthmus_resource_aligned(isthmus_resource_t* upstream, size_t alignment, size_t from_bytes,
                         isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Requests of at most `most_bytes` go to `resource`. */
typedef struct isthmus_bin_s {
  size_t most_bytes;
  isthmus_resource_t* resource;
} isthmus_bin_t;
/* Each request goes to the first bin, of growing sizes, that it fits in, larger ones to `upstream`;
 * all of one context, of any kinds. `nbytes` of a deallocation must be what allocate was given: it
 * says where the memory goes back to. */
ISTHMUS_API isthmus_status_t
isthmus_resource_binning(isthmus_resource_t* upstream, const isthmus_bin_t* bins, size_t count,
                         isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Writes a row of each allocation, failure and free to a file, which is made or emptied, in the
 * columns of RMM's logs: Thread,Time,Action,Pointer,Size,Stream. Rows are written some thousands at
 * a time by threads that allocate, when they are flushed, with the last reference, and when the
 * process ends by `exit`; any other end loses those that were not. INVALID_ARGUMENT for a file that
 * cannot be made, or that another log is being written to, of this process or another one. */
ISTHMUS_API isthmus_status_t isthmus_resource_log(isthmus_resource_t* upstream, const char* path,
                                                  isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Writes all rows up to the first free that is under way on another thread. INVALID_ARGUMENT for a
 * resource that keeps no log; DRIVER, once, where rows were lost since the last time, because the
 * file took no more. */
ISTHMUS_API isthmus_status_t isthmus_log_flush(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;

/* Finds writes beside blocks and to freed ones, for programs under test. Each block lies between
 * red zones of 64 bytes, or of its alignment if that is more, and `kept_bytes` of freed blocks are
 * poisoned and kept for a while. An allocation waits for its queue; in a callback, which may not
 * wait, a block passes unchecked. Memory is freed when nothing uses it any more. What is found is
 * told on the standard error stream and by isthmus_resource_verify; a block that was written beside
 * stays till the resource ends. UNSUPPORTED for an upstream that may give device memory, which
 * the host cannot look at, and for a monotonic one, which lets go of blocks that nobody freed. */
ISTHMUS_API isthmus_status_t isthmus_resource_debug(isthmus_resource_t* upstream,
                                                    uint64_t kept_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Looks at all that the resource, and those that it stands on, know of themselves: INTERNAL where a
 * pool's records contradict one another, INVALID_ARGUMENT where a debug resource found damage, now
 * or before. Takes long, and holds others up meanwhile. */
ISTHMUS_API isthmus_status_t isthmus_resource_verify(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;

/* Called with the size that upstream refused with OUT_OF_MEMORY, on the thread that asked, with no
 * lock held: it may free and allocate. `*retry` (0 before) is set to 1 for another try. Returns
 * ISTHMUS_OK, or an error that the request then ends with, with a message copied from `message`. */
typedef isthmus_status_t (*isthmus_failure_function_t)(void* object, size_t nbytes, int* retry,
                                                       const char** message);
ISTHMUS_API isthmus_status_t isthmus_resource_failure_callback(
    isthmus_resource_t* upstream, isthmus_failure_function_t function, isthmus_owner_t owner,
    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Tags: names that threads allocate under, for whoever tells who holds memory. `tag` becomes the
 * one text of that name, which lives for ever: equal names have equal addresses. INVALID_ARGUMENT
 * for an empty name. */
ISTHMUS_API isthmus_status_t isthmus_tag_find(const char* name, const char** tag) ISTHMUS_NOEXCEPT;
/* The calling thread allocates under `tag` from here on, which isthmus_tag_find gave (NULL: under
 * none); gives the one before. Takes some nanoseconds. */
ISTHMUS_API const char* isthmus_tag_swap(const char* tag) ISTHMUS_NOEXCEPT;

/* Gives a text of frames that are no native code, an interpreter's say, a line for each, the
 * innermost first; NULL or "" for none. Called on the thread that allocates, with no lock held; it
 * may allocate. The text is copied. */
typedef const char* (*isthmus_stack_function_t)(void* object);
enum { ISTHMUS_MOST_FRAMES = 64 };
/* Knows every block that went through it and is live; a free of what it does not know is
 * INVALID_ARGUMENT. Some ten nanoseconds more for an allocation with its free, whatever the number
 * of blocks, and 64 to 256 bytes of the host's for each. `frames` (0 to ISTHMUS_MOST_FRAMES): so
 * many frames of native code are kept of each allocation, which takes a microsecond or more; 0:
 * none. `function` (may be NULL) is asked for others, with `owner.object`. INVALID_ARGUMENT for
 * more frames. isthmus_pointer_query tells what it knows. */
ISTHMUS_API isthmus_status_t isthmus_resource_tracking(
    isthmus_resource_t* upstream, uint32_t frames, isthmus_stack_function_t function,
    isthmus_owner_t owner, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
typedef struct isthmus_tracked_s {
  size_t struct_size;
  void* pointer;
  size_t nbytes;       /* as requested */
  uintptr_t queue_key; /* of the queue that it was allocated on */
  uint64_t order;      /* grows with the time of the allocation; has no unit */
  uint64_t thread;     /* that allocated it, as the system numbers it */
  const char* tag;     /* that it allocated under; NULL: none */
  const char* stack;   /* that it was in, a line for each frame, the innermost first; or "" */
} isthmus_tracked_t;
typedef void (*isthmus_tracked_function_t)(void* object, const isthmus_tracked_t* block);
/* Calls `function` for each block that is live and was allocated since the last reset, the oldest
 * first, with no lock held. What others allocate and free meanwhile may be seen in part. The
 * structure and `stack` live until it returns. INVALID_ARGUMENT for a resource that tracks
 * nothing; here and below. */
ISTHMUS_API isthmus_status_t isthmus_tracking_visit(isthmus_resource_t* resource,
                                                    isthmus_tracked_function_t function,
                                                    void* object) ISTHMUS_NOEXCEPT;
/* A text about these blocks, grouped by the stack and the tag that they were allocated in, most
 * bytes first. Writes at most `room` bytes, a final 0 included, to `text` (may be NULL where `room`
 * is 0), and to `length` what the whole text has without it. */
ISTHMUS_API isthmus_status_t isthmus_tracking_report(isthmus_resource_t* resource, char* text,
                                                     size_t room, size_t* length) ISTHMUS_NOEXCEPT;
typedef void (*isthmus_tag_usage_function_t)(void* object, const char* tag,
                                             const isthmus_statistics_t* usage);
/* Calls `function` for each tag that memory was allocated under from this resource, most live bytes
 * first, with no lock held: what is live under it, the most that was, and all since the resource
 * was made or reset. What was allocated under no tag is not counted. */
ISTHMUS_API isthmus_status_t isthmus_tracking_usage(isthmus_resource_t* resource,
                                                    isthmus_tag_usage_function_t function,
                                                    void* object) ISTHMUS_NOEXCEPT;
/* What is live now is told of no more; its free is known still. Of the usage of tags the peaks
 * become what is live, the totals 0. */
ISTHMUS_API isthmus_status_t isthmus_tracking_reset(isthmus_resource_t* resource) ISTHMUS_NOEXCEPT;

/* Cuts blocks off chunks of upstream's memory, one behind the other, and gives the chunks back all
 * together: by isthmus_monotonic_release, or with the last reference. The first chunk has
 * `first_bytes` (0: 64 KiB), each further one twice those of the one before, or what the request
 * needs. A deallocation gives nothing back, but a chunk of which all was freed goes back where a
 * request of any resource would fail without it, if no queue used here has work or was exported;
 * INVALID_ARGUMENT for what did not come from here. A request takes some 10 ns. */
ISTHMUS_API isthmus_status_t
isthmus_resource_monotonic(isthmus_resource_t* upstream, size_t first_bytes,
                           isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
/* Gives all chunks back, behind the work on every queue that blocks were allocated or deallocated
 * on, and what the library knows of; blocks must not be used any more. A chunk that buffers lie in
 * stays as long as they do. INVALID_ARGUMENT for a resource that is not monotonic. */
ISTHMUS_API isthmus_status_t isthmus_monotonic_release(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;

/* Blocks of one size, cut from slabs of `blocks` each (0: as many as make a MiB, at least 8) that
 * upstream gives. They lie `block_bytes` apart, rounded up to the device's own alignment. A larger
 * request, or an alignment above the largest power of two, up to 4096, that divides this distance,
 * is INVALID_ARGUMENT: let isthmus_resource_binning send these elsewhere. Freed behind work on a
 * queue, a block is reused there at once, elsewhere when that work has ended. Slabs that are free
 * as a whole go back by trim, and where a request of any resource would fail without them.
 * INVALID_ARGUMENT for 0 bytes. */
ISTHMUS_API isthmus_status_t
isthmus_resource_fixed_size(isthmus_resource_t* upstream, size_t block_bytes, size_t blocks,
                            isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Cuts blocks of any size from superblocks of upstream's memory, of a MiB, or of what the request
 * needs. Each thread has an arena of superblocks for each queue, one of 64; where that has no room
 * it takes another superblock, and looks into no other arena. A block goes back to the arena that
 * it came from, and is reused as a pool's is. Superblocks that are free as a whole go back by trim,
 * and where a request of any resource would fail without them. They hold at most `limit_bytes` (0:
 * whatever upstream gives), OUT_OF_MEMORY. */
ISTHMUS_API isthmus_status_t isthmus_resource_arena(isthmus_resource_t* upstream,
                                                    uint64_t limit_bytes,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* Asks the driver to move shared memory to the device of the request's queue as it is allocated, on
 * that queue. A hint: does nothing for other kinds, nor without ISTHMUS_CAN_PREFETCH, and what
 * the driver says to it is no error of the request. Over a resource that is not ordered by queues,
 * a provider say, the request waits for it, on a queue of its own if the request's is busy. */
ISTHMUS_API isthmus_status_t isthmus_resource_prefetch(
    isthmus_resource_t* upstream, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* ---- what is known of memory ----------------------------------------------------------------- */

/* Live allocations and their bytes in the whole process, of one kind (UNKNOWN: all): of default
 * pools the blocks in use, with their bytes as the pool rounds them, and of all else what drivers
 * have given, a chunk of another pool being one. Memory whose free waits for work in flight counts
 * as live. It is looked after first where that has to be asked for, at most for 4 ms. Costs some 30
 * ns for each 64 KiB of default pools. A forked child counts none of these pools' blocks. */
ISTHMUS_API void isthmus_live(isthmus_kind_t kind, uint64_t* count,
                              uint64_t* bytes) ISTHMUS_NOEXCEPT;

/* What memory is now. */
typedef int32_t isthmus_memory_state_t;
enum {
  ISTHMUS_MEMORY_UNKNOWN = 0, /* nobody here knows */
  ISTHMUS_MEMORY_LIVE = 1,    /* somebody has it; all small blocks of an unchecked pool */
  ISTHMUS_MEMORY_WAITING = 2, /* was let go of; goes back when the work on it has ended */
  ISTHMUS_MEMORY_FREE = 3     /* a pool has it, for whoever asks, maybe behind work on a queue */
};

/* What is known of a pointer, an inner one too: all of a buffer's block is that buffer's. */
typedef struct isthmus_pointer_info_s {
  size_t struct_size;
  isthmus_kind_t kind; /* UNKNOWN: not live, or not USM of the context asked for */
  void* base;          /* start and size of its allocation, where known, else NULL and 0 */
  size_t nbytes;
  isthmus_device_t* device; /* borrowed: lives as long as the context; NULL if not known */
  /* As it was asked for, where that is known: of the driver's memory, of a pool's above 256 KiB, of
   * what came through a tracking resource; else 0. */
  size_t requested_bytes;
  uintptr_t queue_key; /* of the queue that it was allocated on */
  /* That it belongs to and that it goes back to; NULL if not known, or the driver's own. Borrowed:
   * they live as long as the memory is live and somebody holds the resource. */
  isthmus_context_t* context;
  isthmus_resource_t* resource;
  isthmus_memory_state_t state; /* WAITING or FREE in a pool: nothing else is told of it */
} isthmus_pointer_info_t;
/* Asks the registry, then `context`'s driver. `context` NULL: any context that the registry knows.
 * The fields behind `device` may be left out, with a smaller `struct_size`. */
ISTHMUS_API isthmus_status_t isthmus_pointer_query(isthmus_context_t* context, const void* pointer,
                                                   isthmus_pointer_info_t* info) ISTHMUS_NOEXCEPT;
/* The same two as references of the caller's, also while others let go of the memory or release
 * them; NULL where the library does not know. Outputs may be NULL. */
ISTHMUS_API isthmus_status_t isthmus_pointer_origin(const void* pointer,
                                                    isthmus_context_t** context,
                                                    isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;

/* ---- traces ---------------------------------------------------------------------------------- */

/* A trace is a recorded sequence of allocations and frees, played against a memory resource. */
enum { ISTHMUS_TRACE_FREE = 0, ISTHMUS_TRACE_ALLOCATE = 1 };
typedef struct isthmus_trace_event_s {
  uint64_t nbytes; /* of an allocation, above 0 */
  uint32_t id;     /* of the block, below the number of events; another block's once it is freed */
  uint16_t queue;  /* which of those given; a free need not be on the allocation's */
  uint16_t action;
} isthmus_trace_event_t;
/* What was seen right after an event. */
typedef struct isthmus_trace_sample_s {
  uint64_t held_bytes; /* that the resource has of the driver's */
  uint64_t ns;         /* that the event took, less what reading the clock takes */
} isthmus_trace_sample_t;
typedef struct isthmus_replay_result_s {
  size_t struct_size;
  uint64_t ns;              /* all events together */
  uint64_t peak_held_bytes; /* of the samples; 0 without */
  uint64_t maps;            /* times that the driver gave the resource memory, or mapped some where
                             * it was needed */
  uint64_t unmaps;          /* times that it got some back, or took some from where it was */
} isthmus_replay_result_t;
/* Plays the events in order on the calling thread, and blocks meanwhile. `samples` NULL: timed as a
 * whole, no clock read between events; else one for each event is filled in. All queues belong to
 * the resource's context. What lives after the last event, or where one fails, is freed.
 * INVALID_ARGUMENT, with the number of the event, before anything is played: a block is allocated
 * while it is there or with 0 bytes, or freed while it is not; an id, a queue or an action is none.
 * An allocation's error as it is. Other threads may use the resource; what they do counts in. */
ISTHMUS_API isthmus_status_t isthmus_resource_replay(
    isthmus_resource_t* resource, isthmus_queue_t* const* queues, size_t queue_count,
    const isthmus_trace_event_t* events, size_t event_count, isthmus_trace_sample_t* samples,
    isthmus_replay_result_t* result) ISTHMUS_NOEXCEPT;

/* ---- buffers --------------------------------------------------------------------------------- */

/* `alignment` 0 or less: the device's own, else a power of two. `queue` NULL: the default queue.
 * `resource` NULL: the default pool of buffers (isthmus_default_pool); else its context must be the
 * queue's. isthmus_resource_provider gives the driver's own memory. 0 bytes are allowed. */
ISTHMUS_API isthmus_status_t isthmus_buffer_create(size_t nbytes, isthmus_kind_t kind,
                                                   int64_t alignment, isthmus_queue_t* queue,
                                                   isthmus_resource_t* resource,
                                                   isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;
/* A buffer over USM of somebody else's, which `owner` keeps alive (and frees). The pointer must be
 * known to the queue's context and, of device kind, be its device's (WRONG_CONTEXT), and [pointer,
 * pointer + nbytes) must lie within its allocation where the driver tells, and within the live
 * buffer whose block it is in. ISTHMUS_KIND_UNKNOWN takes the kind that the driver tells. Memory of
 * the library's own is held too, and operations on it are ordered with those of its own buffer. */
ISTHMUS_API isthmus_status_t isthmus_buffer_adopt(void* pointer, size_t nbytes, isthmus_kind_t kind,
                                                  int read_only, isthmus_queue_t* queue,
                                                  isthmus_owner_t owner,
                                                  isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;
/* Bytes [offset, offset + nbytes) of `base`, which it keeps alive; no memory is allocated for
 * it. */
ISTHMUS_API isthmus_status_t isthmus_buffer_slice(isthmus_buffer_t* base, size_t offset,
                                                  size_t nbytes,
                                                  isthmus_buffer_t** slice) ISTHMUS_NOEXCEPT;
/* Another buffer of the same memory whose operations are in the order of `queue` (same context). */
ISTHMUS_API isthmus_status_t isthmus_buffer_on_queue(isthmus_buffer_t* base, isthmus_queue_t* queue,
                                                     isthmus_buffer_t** view) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_buffer_retain(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* The memory goes back once the last reference, slice and export is gone and the last operation on
 * it has ended; never blocks. */
ISTHMUS_API void isthmus_buffer_release(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Makes this buffer dead at once: further use, of its slices too, is CLOSED. The memory goes back
 * as in release, with the last export at the latest. Freeing twice does nothing. A slice's free
 * affects only the slice. */
ISTHMUS_API void isthmus_buffer_free(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Whether isthmus_buffer_free, or the end of the last export or reference, may call the driver,
 * whose frees wait for all work on the device, or a resource of the caller's. A caller that holds a
 * lock which such work may need, as Python's, releases it first. 0: the memory returns to a pool.
 * Costs some nanoseconds. */
ISTHMUS_API int isthmus_buffer_free_may_wait(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;

typedef struct isthmus_buffer_info_s {
  size_t struct_size;
  void* pointer; /* NULL for 0 bytes */
  size_t nbytes;
  size_t alignment; /* asked for at creation, or the device's own */
  isthmus_kind_t kind;
  int read_only;
  int is_slice;
  isthmus_queue_t* queue; /* borrowed: lives as long as the buffer */
  size_t exports;
} isthmus_buffer_info_t;
/* CLOSED for a freed buffer. */
ISTHMUS_API isthmus_status_t isthmus_buffer_info(const isthmus_buffer_t* buffer,
                                                 isthmus_buffer_info_t* info) ISTHMUS_NOEXCEPT;
/* Its address alone, for inner loops: NULL for 0 bytes, a freed buffer and NULL. */
ISTHMUS_API void* isthmus_buffer_pointer(const isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Waits for what is pending on the buffer's bytes, on any queue; errors of operations are told by
 * their own events. TIMEOUT after `timeout_ns` (negative waits for ever, 0 polls). DEPENDENCY, also
 * in place of TIMEOUT, where a unified buffer's copy that was to fill some of the bytes has failed
 * and nothing has filled them since. */
ISTHMUS_API isthmus_status_t isthmus_buffer_wait(isthmus_buffer_t* buffer,
                                                 int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* The same for what writes to them alone, and for work that the library does not know: a read by
 * the host need not wait for those that read. DEPENDENCY likewise. */
ISTHMUS_API isthmus_status_t isthmus_buffer_wait_for_writers(isthmus_buffer_t* buffer,
                                                             int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* 1 where the buffer was not freed, nothing is pending on its memory and no copy that was to fill
 * it has failed, as far as is known without asking a driver; else 0: see isthmus_buffer_wait.
 * For inner loops that touch elements of the host's, as is the next. Nobody frees the buffer on
 * another thread meanwhile. */
ISTHMUS_API int isthmus_buffer_idle(const isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* The same without a call: while all of some bytes, which live as long as the buffer, are 0, each
 * loaded with acquire semantics, and only where those before it were 0. Where one is not,
 * isthmus_buffer_idle tells, and may set them to 0.
 *
 * Writes where these bytes are to `flags`, which has room for `room`, and gives their number. Where
 * they are more, and for NULL, it is one byte that is always set, so that whoever was built for an
 * older library asks each time; 0 where there is no room at all. */
enum { ISTHMUS_WATCHED = 5 }; /* of this version, at most */
ISTHMUS_API size_t isthmus_buffer_watch(const isthmus_buffer_t* buffer, const unsigned char** flags,
                                        size_t room) ISTHMUS_NOEXCEPT;
/* An event that completes, with success, once what is pending on the buffer's bytes now has ended.
 * CLOSED. */
ISTHMUS_API isthmus_status_t isthmus_buffer_pending(isthmus_buffer_t* buffer,
                                                    isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Waits for the buffer's pending operations and gives a pointer that the host may use until the
 * matching `unexport`, through `free` too. UNSUPPORTED for device kind; DEPENDENCY as
 * isthmus_buffer_wait. */
ISTHMUS_API isthmus_status_t isthmus_buffer_export(isthmus_buffer_t* buffer,
                                                   void** pointer) ISTHMUS_NOEXCEPT;
/* Gives a pointer, of any kind, for work that others put on `queue`, till the matching `unexport`,
 * through `free` too: what is put there from now on comes behind what is pending on the buffer, but
 * for what others put on `queue` themselves, where that is out of order. Waits for nothing, unless
 * that waits for the host itself. NULL `queue`: in no order. That work is taken into account where
 * the buffer is one of that queue (isthmus_buffer_on_queue gives one) and the queue was adopted or
 * its handle lent: then operations on other queues wait for what it has, and so does what frees the
 * memory. CLOSED; DEPENDENCY as isthmus_buffer_wait, for what is known to have failed by then. */
ISTHMUS_API isthmus_status_t isthmus_buffer_export_to_queue(isthmus_buffer_t* buffer,
                                                            isthmus_queue_t* queue,
                                                            void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_buffer_unexport(isthmus_buffer_t* buffer) ISTHMUS_NOEXCEPT;
/* Gives the memory to a foreign owner: a pointer and what frees it. The buffer is dead afterwards.
 * Fails with INVALID_ARGUMENT for 0 bytes and while slices, other references to it or exports live.
 * `owner->release` waits for nothing: operations in flight are waited for by the free itself. */
ISTHMUS_API isthmus_status_t isthmus_buffer_disown(isthmus_buffer_t* buffer, void** pointer,
                                                   isthmus_owner_t* owner) ISTHMUS_NOEXCEPT;
/* The memory is in use by work that the library does not know: until `event`, or all now on
 * `queue`, has completed it is not given back, and operations on other queues wait. */
ISTHMUS_API isthmus_status_t isthmus_buffer_record_event(isthmus_buffer_t* buffer,
                                                         isthmus_event_t* event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_buffer_record_queue(isthmus_buffer_t* buffer,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* A buffer's bytes in another process of this machine: CUDA's legacy IPC. `handle` holds a
 * CUipcMemHandle, of the whole allocation that the buffer lies in. To be sent as it is: CUDA does
 * not notice every change of it. */
typedef struct isthmus_ipc_handle_s {
  size_t struct_size;
  unsigned char handle[64];
  uint64_t offset; /* of the first byte within that allocation */
  uint64_t nbytes;
} isthmus_ipc_handle_t;
/* Waits for what is pending on the buffer's bytes, as no queue of another process is in order with
 * ours: what either process does with them later it must tell the other by means of its own. The
 * memory belongs to this process. Keep the buffer until the others have closed it: memory that
 * a pool takes back goes to others here while they still see it, and CUDA promises nothing of the
 * rest. INVALID_ARGUMENT for 0 bytes; CLOSED; UNSUPPORTED without ISTHMUS_CAN_IPC, and for
 * what is not device memory of cuMemAlloc: a pool's can move, unless it was made with
 * ISTHMUS_POOL_NO_REMAP. DEPENDENCY as isthmus_buffer_wait. */
ISTHMUS_API isthmus_status_t
isthmus_buffer_ipc_handle(isthmus_buffer_t* buffer, isthmus_ipc_handle_t* handle) ISTHMUS_NOEXCEPT;
/* A buffer of device kind on those bytes, which another process has. `queue` NULL: the default
 * device's default queue; it must be of the same device as there. With the buffer's memory, as in
 * isthmus_buffer_release, the handle is closed, which waits for all work on the device, as the
 * driver's own free does. May be opened several times: it is one memory, whose uses are ordered.
 * INVALID_ARGUMENT for a handle of this process's own, and for bytes that CUDA knows for no handle;
 * OUT_OF_RANGE if not all of the bytes are there; WRONG_CONTEXT for memory of another device than
 * the queue's; UNSUPPORTED without ISTHMUS_CAN_IPC. */
ISTHMUS_API isthmus_status_t isthmus_buffer_open_ipc(const isthmus_ipc_handle_t* handle,
                                                     isthmus_queue_t* queue,
                                                     isthmus_buffer_t** buffer) ISTHMUS_NOEXCEPT;

/* ---- copies, fills, prefetch, advice --------------------------------------------------------- */

/* Where bytes lie: `offset` into `buffer`, or, with buffer NULL, `pointer` + `offset`, an address:
 * - in a live allocation of the library's, whose bounds then hold (OUT_OF_RANGE);
 * - in memory that the library manages but that is not allocated, because it was freed or never
 *   allocated: INVALID_ARGUMENT. A pool with ISTHMUS_POOL_UNCHECKED takes all of its small blocks
 *   for live;
 * - elsewhere: for a copy plain host memory, which the host reads or writes. Device memory of
 *   another library is copied by isthmus_buffer_adopt. For isthmus_fill, _prefetch and _advise see
 *   there. */
typedef struct isthmus_place_s {
  isthmus_buffer_t* buffer;
  void* pointer;
  size_t offset;
} isthmus_place_t;

/* Optional; NULL stands for nothing to wait for and nothing to keep. The owners are released when
 * the operation has ended, also when the call fails. */
typedef struct isthmus_operation_s {
  size_t struct_size;
  isthmus_event_t* const* after; /* waited for, of any context or platform */
  size_t after_count;
  const isthmus_owner_t* owners;
  size_t owner_count;
} isthmus_operation_t;

/* Copies between any two places. `queue` NULL: the destination buffer's queue, else the source's;
 * none for two host places (a plain memcpy, on a thread of the library where an event is asked for
 * and one of `after` is pending). Overlapping ranges are INVALID_ARGUMENT. What the host can touch
 * is copied by the host when nothing is pending on it. */
ISTHMUS_API isthmus_status_t isthmus_copy(isthmus_queue_t* queue,
                                          const isthmus_place_t* destination,
                                          const isthmus_place_t* source, size_t nbytes,
                                          const isthmus_operation_t* operation,
                                          isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* `height` rows of `width` bytes, `pitch` bytes apart on each side (at least `width`). */
ISTHMUS_API isthmus_status_t isthmus_copy_2d(
    isthmus_queue_t* queue, const isthmus_place_t* destination, size_t destination_pitch,
    const isthmus_place_t* source, size_t source_pitch, size_t width, size_t height,
    const isthmus_operation_t* operation, isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* `nbytes` bytes from `source_offset` bytes past one place to `destination_offset` past another. */
typedef struct isthmus_range_s {
  size_t destination_offset;
  size_t source_offset;
  size_t nbytes;
} isthmus_range_t;

/* Copies many ranges between two places as one operation, in no order among themselves. All are
 * checked before anything moves: OUT_OF_RANGE names the range that leaves its place, and ranges
 * that overlap where they write, or write what another reads, are INVALID_ARGUMENT. `ranges` are
 * the caller's again when this returns. */
ISTHMUS_API isthmus_status_t isthmus_copy_ranges(isthmus_queue_t* queue,
                                                 const isthmus_place_t* destination,
                                                 const isthmus_place_t* source,
                                                 const isthmus_range_t* ranges, size_t range_count,
                                                 const isthmus_operation_t* operation,
                                                 isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Copies an array of up to 8 dimensions: `shape[i]` elements of `item_bytes` along dimension i,
 * which lie `strides[i]` bytes apart on each side. The order of the dimensions is of no account;
 * those that follow each other without a gap are joined. A source's stride may be 0. A
 * destination's must span all that lies inside it, and where both sides' extents overlap only rows
 * at one distance may lie between each other's: else INVALID_ARGUMENT. */
ISTHMUS_API isthmus_status_t isthmus_copy_nd(
    isthmus_queue_t* queue, const isthmus_place_t* destination, const size_t* destination_strides,
    const isthmus_place_t* source, const size_t* source_strides, const size_t* shape,
    size_t dimensions, size_t item_bytes, const isthmus_operation_t* operation,
    isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Repeats a pattern of 1, 2, 4, 8 or 16 bytes; `nbytes` must be a multiple of it. UNSUPPORTED by a
 * device that is not the host's from an address that is none. An address that is not the library's
 * memory is filled if the driver of `queue` knows it (memory of another library) or the device
 * reaches plain host memory, else INVALID_ARGUMENT; the host fills it if `queue` is NULL. */
ISTHMUS_API isthmus_status_t isthmus_fill(isthmus_queue_t* queue,
                                          const isthmus_place_t* destination, const void* pattern,
                                          size_t pattern_bytes, size_t nbytes,
                                          const isthmus_operation_t* operation,
                                          isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Asks the driver to move shared memory to the queue's device, or to the host; a hint that may do
 * nothing, UNSUPPORTED without ISTHMUS_CAN_PREFETCH. INVALID_ARGUMENT for an address that is
 * neither the library's memory nor known to the driver of `queue`. */
ISTHMUS_API isthmus_status_t isthmus_prefetch(isthmus_queue_t* queue, const isthmus_place_t* place,
                                              size_t nbytes, int to_host,
                                              const isthmus_operation_t* operation,
                                              isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* The driver's own advice number (OpenCL: cl_mem_advice_intel; CUDA: CUmem_advise, 0 for none);
 * UNSUPPORTED without ISTHMUS_CAN_ADVISE. Addresses as for isthmus_prefetch. */
ISTHMUS_API isthmus_status_t isthmus_advise(isthmus_queue_t* queue, const isthmus_place_t* place,
                                            size_t nbytes, uint32_t advice,
                                            const isthmus_operation_t* operation,
                                            isthmus_event_t** event) ISTHMUS_NOEXCEPT;

/* Pins memory of the caller's on the host for the platform of `device` (NULL: the default
 * device's), which copies it from then on as fast as the bus goes, on its own while the host
 * does something else. Where that needs nothing (host memory of the driver's own or that others
 * registered with it, a device that works on the host's memory, 0 bytes) it succeeds, and
 * isthmus_pin_info says so. What overlaps memory that is pinned already shares it, and the last
 * pin's end lets go of it. To pin takes 25 to 115 ms a GiB with CUDA, and as much to undo: worth
 * it for what is copied several times. `read_only` not 0: it is only read, and may be memory
 * that the process may not write. The memory stays where it is till the pin is removed; freed
 * before, what is mapped there later is copied wrongly. `owner` keeps it alive till then.
 * INVALID_ARGUMENT for device memory, no memory, or a part of it that others registered;
 * UNSUPPORTED for memory that cannot be written, where the device cannot; OUT_OF_MEMORY, where
 * the driver pins no more. */
ISTHMUS_API isthmus_status_t isthmus_pin_add(isthmus_device_t* device, const void* pointer,
                                             size_t nbytes, int read_only, isthmus_owner_t owner,
                                             isthmus_pin_t** pin) ISTHMUS_NOEXCEPT;
typedef struct isthmus_pin_info_s {
  size_t struct_size;
  const void* pointer;
  size_t nbytes;
  int is_registered;        /* 0: nothing had to be done */
  isthmus_device_t* device; /* borrowed: lives as long as the pin */
} isthmus_pin_info_t;
ISTHMUS_API isthmus_status_t isthmus_pin_info(isthmus_pin_t* pin,
                                              isthmus_pin_info_t* info) ISTHMUS_NOEXCEPT;
/* Waits till no copy of that memory is in flight in queues of the library's. TIMEOUT after
 * `timeout_ns`; negative waits for ever. */
ISTHMUS_API isthmus_status_t isthmus_pin_wait(isthmus_pin_t* pin,
                                              int64_t timeout_ns) ISTHMUS_NOEXCEPT;
/* Ends the pin. With `wait` not 0 it waits for what isthmus_pin_wait does, and the memory may be
 * freed once this returns, unless others pin it too. With 0 it does not, and `owner` is released
 * once the driver has let go. Work that the caller gave a driver himself must have ended. Nothing
 * for NULL. */
ISTHMUS_API void isthmus_pin_remove(isthmus_pin_t* pin, int wait) ISTHMUS_NOEXCEPT;

/* Host memory for results, page-aligned: since first touches cost more than a copy, a large
 * block is kept warm after it is freed (in all up to 1/16 of the memory that the process may
 * have, and 2 GiB at most), and the first copy of the library's into a fresh one faults its
 * pages in at once. */
ISTHMUS_API isthmus_status_t isthmus_result_allocate(size_t nbytes,
                                                     void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_result_free(void* pointer) ISTHMUS_NOEXCEPT;

/* ---- process --------------------------------------------------------------------------------- */

/* Ends functions given to queues: those that have not begun fail with CALLBACK, those that run are
 * waited for. For language bindings, to be called before their interpreter goes. */
ISTHMUS_API void isthmus_stop_functions(void) ISTHMUS_NOEXCEPT;

/* ---- arrays ---------------------------------------------------------------------------------- */

/* What the elements of an array are, in this machine's order of bytes. */
typedef int32_t isthmus_dtype_t;
enum {
  ISTHMUS_BOOL = 1, /* one byte, 0 or 1 */
  ISTHMUS_INT8 = 2,
  ISTHMUS_INT16 = 3,
  ISTHMUS_INT32 = 4,
  ISTHMUS_INT64 = 5,
  ISTHMUS_UINT8 = 6,
  ISTHMUS_UINT16 = 7,
  ISTHMUS_UINT32 = 8,
  ISTHMUS_UINT64 = 9,
  ISTHMUS_FLOAT16 = 10,  /* IEEE 754 binary16 */
  ISTHMUS_BFLOAT16 = 11, /* the upper half of a binary32 */
  ISTHMUS_FLOAT32 = 12,
  ISTHMUS_FLOAT64 = 13,
  ISTHMUS_LONGDOUBLE = 14, /* C's long double */
  ISTHMUS_COMPLEX64 = 15,  /* two of FLOAT32: real part, imaginary part */
  ISTHMUS_COMPLEX128 = 16,
  ISTHMUS_CLONGDOUBLE = 17
};

typedef struct isthmus_dtype_info_s {
  size_t struct_size;
  const char* name; /* NumPy's: "float32"; lives for ever */
  size_t nbytes;    /* of an element */
  size_t alignment; /* of an element, in bytes */
  char kind;        /* NumPy's: 'b', 'i', 'u', 'f' or 'c' */
  uint8_t dlpack_code;
  uint8_t dlpack_bits; /* 0 where DLPack's 8 bits cannot tell it: 256, of CLONGDOUBLE */
} isthmus_dtype_info_t;
/* INVALID_ARGUMENT for a number that is no dtype. */
ISTHMUS_API isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype,
                                                isthmus_dtype_info_t* info) ISTHMUS_NOEXCEPT;

/* Which changes of dtype a copy may make: NumPy's rules, each of which allows what those before it
 * do. Of FLOAT16 and BFLOAT16 neither goes safely into the other; BFLOAT16 goes safely into FLOAT32
 * and all that this does, and the safe sources of it are BOOL, INT8 and UINT8. */
typedef int32_t isthmus_casting_t;
enum {
  ISTHMUS_CASTING_NO = 0,
  ISTHMUS_CASTING_SAFE = 1, /* every value is kept, as NumPy sees it */
  /* Within a kind, or to a later one of bool, unsigned integer, integer, float, complex. */
  ISTHMUS_CASTING_SAME_KIND = 2,
  ISTHMUS_CASTING_UNSAFE = 3
};
/* 1 where elements of `from` may become elements of `to`, 0 where not or where a number is no dtype
 * or no rule. */
ISTHMUS_API int isthmus_can_cast(isthmus_dtype_t from, isthmus_dtype_t to,
                                 isthmus_casting_t casting) ISTHMUS_NOEXCEPT;

/* An array of up to 64 dimensions. Its element at index 0 along all of them lies at `place`; from
 * there the next along dimension i is `strides[i]` bytes further, which may be negative or 0. All
 * elements lie within the buffer, or within the memory that the caller names by a pointer. Elements
 * need not be aligned. What is pointed to is the caller's again when a function that takes it
 * returns. */
typedef struct isthmus_array_s {
  isthmus_place_t place;
  isthmus_dtype_t dtype;
  size_t dimensions;
  const int64_t* shape;   /* none negative; may be NULL for no dimensions, as may the next */
  const int64_t* strides; /* in bytes */
} isthmus_array_t;

/* Copies every element of `source` to the element of `destination` with the same index, converted
 * to its dtype as C converts, rounded once, to the nearest. A float that no integer of the
 * destination stands for becomes what x86's conversions and so NumPy's astype make of it there: the
 * lowest integer of 32 or 64 bits, cut to the width asked for. A complex number's imaginary part is
 * dropped where the destination has none; all but 0 is true. The source is broadcast to the
 * destination's shape by NumPy's rules. Overlapping arrays are copied as if the source had been set
 * aside first, in memory of the same kind where the host cannot touch it.
 *
 * Strided copies of one dtype go as in isthmus_copy_nd where 8 dimensions can tell them, those that
 * follow each other without a gap being joined; those of more, that convert, or that run backwards
 * on one side alone, by way of the host in pieces where the host cannot touch both sides. A
 * destination of which two elements share bytes is INVALID_ARGUMENT, as are shapes that do not fit
 * and a change of dtype that `casting` does not allow; an element outside its buffer is
 * OUT_OF_RANGE. Order, events and owners as in isthmus_copy. */
ISTHMUS_API isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue,
                                                const isthmus_array_t* destination,
                                                const isthmus_array_t* source,
                                                isthmus_casting_t casting,
                                                const isthmus_operation_t* operation,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Sets every element to the one at `value`, an element of the host's of dtype `value_dtype`, which
 * is read before this returns; all else as in isthmus_copy_array. */
ISTHMUS_API isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue,
                                                const isthmus_array_t* destination,
                                                const void* value, isthmus_dtype_t value_dtype,
                                                isthmus_casting_t casting,
                                                const isthmus_operation_t* operation,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* 1 where the two have an element's byte in common, 0 where not: exact up to a bound on the work,
 * above which 1 where their extents meet. Elements of a freed buffer have no bytes, nor has what is
 * no array: NULL, or what isthmus_copy_array would not take. */
ISTHMUS_API int isthmus_arrays_overlap(const isthmus_array_t* one,
                                       const isthmus_array_t* other) ISTHMUS_NOEXCEPT;

/* ---- unified buffers ------------------------------------------------------------------------- */

/* A host copy and a device copy of the same bytes, each made when it is first asked for, and
 * brought up to date when it is: only what changed moves. What the host writes through its plain
 * pointers is found, see isthmus_unified_info_t; what a device writes its caller tells by
 * isthmus_unified_mark_device. Where the device reaches host memory at full speed one memory serves
 * as both copies, unless `separate` is set. Ranges are `nbytes` from `offset`.
 *
 * In a forked child the host copy is the child's own: the parent sees nothing of what it writes,
 * but it may see what the parent writes later to pages that it has not written itself; all that
 * needs a driver is FORKED. */

typedef int32_t isthmus_unified_state_t;
enum {
  ISTHMUS_UNIFIED_UNINITIALIZED = 0, /* neither copy was asked for */
  ISTHMUS_UNIFIED_HOST_ONLY = 1,     /* nothing written yet, no device copy */
  ISTHMUS_UNIFIED_DEVICE_ONLY = 2,
  ISTHMUS_UNIFIED_SYNCHRONIZED = 3,
  ISTHMUS_UNIFIED_HOST_DIRTY = 4,  /* the host wrote what the device lacks */
  ISTHMUS_UNIFIED_DEVICE_DIRTY = 5 /* the device wrote what the host lacks; both may have */
};

typedef int32_t isthmus_winner_t;
enum { ISTHMUS_WINNER_NONE = 0, ISTHMUS_WINNER_HOST = 1, ISTHMUS_WINNER_DEVICE = 2 };

/* What finds the host's writes. */
typedef int32_t isthmus_tracking_t;
enum {
  ISTHMUS_TRACKING_DEFAULT = 0, /* the best there is for the size */
  ISTHMUS_TRACKING_PAGES = 1,   /* the kernel tells written pages: Linux 6.7 */
  ISTHMUS_TRACKING_BYTES = 2,   /* compared with the bytes that were last the same: exact */
  ISTHMUS_TRACKING_HASHES = 3   /* of 64 KiB each */
};

typedef struct isthmus_unified_options_s {
  size_t struct_size;
  int32_t pinned;               /* the host copy is registered with the driver */
  int32_t separate;             /* two copies in any case */
  isthmus_winner_t on_conflict; /* whose bytes count where both wrote; NONE: that is an error */
  int32_t by_page;              /* writes are found by 4 KiB from the start: for sparse ones */
  isthmus_tracking_t tracking;  /* UNSUPPORTED at first use where it is not there */
  size_t element_bytes;         /* a write to one byte counts for all of its element; 0: one byte */
  isthmus_resource_t* resource; /* of the device copy; NULL: the driver */
} isthmus_unified_options_t;

typedef struct isthmus_unified_info_s {
  size_t struct_size;
  size_t nbytes;
  isthmus_unified_state_t state;
  isthmus_tracking_t tracking; /* in force; DEFAULT before there is a host copy */
  uint64_t granule;            /* bytes that one write is told by at most; 0 likewise */
  int32_t pinned;              /* now */
  int32_t one_memory;          /* that serves as both copies */
  isthmus_queue_t* queue;      /* borrowed */
  size_t host_views;           /* that may be written through */
  uint64_t bytes_to_device;    /* moved so far */
  uint64_t bytes_to_host;
  uint64_t copies; /* operations, of any number of ranges each */
} isthmus_unified_info_t;

typedef struct isthmus_byte_range_s {
  size_t begin;
  size_t end;
} isthmus_byte_range_t;

/* Allocates nothing yet. `queue` NULL: the default device's; `options` NULL: all 0.
 * INVALID_ARGUMENT for 0 bytes or more than PTRDIFF_MAX; WRONG_CONTEXT for a resource that gives no
 * device memory there. */
ISTHMUS_API isthmus_status_t isthmus_unified_create(size_t nbytes, isthmus_queue_t* queue,
                                                    const isthmus_unified_options_t* options,
                                                    isthmus_unified_t** unified) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_retain(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_release(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* Dead at once: what follows is CLOSED. Host memory with views lives till the last has ended. */
ISTHMUS_API void isthmus_unified_free(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* The state is true at that moment: looks for writes. */
ISTHMUS_API isthmus_status_t isthmus_unified_info(isthmus_unified_t* unified,
                                                  isthmus_unified_info_t* info) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_state(isthmus_unified_t* unified,
                                                   isthmus_unified_state_t* state) ISTHMUS_NOEXCEPT;
/* Up to `capacity` ranges, in order, that the other side lacks; `*count` is how many there are.
 * `of_device` 0: what the host wrote. */
ISTHMUS_API isthmus_status_t isthmus_unified_dirty_ranges(isthmus_unified_t* unified, int of_device,
                                                          isthmus_byte_range_t* ranges,
                                                          size_t capacity,
                                                          size_t* count) ISTHMUS_NOEXCEPT;

/* The host copy's bytes from `offset` on, up to date in the range. They may be read and written by
 * any thread till isthmus_unified_end_host, once for each of these; a write to what the device has
 * newer is a conflict. Where the device wrote this waits for the copy. CONFLICT; OUT_OF_MEMORY;
 * those of copies; DEVICE_LOST names what is missing. */
ISTHMUS_API isthmus_status_t isthmus_unified_host(isthmus_unified_t* unified, size_t offset,
                                                  size_t nbytes, void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_end_host(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* The same for reading alone, while the caller has a reference: needs no end. */
ISTHMUS_API isthmus_status_t isthmus_unified_read_host(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes,
                                                       const void** pointer) ISTHMUS_NOEXCEPT;
/* Bytes to be written, and told of exactly by isthmus_unified_end_write with the same arguments:
 * nothing is looked for. `keeps`: they hold what the array has there, and only what is written
 * changes; else all of the range is to be written. Host views show it then, or before. Where the
 * end fails, with OUT_OF_MEMORY say, it has ended the write all the same: the next call on the
 * array counts it, or fails too. */
ISTHMUS_API isthmus_status_t isthmus_unified_begin_write(isthmus_unified_t* unified, size_t offset,
                                                         size_t nbytes, int keeps,
                                                         void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_end_write(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes, int kept) ISTHMUS_NOEXCEPT;

/* The device copy, up to date in the range for what is put on `queue` (NULL: the buffer's own) from
 * here on: a buffer of all of it, the caller's to release. Returns when the host may write again:
 * once the copies have read the host's bytes, or at once where they would have to wait for other
 * work, from a copy of those bytes. CONFLICT; OUT_OF_MEMORY; those of copies. */
ISTHMUS_API isthmus_status_t isthmus_unified_device(isthmus_unified_t* unified,
                                                    isthmus_queue_t* queue, size_t offset,
                                                    size_t nbytes,
                                                    isthmus_buffer_t** device) ISTHMUS_NOEXCEPT;
/* The same before a device writes exactly that range, to be told by isthmus_unified_mark_device:
 * what the host writes beside it is found by the smallest granule there is. The mark of the
 * same range leaves failures of earlier copies to the next call. If it fails itself, the next call
 * makes it, or fails too. */
ISTHMUS_API isthmus_status_t isthmus_unified_begin_device_write(
    isthmus_unified_t* unified, isthmus_queue_t* queue, size_t offset, size_t nbytes,
    isthmus_buffer_t** device) ISTHMUS_NOEXCEPT;

/* Bring a copy up to date in the range. With `event` (set to NULL where nothing is to be moved)
 * they do not wait. To the device it ends when the host may write again; to the host, when the
 * bytes have arrived: the next isthmus_unified_host, _read_host, _begin_write or _to_host of the
 * range shows them in the views without waiting. What the host writes there before that call is a
 * conflict. */
ISTHMUS_API isthmus_status_t isthmus_unified_to_device(isthmus_unified_t* unified,
                                                       isthmus_queue_t* queue, size_t offset,
                                                       size_t nbytes,
                                                       isthmus_event_t** event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_to_host(isthmus_unified_t* unified,
                                                     isthmus_queue_t* queue, size_t offset,
                                                     size_t nbytes,
                                                     isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* What a call on the range would wait for beside its own copy, as an event to be waited for first,
 * in steps if need be: the calls themselves cannot be interrupted, and hold up other threads' calls
 * on the buffer. `event` becomes NULL where that is nothing; an event of several operations cannot
 * fail. In a forked child it is always NULL. Errors as isthmus_unified_to_host. */
typedef int32_t isthmus_arrival_t;
enum {
  ISTHMUS_ARRIVAL_BEGUN = 0, /* copies to the host that are on their way into the range */
  ISTHMUS_ARRIVAL_FETCH = 1, /* the same; begins those that have to wait for work on the device */
  ISTHMUS_ARRIVAL_WORK = 2   /* as BEGUN, and the work on the device copy and on `queue` so far */
};
ISTHMUS_API isthmus_status_t isthmus_unified_arrival(isthmus_unified_t* unified,
                                                     isthmus_queue_t* queue, size_t offset,
                                                     size_t nbytes, isthmus_arrival_t mode,
                                                     isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* The device copies of many, with one look for writes; a failure of one does not keep the others
 * back, the first is told. `queue` NULL: each one's own. */
ISTHMUS_API isthmus_status_t isthmus_unified_synchronize(isthmus_unified_t* const* unified,
                                                         size_t count,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* The side wrote that range by ways that are not found: a device, always; on the host io_uring's
 * fixed buffers, RDMA, other devices. INVALID_ARGUMENT where that side has no copy yet. */
ISTHMUS_API isthmus_status_t isthmus_unified_mark_host(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_mark_device(isthmus_unified_t* unified, size_t offset,
                                                         size_t nbytes) ISTHMUS_NOEXCEPT;
/* The winner's bytes count in that range, wherever its copy ever held any; the other's do not. */
ISTHMUS_API isthmus_status_t isthmus_unified_resolve(isthmus_unified_t* unified,
                                                     isthmus_winner_t winner, size_t offset,
                                                     size_t nbytes) ISTHMUS_NOEXCEPT;
/* Both copies count as the same, whatever they hold: before all of it is written anew. Until the
 * device copy is obtained or marked again it may be released where memory is short, once no handle
 * refers to it. Copies that have failed, or fail later, are reported by their own events alone. */
ISTHMUS_API isthmus_status_t isthmus_unified_forget(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;

/* What finds writes to host copies of 64 KiB and more in this process: the means, the bytes that
 * one write is told by, and why it is not the kernel's pages ("" where it is them; valid for ever).
 * Outputs may be NULL. */
ISTHMUS_API isthmus_status_t isthmus_tracking_query(isthmus_tracking_t* tracking, uint64_t* granule,
                                                    const char** reason) ISTHMUS_NOEXCEPT;
/* Fixes the means for unified buffers whose host copy is made from here on; DEFAULT: free choice.
 * The environment's ISTHMUS_TRACKING ("pages", "bytes", "hashes") does so from the start.
 * UNSUPPORTED, with the reason, for pages where the kernel does not tell them. */
ISTHMUS_API isthmus_status_t isthmus_tracking_force(isthmus_tracking_t tracking) ISTHMUS_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ISTHMUS_ISTHMUS_H */
