/* SPDX-License-Identifier: Apache-2.0 */
/* The experimental part of the C interface: simulated devices, the allocation tracker, arrays,
 * unified buffers and dirty tracking.
 *
 * Experimental means: the code is as complete and as well tested as the rest, but a minor version
 * may change or remove these functions, structures and constants, also after 1.0.0. The changelog
 * lists each such change. The symbols have the version ISTHMUS_EXPERIMENTAL, so that the undefined
 * symbols of a program show whether it uses them.
 *
 * The conventions of isthmus.h hold here too.
 */
#ifndef ISTHMUS_EXPERIMENTAL_H
#define ISTHMUS_EXPERIMENTAL_H

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- simulated devices ----------------------------------------------------------------------- */

/* Creates a simulated device on a new platform, for tests. `options` are those of the environment
 * variable ISTHMUS_SIM, described in docs/sim.md ("capacity=64MiB,fail=copy:3"); NULL for the
 * defaults. */
ISTHMUS_API isthmus_status_t isthmus_sim_create(const char* options,
                                                isthmus_device_t** device) ISTHMUS_NOEXCEPT;
/* Changes the options that can change during the lifetime of the device: those of faults, device
 * loss, effects, bandwidths and latency. INVALID_ARGUMENT for other options. */
ISTHMUS_API isthmus_status_t isthmus_sim_configure(isthmus_device_t* device,
                                                   const char* options) ISTHMUS_NOEXCEPT;
/* Number of driver calls of one kind so far ("allocate", "copy", ...; "any" for all). */
ISTHMUS_API isthmus_status_t isthmus_sim_calls(const isthmus_device_t* device, const char* kind,
                                               uint64_t* count) ISTHMUS_NOEXCEPT;
typedef struct isthmus_sim_info_s {
  size_t struct_size;
  uint64_t clock_ns;     /* virtual time */
  uint64_t device_bytes; /* of device memory allocated now */
  uint64_t host_bytes;   /* of other memory allocated now */
} isthmus_sim_info_t;
ISTHMUS_API isthmus_status_t isthmus_sim_info(const isthmus_device_t* device,
                                              isthmus_sim_info_t* info) ISTHMUS_NOEXCEPT;

/* ---- allocation tracker ---------------------------------------------------------------------- */

/* Returns the text of frames that are not native code, such as those of an interpreter: one line
 * for each, innermost first; NULL or "" for none. Called on the allocating thread without a lock;
 * it may allocate. The text is copied. */
typedef const char* (*isthmus_stack_function_t)(void* object);
enum { ISTHMUS_MAX_FRAMES = 64 };
/* The allocation tracker: records every live block that was allocated through it. Freeing a block
 * that it does not know is INVALID_ARGUMENT. It adds about 10 ns to an allocation and its free,
 * whatever the number of blocks, and 64 to 256 bytes of host memory for each block. `frames` (0 to
 * ISTHMUS_MAX_FRAMES) is the number of frames of native code to record for each allocation, which
 * takes a microsecond or more. `function` (may be NULL), called with `owner.object`, provides other
 * frames. INVALID_ARGUMENT for more frames. isthmus_pointer_info reports recorded blocks. */
ISTHMUS_API isthmus_status_t isthmus_resource_allocation_tracker(
    isthmus_resource_t* upstream, uint32_t frames, isthmus_stack_function_t function,
    isthmus_owner_t owner, isthmus_resource_t** resource) ISTHMUS_NOEXCEPT;
typedef struct isthmus_tracked_allocation_s {
  size_t struct_size;
  void* pointer;
  size_t nbytes;       /* as requested */
  uintptr_t queue_key; /* of the queue that it was allocated on */
  uint64_t order;      /* increases with the time of allocation; no unit */
  uint64_t thread;     /* id of the allocating thread, as the system numbers it */
  const char* tag;     /* of the allocating thread; NULL: none */
  const char* stack;   /* of the allocation, one line per frame, innermost first; or "" */
} isthmus_tracked_allocation_t;
typedef void (*isthmus_tracked_allocation_function_t)(void* object,
                                                      const isthmus_tracked_allocation_t* block);
