/* TensorBoard's event files, as bytes to append to one: TFRecord frames, an Event message in each.
 *
 *   u64 length | u32 masked CRC-32C of it | the message | u32 masked CRC-32C of that        all little-endian
 *
 *   Event     1 wall_time double, 2 step int64, then one of 3 file_version string, 5 summary, 7 session_log
 *   Summary   1 value repeated: 1 tag string, 2 simple_value float
 *   SessionLog 1 status: 1 START
 *
 * Source: tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.h.
 */
#ifndef CT_FORMATS_EVENT_FILE_H
#define CT_FORMATS_EVENT_FILE_H

#include "base/str.h"

/* The first record of each file. wall_time_s, here and below: seconds since 1970. */
void ct_event_append_version(ct_str *out, double wall_time_s);

/* Says that a run goes on at step: readers drop what earlier files of the folder say of it and of later steps. */
void ct_event_append_start(ct_str *out, double wall_time_s, int64_t step);

typedef struct ct_event_scalar {
    const char *tag;
    double value; /* written as float */
} ct_event_scalar;

void ct_event_append_scalars(ct_str *out, double wall_time_s, int64_t step, const ct_event_scalar *scalars,
                             size_t num_scalars);

#endif
