/* Messages are small and few kinds, so they are written field by field. */
#include "formats/event_file.h"

#include <string.h>

#include "base/crc32c.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void append_little_endian(ct_str *out, uint64_t value, int num_bytes)
{
    for (int i = 0; i < num_bytes; i++) ct_str_append_char(out, (char)(value >> 8 * i & 0xff));
}

static void append_varint(ct_str *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) ct_str_append_char(out, (char)((value & 0x7f) | 0x80));
    ct_str_append_char(out, (char)value);
}

static void append_key(ct_str *out, unsigned field, unsigned type)
{
    append_varint(out, field << 3 | type);
}

static void append_int(ct_str *out, unsigned field, int64_t value)
{
    append_key(out, field, VARINT);
    append_varint(out, (uint64_t)value);
}

static void append_double(ct_str *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    append_key(out, field, FIXED64);
    append_little_endian(out, bits, 8);
}

static void append_float(ct_str *out, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    append_key(out, field, FIXED32);
    append_little_endian(out, bits, 4);
}

static void append_bytes(ct_str *out, unsigned field, const char *bytes, size_t length)
{
    append_key(out, field, BYTES);
    append_varint(out, length);
    ct_str_append_n(out, bytes, length);
}

static void append_masked_crc(ct_str *out, const char *bytes, size_t length)
{
    uint32_t crc = ct_crc32c(bytes, length);
    append_little_endian(out, (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8), 4);
}

/* An event with one field more, `field`, of a string or a message. */
static void append_event(ct_str *out, double wall_time_s, int64_t step, unsigned field, const ct_str *content)
{
    ct_str event;
    ct_str_init(&event);
    append_double(&event, 1, wall_time_s);
    append_int(&event, 2, step);
    append_bytes(&event, field, content->data, content->length);
    size_t head = out->length;
    append_little_endian(out, event.length, 8);
    append_masked_crc(out, out->data + head, 8);
    ct_str_append_n(out, event.data, event.length);
    append_masked_crc(out, event.data, event.length);
    ct_str_deinit(&event);
}

void ct_event_append_version(ct_str *out, double wall_time_s)
{
    ct_str version;
    ct_str_init(&version);
    ct_str_append(&version, "brain.Event:2");
    append_event(out, wall_time_s, 0, 3, &version);
    ct_str_deinit(&version);
}

void ct_event_append_start(ct_str *out, double wall_time_s, int64_t step)
{
    ct_str log;
    ct_str_init(&log);
    append_int(&log, 1, 1);
    append_event(out, wall_time_s, step, 7, &log);
    ct_str_deinit(&log);
}

void ct_event_append_scalars(ct_str *out, double wall_time_s, int64_t step, const ct_event_scalar *scalars,
                             size_t num_scalars)
{
    ct_str summary, value;
    ct_str_init(&summary);
    ct_str_init(&value);
    for (size_t i = 0; i < num_scalars; i++) {
        ct_str_reset(&value);
        append_bytes(&value, 1, scalars[i].tag, strlen(scalars[i].tag));
        append_float(&value, 2, (float)scalars[i].value);
        append_bytes(&summary, 1, value.data, value.length);
    }
    append_event(out, wall_time_s, step, 5, &summary);
    ct_str_deinit(&value);
    ct_str_deinit(&summary);
}
