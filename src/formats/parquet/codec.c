/* Decompression of pages whose size is known. Snappy and LZ4 blocks are decoded here. */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "formats/parquet/internal.h"

bool ct__codec_is_known(int64_t codec)
{
    return codec == CT__CODEC_NONE || codec == CT__CODEC_SNAPPY || codec == CT__CODEC_GZIP || codec == CT__CODEC_ZSTD ||
           codec == CT__CODEC_LZ4;
}

const char *ct__codec_name(int64_t codec)
{
    static const char *const names[] = {"none", "snappy", "gzip", "lzo", "brotli", "lz4 in Hadoop's frames",
                                        "zstd", "lz4"};
    return codec >= 0 && codec < (int64_t)CT_COUNT(names) ? names[codec] : "unknown";
}

typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct writer {
    uint8_t *begin, *at, *end;
} writer;

static bool literal(reader *in, writer *out, size_t size)
{
    if (size > (size_t)(in->end - in->at) || size > (size_t)(out->end - out->at)) return false;
    memcpy(out->at, in->at, size);
    in->at += size;
    out->at += size;
    return true;
}

/* Bytes from `distance` back, which may overlap what they make. */
static bool copy(writer *out, size_t distance, size_t size)
{
    if (!distance || distance > (size_t)(out->at - out->begin) || size > (size_t)(out->end - out->at)) return false;
    if (distance >= size) {
        memcpy(out->at, out->at - distance, size);
        out->at += size;
        return true;
    }
    for (; size; size--, out->at++) *out->at = out->at[-(ptrdiff_t)distance];
    return true;
}

static bool little_endian(reader *in, unsigned num_bytes, size_t *out)
{
    if (num_bytes > (size_t)(in->end - in->at)) return false;
    *out = 0;
    for (unsigned i = 0; i < num_bytes; i++) *out |= (size_t)*in->at++ << (8 * i);
    return true;
}

/* Source: google/snappy, format_description.txt. */
static bool snappy(reader in, writer out)
{
    ct__thrift length = {.at = in.at, .end = in.end}; /* the same varint */
    if (ct__thrift_varint(&length) != (uint64_t)(out.end - out.at) || length.failed) return false;
    in.at = length.at;
    while (in.at < in.end) {
        uint8_t tag = *in.at++;
        size_t size = (size_t)tag >> 2, distance = 0;
        bool is_fine = true;
        switch (tag & 3) {
        case 0:
            if (size >= 60) is_fine = little_endian(&in, (unsigned)size - 59, &size);
            is_fine = is_fine && size < SIZE_MAX && literal(&in, &out, size + 1);
            break;
        case 1:
            is_fine =
                little_endian(&in, 1, &distance) && copy(&out, (size_t)(tag >> 5) << 8 | distance, (size & 7) + 4);
            break;
        case 2: is_fine = little_endian(&in, 2, &distance) && copy(&out, distance, size + 1); break;
        case 3: is_fine = little_endian(&in, 4, &distance) && copy(&out, distance, size + 1); break;
        }
        if (!is_fine) return false;
    }
    return out.at == out.end;
}

/* A length that goes on in bytes of 255. */
static bool more(reader *in, size_t *size)
{
    if (*size != 15) return true;
    uint8_t byte;
    do {
        if (in->at == in->end) return false;
        *size += byte = *in->at++;
    } while (byte == 255);
    return true;
}

/* Source: lz4/lz4, lz4_Block_format.md. */
static bool lz4(reader in, writer out)
{
    while (in.at < in.end) {
        uint8_t token = *in.at++;
        size_t num_literals = token >> 4, size = token & 15, distance;
        if (!more(&in, &num_literals) || !literal(&in, &out, num_literals)) return false;
        if (in.at == in.end) break; /* the last sequence has no copy */
        if (!little_endian(&in, 2, &distance) || !more(&in, &size) || !copy(&out, distance, size + 4)) return false;
    }
    return out.at == out.end;
}

static bool gzip(reader in, writer out)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)in.at,
                       .avail_in = (uInt)(in.end - in.at),
                       .next_out = out.at,
                       .avail_out = (uInt)(out.end - out.at)};
    if (inflateInit2(&stream, 32 + MAX_WBITS) != Z_OK) return false;
    int result;
    while ((result = inflate(&stream, Z_FINISH)) == Z_STREAM_END && stream.avail_out && stream.avail_in)
        inflateReset(&stream); /* several members */
    bool is_fine = result == Z_STREAM_END && !stream.avail_out;
    inflateEnd(&stream);
    return is_fine;
}

const char *ct__decompress(int64_t codec, const uint8_t *bytes, size_t size, uint8_t *out, size_t out_size)
{
    reader in = {bytes, bytes + size};
    writer to = {out, out, out + out_size};
    bool is_fine = false;
    switch (codec) {
    case CT__CODEC_NONE: is_fine = size == out_size && literal(&in, &to, size); break;
    case CT__CODEC_SNAPPY: is_fine = snappy(in, to); break;
    case CT__CODEC_GZIP: is_fine = gzip(in, to); break;
    case CT__CODEC_ZSTD: is_fine = ZSTD_decompress(out, out_size, bytes, size) == out_size; break;
    case CT__CODEC_LZ4: is_fine = lz4(in, to); break;
    default: break;
    }
    return is_fine ? NULL : "it does not decompress to the size that its header says";
}