/* Calls `function` for each live block that was allocated since the last reset, oldest first,
 * without a lock. Concurrent changes may be seen in part. The structure and `stack` are valid until
 * it returns. INVALID_ARGUMENT for a resource that is not an allocation tracker, here and below. */
ISTHMUS_API isthmus_status_t isthmus_allocation_tracker_visit(
    isthmus_resource_t* resource, isthmus_tracked_allocation_function_t function,
    void* object) ISTHMUS_NOEXCEPT;
/* A report on these blocks, grouped by the stack and the tag of their allocation, most bytes first.
 * Writes at most `capacity` bytes, the final 0 included, to `text` (may be NULL if `capacity` is
 * 0). `length` receives the length of the whole text without the 0. */
ISTHMUS_API isthmus_status_t isthmus_allocation_tracker_report(isthmus_resource_t* resource,
                                                               char* text, size_t capacity,
                                                               size_t* length) ISTHMUS_NOEXCEPT;
typedef void (*isthmus_tag_usage_function_t)(void* object, const char* tag,
                                             const isthmus_statistics_info_t* usage);
/* Calls `function` for each tag under which this resource allocated memory, most live bytes first,
 * without a lock. `usage` has the live allocations under the tag, their peak, and the totals since
 * the resource was created or reset. Untagged allocations are not counted. */
ISTHMUS_API isthmus_status_t isthmus_allocation_tracker_usage(isthmus_resource_t* resource,
                                                              isthmus_tag_usage_function_t function,
                                                              void* object) ISTHMUS_NOEXCEPT;
/* Excludes the currently live blocks from later reports; their frees are still recognized. Sets the
 * peaks of tags to the current values, and their totals to 0. */
ISTHMUS_API isthmus_status_t isthmus_allocation_tracker_reset(isthmus_resource_t* resource)
    ISTHMUS_NOEXCEPT;

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The type of the elements of an array, in the byte order of this machine. */
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
  ISTHMUS_COMPLEX64 = 15,  /* two of FLOAT32: the real, then the imaginary component */
  ISTHMUS_COMPLEX128 = 16,
  ISTHMUS_CLONGDOUBLE = 17
};

typedef struct isthmus_dtype_info_s {
  size_t struct_size;
  const char* name; /* as in NumPy: "float32"; never freed */
  size_t nbytes;    /* of an element */
  size_t alignment; /* of an element, in bytes */
  char kind;        /* as in NumPy: 'b', 'i', 'u', 'f' or 'c' */
  uint8_t dlpack_code;
  uint8_t dlpack_bits; /* 0 if 8 bits do not suffice: 256, of CLONGDOUBLE */
} isthmus_dtype_info_t;
/* INVALID_ARGUMENT for an unknown dtype. */
ISTHMUS_API isthmus_status_t isthmus_dtype_info(isthmus_dtype_t dtype,
                                                isthmus_dtype_info_t* info) ISTHMUS_NOEXCEPT;

/* The conversions that a copy may perform, by NumPy's rules. Each rule includes the previous ones.
 * FLOAT16 and BFLOAT16 do not convert safely into each other. BFLOAT16 converts safely to FLOAT32
 * and to all that FLOAT32 converts to; BOOL, INT8 and UINT8 convert safely to it. */
typedef int32_t isthmus_casting_t;
enum {
  ISTHMUS_CASTING_NO = 0,
  ISTHMUS_CASTING_SAFE = 1, /* every value is preserved, in the sense of NumPy */
  /* Within a kind, or to a later kind in the order bool, unsigned integer, integer, float, complex.
   */
  ISTHMUS_CASTING_SAME_KIND = 2,
  ISTHMUS_CASTING_UNSAFE = 3
};
/* 1 if elements of `source` may be converted to `target`, else 0, also for an unknown dtype or
 * rule. */
