/* A device buffer: one dense array on one device.
 *
 *   host array --ct_buffer_from_host--> ct_buffer --ct_buffer_to_host--> host bytes      both asynchronous
 *
 * A buffer has one owner, who frees it; an execution that takes it by donation frees it and NULLs the owner's pointer.
 * Freeing never waits: work that uses the buffer keeps its memory until it is done. Thread-safe but for freeing.
 * On the host, arrays are dense and row-major, whatever the device's layout.
 */
#ifndef CT_PJRT_BUFFER_H
#define CT_PJRT_BUFFER_H

#include "base/dtype.h"
#include "pjrt/client.h"
#include "pjrt/event.h"

typedef struct ct_buffer ct_buffer;

typedef struct ct_buffer_opts {
    const ct_memory *memory; /* where to put it; NULL is the device's default memory */
} ct_buffer_opts;

/* Starts the copy of array to device. The array's bytes must stay unchanged until *out_done is ready; with out_done
 * NULL they are free again when the call returns. The buffer may be used at once.
 */
CT_MUST_USE ct_status *ct_buffer_from_host(ct_device *device, const ct_array *array, const ct_buffer_opts *opts,
                                           ct_event **out_done, ct_buffer **out_buffer);

/* Starts the copy to size_bytes of data, which must be exactly the buffer's dense size and stay alive until *out_done
 * is ready; out_done NULL waits.
 */
CT_MUST_USE ct_status *ct_buffer_to_host(ct_buffer *buffer, void *data, size_t size_bytes, ct_event **out_done);

/* Waits and copies into a new array, freed with ct_array_free. */
CT_MUST_USE ct_status *ct_buffer_to_array(ct_buffer *buffer, ct_array *out_array);

/* The buffer's type and sizes; out_shape->data is NULL. Does not wait. */
CT_MUST_USE ct_status *ct_buffer_shape(ct_buffer *buffer, ct_array *out_shape);

/* Bytes on the device, padding of its layout included. */
CT_MUST_USE ct_status *ct_buffer_device_bytes(ct_buffer *buffer, size_t *out_size_bytes);

/* An event that is ready when the buffer's contents are, with the error of the work that makes them. */
CT_MUST_USE ct_status *ct_buffer_ready_event(ct_buffer *buffer, ct_event **out_event);

CT_MUST_USE ct_status *ct_buffer_device(ct_buffer *buffer, ct_device **out_device);
CT_MUST_USE ct_status *ct_buffer_memory(ct_buffer *buffer, const ct_memory **out_memory);
CT_MUST_USE ct_status *ct_buffer_copy_to_device(ct_buffer *buffer, ct_device *device, ct_buffer **out_copy);
CT_MUST_USE ct_status *ct_buffer_copy_to_memory(ct_buffer *buffer, const ct_memory *memory, ct_buffer **out_copy);

/* Gives the memory back now, though the object stays until it is freed. */
CT_MUST_USE ct_status *ct_buffer_delete(ct_buffer *buffer);
CT_MUST_USE ct_status *ct_buffer_is_deleted(ct_buffer *buffer, bool *out_deleted); /* or donated */

void ct_buffer_free(ct_buffer *buffer);                        /* NULL is allowed */
void ct_buffers_free(ct_buffer **buffers, size_t num_buffers); /* each one, NULLing them; not the array */

#endif
