# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
# The two Cython blocks of "USM Memory Instructions": allocation, and a copy from the host, written on
# the declarations that Isthmus ships.

from isthmus cimport (
    ISTHMUS_KIND_DEVICE,
    buffer_handle,
    isthmus_buffer_create,
    isthmus_buffer_info,
    isthmus_buffer_info_t,
    isthmus_buffer_release,
    isthmus_buffer_t,
    isthmus_copy,
    isthmus_event_release,
    isthmus_event_t,
    isthmus_event_wait,
    isthmus_endpoint_t,
    isthmus_queue_t,
    isthmus_status_t,
    queue_handle,
    raise_error,
)


cdef class MemoryUSMDevice:
    cdef isthmus_buffer_t* _memory_ref
    cdef size_t _nbytes
    cdef object _queue

    def __cinit__(self, size_t nbytes, queue):
        cdef isthmus_queue_t* qref = queue_handle(queue)
        cdef isthmus_status_t status

        with nogil:
            status = isthmus_buffer_create(
                nbytes, ISTHMUS_KIND_DEVICE, 0, qref, NULL, &self._memory_ref
            )
        if status:
            raise_error(status)

        self._nbytes = nbytes
        self._queue = queue

    def __dealloc__(self):
        # Accepts NULL. The memory outlives the operations on it.
        isthmus_buffer_release(self._memory_ref)

    @property
    def nbytes(self):
        return self._nbytes

    def copy_from_host(self, host_buffer):
        """Copy data from host to device memory."""
        cdef const unsigned char[::1] buf = host_buffer
        cdef isthmus_endpoint_t destination
        cdef isthmus_endpoint_t source
        cdef isthmus_event_t* event = NULL
        cdef isthmus_status_t status

        if <size_t>buf.shape[0] > self._nbytes:
            raise ValueError("Source buffer larger than allocation")

        destination.buffer = self._memory_ref
        destination.pointer = NULL
        destination.offset = 0
        source.buffer = NULL
        source.pointer = <void*>&buf[0]
        source.offset = 0
        status = isthmus_copy(
            queue_handle(self._queue), &destination, &source, buf.shape[0], NULL, &event
        )
        if status:
            raise_error(status)

        with nogil:
            status = isthmus_event_wait(event, -1)
            isthmus_event_release(event)
        if status:
            raise_error(status)

    def copy_to(self, buffer):
        """Copy into an isthmus.Buffer; blocks."""
        cdef isthmus_endpoint_t destination
        cdef isthmus_endpoint_t source
        cdef isthmus_status_t status
        destination.buffer = buffer_handle(buffer)
        destination.pointer = NULL
        destination.offset = 0
        source.buffer = self._memory_ref
        source.pointer = NULL
        source.offset = 0
        with nogil:
            status = isthmus_copy(NULL, &destination, &source, self._nbytes, NULL, NULL)
        if status:
            raise_error(status)


def address_of(buffer):
    """The address of an isthmus.Buffer, asked of the library."""
    cdef isthmus_buffer_info_t info
    info.struct_size = sizeof(info)
    cdef isthmus_status_t status = isthmus_buffer_info(buffer_handle(buffer), &info)
    if status:
        raise_error(status)
    return <size_t>info.pointer
