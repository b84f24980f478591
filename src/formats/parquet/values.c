/* Levels and values of a page, one at a time, so that a page that promises millions of values costs what it holds. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/internal.h"

/* ---- runs ---- */

void ct__runs_init(ct__runs *runs, const uint8_t *at, const uint8_t *end, unsigned width)
{
    *runs = (ct__runs){.at = at, .end = end, .width = width};
}

static bool next_run(ct__runs *runs)
{
    ct__thrift t = {.at = runs->at, .end = runs->end};
    uint64_t header = ct__thrift_varint(&t);
    runs->at = t.at;
    if (t.failed || !(header >> 1)) return false;
    if (header & 1) { /* groups of eight, packed */
        runs->num_bits = 0;
        runs->bits = 0;
        runs->num_packed = header >> 1;
        if (runs->num_packed > UINT64_MAX / 8) return false;
        runs->num_packed *= 8;
        return true;
    }
    runs->num_equal = header >> 1;
    runs->equal = 0;
    for (unsigned i = 0; i < (runs->width + 7) / 8; i++) {
        if (runs->at == runs->end) return false;
        runs->equal |= (uint32_t)*runs->at++ << (8 * i);
    }
    return true;
}

bool ct__runs_next(ct__runs *runs, uint32_t *out_number)
{
    while (!runs->num_equal && !runs->num_packed)
        if (!next_run(runs)) return false;
    if (runs->num_equal) {
        runs->num_equal--;
        *out_number = runs->equal;
        return true;
    }
    while (runs->num_bits < runs->width) {
        if (runs->at == runs->end) return false;
        runs->bits |= (uint64_t)*runs->at++ << runs->num_bits;
        runs->num_bits += 8;
    }
    *out_number = (uint32_t)(runs->bits & (((uint64_t)1 << runs->width) - 1));
    runs->bits >>= runs->width;
    runs->num_bits -= runs->width;
    runs->num_packed--;
    return true;
}

/* ---- DELTA_BINARY_PACKED ---- */

/* Numbers below 2^31, as lengths are; heap. NULL when they are no such. at moves behind them. */
static int32_t *read_deltas(const uint8_t **at, const uint8_t *end, size_t max_values, size_t *out_count)
{
    ct__thrift t = {.at = *at, .end = end};
    uint64_t block_size = ct__thrift_varint(&t), num_miniblocks = ct__thrift_varint(&t), total = ct__thrift_varint(&t);
    int64_t value = ct__thrift_int(&t);
    if (t.failed || total > max_values || !num_miniblocks || num_miniblocks > 512 || block_size > 1 << 20 ||
        block_size % num_miniblocks || (block_size / num_miniblocks) % 8)
        return NULL;
    size_t miniblock_size = (size_t)(block_size / num_miniblocks), count = 0;
    int32_t *values = ct_alloc((size_t)total * sizeof(*values));
    bool is_fine = true;
    while (is_fine && count < total) {
        if (value < 0 || value > INT32_MAX) is_fine = false;
        values[count++] = (int32_t)value;
        while (is_fine && count < total) { /* a block */
            int64_t least = ct__thrift_int(&t);
            const uint8_t *widths = t.at;
            is_fine = !t.failed && num_miniblocks <= (uint64_t)(t.end - t.at);
            if (is_fine) t.at += num_miniblocks;
            for (uint64_t m = 0; is_fine && m < num_miniblocks && count < total; m++) {
                size_t size = widths[m] * miniblock_size / 8;
                is_fine = widths[m] <= 32 && size <= (size_t)(t.end - t.at);
                if (!is_fine) break;
                ct__runs packed = {.at = t.at, .end = t.at + size, .width = widths[m], .num_packed = miniblock_size};
                for (size_t i = 0; is_fine && i < miniblock_size && count < total; i++) {
                    uint32_t delta = 0;
                    is_fine = ct__runs_next(&packed, &delta) && ct_checked_add(value, least, &value) &&
                              ct_checked_add(value, delta, &value) && value >= 0 && value <= INT32_MAX;
                    values[count++] = (int32_t)value;
                }
                t.at += size;
            }
        }
    }
    if (!is_fine) {
        free(values);
        return NULL;
    }
    *at = t.at;
    *out_count = (size_t)total;
    return values;
}

/* ---- values ---- */

bool ct__encoding_is_known(int64_t encoding)
{
    return encoding == CT__ENCODING_PLAIN || encoding == CT__ENCODING_PLAIN_DICTIONARY ||
           encoding == CT__ENCODING_RLE_DICTIONARY || encoding == CT__ENCODING_DELTA_LENGTH ||
           encoding == CT__ENCODING_DELTA_BYTES;
}

void ct__values_deinit(ct__values *values)
{
    free(values->lengths);
    free(values->prefixes);
    values->lengths = values->prefixes = NULL;
    values->num_lengths = values->next = 0;
}

bool ct__values_init(ct__values *values, int64_t encoding, const uint8_t *at, const uint8_t *end, size_t max_values)
{
    values->encoding = encoding;
    values->next = 0;
    size_t num_prefixes = 0;
    switch (encoding) {
    case CT__ENCODING_PLAIN_DICTIONARY:
    case CT__ENCODING_RLE_DICTIONARY:
        if (at == end) return true; /* all are null */
        if (*at > 32) return false;
        ct__runs_init(&values->indices, at + 1, end, *at);
        return true;
    case CT__ENCODING_DELTA_BYTES:
        values->prefixes = read_deltas(&at, end, max_values, &num_prefixes);
        if (!values->prefixes) return false;
        ct_str_reset(&values->last);
        /* fall through */
    case CT__ENCODING_DELTA_LENGTH:
        values->lengths = read_deltas(&at, end, max_values, &values->num_lengths);
        if (!values->lengths || (values->prefixes && values->num_lengths != num_prefixes)) return false;
        break;
    default: break;
    }
    values->at = at;
    values->end = end;
    return true;
}

static bool take(ct__values *values, size_t size, ct__slice *out)
{
    if (size > (size_t)(values->end - values->at)) return false;
    *out = (ct__slice){values->at, size};
    values->at += size;
    return true;
}

bool ct__values_next(ct__values *values, ct__slice *out)
{
    switch (values->encoding) {
    case CT__ENCODING_PLAIN: {
        ct__slice length;
        if (!take(values, 4, &length)) return false;
        const uint8_t *b = length.bytes;
        return take(values, b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24, out);
    }
    case CT__ENCODING_PLAIN_DICTIONARY:
    case CT__ENCODING_RLE_DICTIONARY: {
        uint32_t index;
        if (!values->indices.at || !ct__runs_next(&values->indices, &index) || index >= values->num_dictionary)
            return false;
        *out = values->dictionary[index];
        return true;
    }
    case CT__ENCODING_DELTA_LENGTH:
        return values->next < values->num_lengths && take(values, (size_t)values->lengths[values->next++], out);
    case CT__ENCODING_DELTA_BYTES: {
        if (values->next >= values->num_lengths) return false;
        size_t prefix = (size_t)values->prefixes[values->next], size = (size_t)values->lengths[values->next++];
        if (prefix > values->last.length || !take(values, size, out)) return false;
        values->last.length = prefix;
        ct_str_append_n(&values->last, (const char *)out->bytes, size);
        *out = (ct__slice){(const uint8_t *)values->last.data, values->last.length};
        return true;
    }
    default: return false;
    }
}