ISTHMUS_API int isthmus_can_cast(isthmus_dtype_t source, isthmus_dtype_t target,
                                 isthmus_casting_t casting) ISTHMUS_NOEXCEPT;

/* An array of up to 64 dimensions. `endpoint` is the address of the element with index 0 in all
 * dimensions; the next element along dimension i is `strides[i]` bytes further, which may be
 * negative or 0. All elements lie within the buffer, or within the caller's memory. They need not
 * be aligned. `shape` and `strides` may be changed once a function that takes them returns. */
typedef struct isthmus_array_s {
  isthmus_endpoint_t endpoint;
  isthmus_dtype_t dtype;
  size_t dimensions;
  const int64_t* shape;   /* not negative; may be NULL for no dimensions, as may `strides` */
  const int64_t* strides; /* in bytes */
} isthmus_array_t;

/* Copies every element of `source` to the element of `destination` with the same index. The source
 * is broadcast to the destination's shape by NumPy's rules. Elements are converted as in C, rounded
 * once to nearest. A float outside the range of an integer type converts as on x86, and so as
 * NumPy's astype there: to the lowest 32- or 64-bit integer (16-bit from LONGDOUBLE to INT16 and
 * 8-bit integers), truncated to the width of the destination. An imaginary component is dropped if
 * the destination has none; any nonzero value is true. Overlapping arrays are copied as if the
 * source had been copied to temporary memory first, of the same kind if the host cannot access it.
 *
 * Strided copies of one dtype use isthmus_copy_nd if 8 dimensions can express them after contiguous
 * ones are joined. Copies of more dimensions, copies that convert, and copies in which one side
 * alone has negative strides go through the host in chunks if the host cannot access both sides.
 * INVALID_ARGUMENT for a destination in which elements share bytes, for incompatible shapes, and
 * for conversions that `casting` does not allow; OUT_OF_RANGE for an element outside of its buffer.
 * Ordering, events and owners as in isthmus_copy. */
