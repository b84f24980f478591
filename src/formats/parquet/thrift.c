/* Thrift's compact protocol, as far as Parquet's metadata needs it. */
#include "formats/parquet/internal.h"

enum { MAX_DEPTH = 32 };

static uint8_t byte(ct__thrift *t)
{
    if (t->at < t->end) return *t->at++;
    t->failed = true;
    return 0;
}

uint64_t ct__thrift_varint(ct__thrift *t)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte(t);
        value |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return value;
    }
    t->failed = true;
    return 0;
}

int64_t ct__thrift_int(ct__thrift *t)
{
    uint64_t value = ct__thrift_varint(t);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

bool ct__thrift_next(ct__thrift *t, ct__thrift_field *field)
{
    uint8_t header = byte(t);
    if (t->failed || (header & 15) == CT__THRIFT_STOP) return false;
    field->type = (ct__thrift_type)(header & 15);
    int64_t id = header >> 4 ? field->id + (header >> 4) : ct__thrift_int(t);
    t->failed = t->failed || field->type > CT__THRIFT_STRUCT || id < 0 || id > INT16_MAX;
    field->id = id;
    return !t->failed;
}

const uint8_t *ct__thrift_binary(ct__thrift *t, size_t *out_size)
{
    uint64_t size = ct__thrift_varint(t);
    if (t->failed || size > (uint64_t)(t->end - t->at)) {
        t->failed = true;
        *out_size = 0;
        return t->end;
    }
    const uint8_t *bytes = t->at;
    t->at += size;
    *out_size = (size_t)size;
    return bytes;
}

size_t ct__thrift_list(ct__thrift *t, ct__thrift_type *out_type)
{
    uint8_t header = byte(t);
    *out_type = (ct__thrift_type)(header & 15);
    uint64_t count = header >> 4 == 15 ? ct__thrift_varint(t) : header >> 4;
    bool is_type = *out_type <= CT__THRIFT_STRUCT && *out_type != CT__THRIFT_STOP;
    if (!t->failed && (is_type || !count) && count <= (uint64_t)(t->end - t->at)) /* an empty list needs no type */
        return (size_t)count;
    t->failed = true;
    return 0;
}

static void skip(ct__thrift *t, ct__thrift_type type, int depth, bool in_list)
{
    if (depth > MAX_DEPTH) t->failed = true;
    if (t->failed) return;
    switch (type) {
    case CT__THRIFT_TRUE:
    case CT__THRIFT_FALSE:
        if (in_list) byte(t);
        return;
    case CT__THRIFT_BYTE: byte(t); return;
    case CT__THRIFT_I16:
    case CT__THRIFT_I32:
    case CT__THRIFT_I64: ct__thrift_varint(t); return;
    case CT__THRIFT_DOUBLE:
        for (int i = 0; i < 8; i++) byte(t);
        return;
    case CT__THRIFT_BINARY: {
        size_t size;
        (void)ct__thrift_binary(t, &size);
        return;
    }
    case CT__THRIFT_LIST:
    case CT__THRIFT_SET: {
        ct__thrift_type element;
        size_t count = ct__thrift_list(t, &element);
        for (size_t i = 0; i < count && !t->failed; i++) skip(t, element, depth + 1, true);
        return;
    }
    case CT__THRIFT_MAP: {
        uint64_t count = ct__thrift_varint(t);
        if (!count) return;
        uint8_t types = byte(t);
        if (count > (uint64_t)(t->end - t->at)) t->failed = true;
        for (uint64_t i = 0; i < count && !t->failed; i++) {
            skip(t, (ct__thrift_type)(types >> 4), depth + 1, true);
            skip(t, (ct__thrift_type)(types & 15), depth + 1, true);
        }
        return;
    }
    case CT__THRIFT_STRUCT: {
        ct__thrift_field field = {0};
        while (ct__thrift_next(t, &field)) skip(t, field.type, depth + 1, false);
        return;
    }
    case CT__THRIFT_STOP: break;
    }
    t->failed = true;
}

void ct__thrift_skip(ct__thrift *t, ct__thrift_type type)
{
    skip(t, type, 0, false);
}

int64_t ct__thrift_field_int(ct__thrift *t, const ct__thrift_field *field)
{
    switch (field->type) {
    case CT__THRIFT_TRUE: return 1;
    case CT__THRIFT_FALSE: return 0;
    case CT__THRIFT_I16:
    case CT__THRIFT_I32:
    case CT__THRIFT_I64: return ct__thrift_int(t);
    default: t->failed = true; return 0;
    }
}
