/* The bytes of a file in order, decompressed on the way: plain, gzip or Zstandard, told by the file's first bytes.
 *
 * Several gzip members or Zstandard frames behind one another are one stream, as their tools have it. Offsets count
 * decompressed bytes. Belongs to one thread.
 */
#ifndef CT_FORMATS_BYTE_STREAM_H
#define CT_FORMATS_BYTE_STREAM_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ct_byte_stream ct_byte_stream;

CT_MUST_USE ct_status *ct_byte_stream_open(const char *path, ct_byte_stream **out_stream);
/* From memory, which must outlive the stream; name is for messages. */
ct_byte_stream *ct_byte_stream_from_memory(const char *name, const void *bytes, size_t size_bytes);
void ct_byte_stream_close(ct_byte_stream *stream); /* NULL is allowed */

/* Reads up to size bytes; fewer, and 0 from then on, only at the end. Errors: DATA_LOSS naming the path when what is
 * compressed is damaged or cut short; those of reading. */
CT_MUST_USE ct_status *ct_byte_stream_read(ct_byte_stream *stream, void *bytes, size_t size, size_t *out_size);

/* Moves forward to offset, or to the end when the stream is shorter; out_offset is where it stands then. Going back is
 * a bug. Plain files seek, others are decompressed up to there. */
CT_MUST_USE ct_status *ct_byte_stream_skip_to(ct_byte_stream *stream, int64_t offset, int64_t *out_offset);

int64_t ct_byte_stream_offset(const ct_byte_stream *stream); /* of the next byte */
const char *ct_byte_stream_path(const ct_byte_stream *stream);

#endif