ISTHMUS_API isthmus_status_t isthmus_copy_array(isthmus_queue_t* queue,
                                                const isthmus_array_t* destination,
                                                const isthmus_array_t* source,
                                                isthmus_casting_t casting,
                                                const isthmus_operation_t* operation,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Sets every element to `value`, a host element of dtype `value_dtype` that is read before this
 * returns; otherwise as isthmus_copy_array. */
ISTHMUS_API isthmus_status_t isthmus_fill_array(isthmus_queue_t* queue,
                                                const isthmus_array_t* destination,
                                                const void* value, isthmus_dtype_t value_dtype,
                                                isthmus_casting_t casting,
                                                const isthmus_operation_t* operation,
                                                isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* 1 if the elements of the two arrays share a byte, else 0. Exact up to a bound on the work; beyond
 * it 1 if their extents intersect. Also 1 if the host has no memory for the check. Elements of a
 * freed buffer share nothing, nor does an invalid array: NULL, or one with invalid fields or with
 * elements outside of its memory. */
ISTHMUS_API int isthmus_arrays_overlap(const isthmus_array_t* one,
                                       const isthmus_array_t* other) ISTHMUS_NOEXCEPT;

/* ---- unified buffers ------------------------------------------------------------------------- */

typedef struct isthmus_unified_t isthmus_unified_t; /* one array on the host and on a device */

/* A unified buffer: a host copy and a device copy of the same bytes. Each copy is allocated on
 * first use and synchronized lazily: only changed bytes are copied. Host writes through plain
 * pointers are detected automatically, see isthmus_unified_info_t; writes of a device are declared
 * by isthmus_unified_mark_device. If the device can access host memory at full speed one memory
 * serves as both copies, unless `separate` is set. Ranges are `nbytes` bytes from `offset`.
 *
 * In a forked child the host copy is private: the parent does not see the child's writes, but the
 * child may see later writes of the parent to pages that the child has not written. Functions that
 * need a driver return FORKED. */

typedef int32_t isthmus_unified_state_t;
enum {
  ISTHMUS_UNIFIED_UNINITIALIZED = 0, /* no copy is allocated */
  ISTHMUS_UNIFIED_HOST_ONLY = 1,     /* nothing written, no device copy */
  ISTHMUS_UNIFIED_DEVICE_ONLY = 2,
  ISTHMUS_UNIFIED_SYNCHRONIZED = 3,
  ISTHMUS_UNIFIED_HOST_DIRTY = 4, /* host writes that the device copy lacks */
  /* device writes that the host copy lacks; perhaps also host writes */
  ISTHMUS_UNIFIED_DEVICE_DIRTY = 5
};

typedef int32_t isthmus_winner_t;
enum { ISTHMUS_WINNER_NONE = 0, ISTHMUS_WINNER_HOST = 1, ISTHMUS_WINNER_DEVICE = 2 };

/* How host writes are detected. */
typedef int32_t isthmus_dirty_tracking_t;
enum {
  ISTHMUS_DIRTY_TRACKING_DEFAULT = 0, /* the best mechanism for the size */
  ISTHMUS_DIRTY_TRACKING_PAGES = 1,   /* the kernel reports written pages: Linux 6.7 */
  ISTHMUS_DIRTY_TRACKING_BYTES = 2,   /* comparison with the last synchronized bytes: exact */
  ISTHMUS_DIRTY_TRACKING_HASHES = 3   /* comparison of hashes of blocks of 64 KiB */
};

typedef struct isthmus_unified_options_s {
  size_t struct_size;
  int32_t pinned;                    /* registers the host copy with the driver */
  int32_t separate;                  /* always two copies */
  isthmus_winner_t on_conflict;      /* whose bytes win if both sides wrote; NONE: an error */
  int32_t by_page;                   /* always tracks 4 KiB pages: for sparse writes */
  isthmus_dirty_tracking_t tracking; /* UNSUPPORTED on first use if unavailable */
  size_t element_bytes;              /* a write to a byte dirties its whole element; 0: one byte */
  isthmus_resource_t* resource;      /* of the device copy; NULL: the current resource */
} isthmus_unified_options_t;

typedef struct isthmus_unified_info_s {
  size_t struct_size;
  size_t nbytes;
  isthmus_unified_state_t state;
  isthmus_dirty_tracking_t tracking; /* in use; DEFAULT before there is a host copy */
  uint64_t granule;                  /* bytes that one write dirties at most; 0: no host copy */
  int32_t pinned;                    /* currently */
  int32_t one_memory;                /* one memory serves as both copies */
  isthmus_queue_t* queue;
  size_t host_views;        /* writable views of the host copy */
  uint64_t bytes_to_device; /* copied so far */
  uint64_t bytes_to_host;
  uint64_t copies; /* operations, of any number of ranges */
} isthmus_unified_info_t;

typedef struct isthmus_byte_range_s {
  size_t begin;
  size_t end;
} isthmus_byte_range_t;

/* Allocates nothing yet. `queue` NULL: the default device's queue; `options` NULL: all 0.
 * INVALID_ARGUMENT for 0 bytes or more than PTRDIFF_MAX; WRONG_CONTEXT for a resource that does not
 * provide device memory of the queue's context. */
ISTHMUS_API isthmus_status_t isthmus_unified_create(size_t nbytes, isthmus_queue_t* queue,
                                                    const isthmus_unified_options_t* options,
                                                    isthmus_unified_t** unified) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_retain(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_release(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* Closes the unified buffer at once: further calls return CLOSED. Host memory with views lives
 * until the last view has ended. */
ISTHMUS_API void isthmus_unified_free(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* Scans for host writes, so that the reported state is current. */
ISTHMUS_API isthmus_status_t isthmus_unified_info(isthmus_unified_t* unified,
                                                  isthmus_unified_info_t* info) ISTHMUS_NOEXCEPT;
/* Writes up to `capacity` ranges, in ascending order, that the other side lacks; `*count` receives
 * the number of all such ranges, which may exceed `capacity`. `of_device` 0: ranges written by the
 * host. */
ISTHMUS_API isthmus_status_t isthmus_unified_dirty_ranges(isthmus_unified_t* unified, int of_device,
                                                          isthmus_byte_range_t* ranges,
                                                          size_t capacity,
                                                          size_t* count) ISTHMUS_NOEXCEPT;

/* The host copy from `offset` on, synchronized in the range. Any thread may read and write it until
 * isthmus_unified_end_host, which is called once for each call of this function; a write to bytes
 * that are newer on the device is a conflict. Waits for the download of device writes. CONFLICT;
 * OUT_OF_MEMORY; errors of copies; DEVICE_LOST, whose message names the missing bytes. */
ISTHMUS_API isthmus_status_t isthmus_unified_host(isthmus_unified_t* unified, size_t offset,
                                                  size_t nbytes, void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API void isthmus_unified_end_host(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;
/* The same for reading only, valid while the caller holds a reference. No end call is needed. */
ISTHMUS_API isthmus_status_t isthmus_unified_read_host(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes,
                                                       const void** pointer) ISTHMUS_NOEXCEPT;
/* Begins an exact write of a range, which isthmus_unified_end_write ends with the same arguments:
 * no scan is needed. `keep_contents` not 0: the bytes have their current contents, and only some of
 * them are written. 0: the caller writes the whole range. Host views show the write at the latest
 * when it has ended. If the end fails, for example with OUT_OF_MEMORY, the write has ended
 * nevertheless: the next call on the unified buffer accounts for it, or fails too. */
ISTHMUS_API isthmus_status_t isthmus_unified_begin_write(isthmus_unified_t* unified, size_t offset,
                                                         size_t nbytes, int keep_contents,
                                                         void** pointer) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_end_write(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes,
                                                       int keep_contents) ISTHMUS_NOEXCEPT;

/* The device copy, synchronized in the range for work on `queue` (NULL: the unified buffer's queue)
 * from now on. Returns a buffer of the whole copy, which the caller releases. Returns when the host
 * may write again: after the copies have read the host bytes, or at once, from a snapshot of them,
 * if the copies have to wait for other work. CONFLICT; OUT_OF_MEMORY; errors of copies. */
ISTHMUS_API isthmus_status_t isthmus_unified_device(isthmus_unified_t* unified,
                                                    isthmus_queue_t* queue, size_t offset,
                                                    size_t nbytes,
                                                    isthmus_buffer_t** device) ISTHMUS_NOEXCEPT;
/* The same before a device write of exactly that range, which isthmus_unified_mark_device declares:
 * host writes next to it are tracked at the smallest granule. The mark of the same range does not
 * report failures of earlier copies; the next call does. If the mark fails, the next call on the
 * unified buffer repeats it, or fails too. */
ISTHMUS_API isthmus_status_t isthmus_unified_begin_device_write(
    isthmus_unified_t* unified, isthmus_queue_t* queue, size_t offset, size_t nbytes,
    isthmus_buffer_t** device) ISTHMUS_NOEXCEPT;

/* Synchronize one copy in the range. With `event` (set to NULL if nothing has to be copied) they do
 * not block. The event of isthmus_unified_to_device completes when the host may write again. That
 * of isthmus_unified_to_host completes when the bytes have arrived: the next isthmus_unified_host,
 * _read_host, _begin_write or _to_host of the range shows them in the views without waiting. Host
 * writes to the range before that call are a conflict. */
ISTHMUS_API isthmus_status_t isthmus_unified_to_device(isthmus_unified_t* unified,
                                                       isthmus_queue_t* queue, size_t offset,
                                                       size_t nbytes,
                                                       isthmus_event_t** event) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_to_host(isthmus_unified_t* unified,
                                                     isthmus_queue_t* queue, size_t offset,
                                                     size_t nbytes,
                                                     isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* An event for the work that a call on the range would wait for besides its own copy. The caller
 * can wait for it first, in steps: the calls themselves cannot be interrupted, and they block calls
 * of other threads on the unified buffer. `event` is set to NULL if there is no such work; an event
 * of several operations cannot fail. Always NULL in a forked child. Errors as
 * isthmus_unified_to_host. */
typedef int32_t isthmus_arrival_t;
enum {
  ISTHMUS_ARRIVAL_BEGUN = 0, /* pending downloads into the range */
  ISTHMUS_ARRIVAL_FETCH = 1, /* the same; starts downloads that have to wait for device work */
  ISTHMUS_ARRIVAL_WORK = 2   /* as BEGUN, and the work on the device copy and `queue` so far */
};
ISTHMUS_API isthmus_status_t isthmus_unified_arrival(isthmus_unified_t* unified,
                                                     isthmus_queue_t* queue, size_t offset,
                                                     size_t nbytes, isthmus_arrival_t mode,
                                                     isthmus_event_t** event) ISTHMUS_NOEXCEPT;
/* Synchronizes the device copies of many unified buffers with one scan for writes. A failure does
 * not stop the other copies; the first one is returned. `queue` NULL: the queue of each unified
 * buffer. */
ISTHMUS_API isthmus_status_t isthmus_unified_synchronize(isthmus_unified_t* const* unified,
                                                         size_t count,
                                                         isthmus_queue_t* queue) ISTHMUS_NOEXCEPT;

/* Declares writes that are not detected: all writes of a device; and writes to the host copy by
 * io_uring's fixed buffers, RDMA and other devices. INVALID_ARGUMENT if that side has no copy. */
ISTHMUS_API isthmus_status_t isthmus_unified_mark_host(isthmus_unified_t* unified, size_t offset,
                                                       size_t nbytes) ISTHMUS_NOEXCEPT;
ISTHMUS_API isthmus_status_t isthmus_unified_mark_device(isthmus_unified_t* unified, size_t offset,
                                                         size_t nbytes) ISTHMUS_NOEXCEPT;
/* Resolves a conflict: the winner's bytes remain in the range, as far as its copy ever held any,
 * and the other side's are discarded. */
ISTHMUS_API isthmus_status_t isthmus_unified_resolve(isthmus_unified_t* unified,
                                                     isthmus_winner_t winner, size_t offset,
                                                     size_t nbytes) ISTHMUS_NOEXCEPT;
/* Treats both copies as synchronized, whatever they contain. For use before all bytes are
 * overwritten. Until the device copy is obtained or marked again it may be released when memory
 * runs out, if no handle refers to it. Failures of the copies that began before are reported by
 * their events only. */
ISTHMUS_API isthmus_status_t isthmus_unified_forget(isthmus_unified_t* unified) ISTHMUS_NOEXCEPT;

/* Dirty tracking: how writes to host copies of 64 KiB and more are detected in this process. */
typedef struct isthmus_dirty_tracking_info_s {
  size_t struct_size;
  isthmus_dirty_tracking_t mechanism;
  uint64_t granule;   /* bytes that one write dirties at most */
  const char* reason; /* why it is not the kernel's page tracking; "" if it is; never freed */
} isthmus_dirty_tracking_info_t;
ISTHMUS_API isthmus_status_t isthmus_dirty_tracking_info(isthmus_dirty_tracking_info_t* info)
    ISTHMUS_NOEXCEPT;
/* Sets the mechanism for unified buffers whose host copy is allocated from now on; DEFAULT:
 * automatic. The environment variable ISTHMUS_TRACKING ("pages", "bytes", "hashes") sets it from
 * the start. UNSUPPORTED, with the reason, for pages if the kernel does not report them. */
ISTHMUS_API isthmus_status_t isthmus_dirty_tracking_force(isthmus_dirty_tracking_t tracking)
    ISTHMUS_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ISTHMUS_EXPERIMENTAL_H */
