/* Files as streams of decompressed bytes. Raw bytes come through one buffer; a decoder, if any, takes from it. */
#include "formats/byte_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/file.h"

enum { RAW_BYTES = 1 << 17, MIN_RAW_BYTES = 4 /* what tells the kinds apart */ };

typedef enum encoding { PLAIN, GZIP, ZSTD } encoding;

struct ct_byte_stream {
    char *path;
    int descriptor; /* -1: from memory */
    encoding encoding;
    unsigned char *buffer; /* of a file */
    const unsigned char *raw;
    size_t raw_size, raw_at;
    bool raw_ended;
    int64_t offset;
    int64_t plain_size; /* of a regular file, else -1 */
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool in_member;    /* of gzip, or a frame of zstd: the stream may not end here */
    ct_status *failed; /* told once all bytes before it are handed out, however they were asked for; and ever after */
};

/* More raw bytes, if there are any. What is left moves to the front of the buffer. */
static ct_status *fill(ct_byte_stream *stream)
{
    if (stream->raw_ended) return NULL;
    if (stream->descriptor < 0) {
        stream->raw_ended = true;
        return NULL;
    }
    size_t left = stream->raw_size - stream->raw_at;
    memmove(stream->buffer, stream->raw + stream->raw_at, left);
    stream->raw = stream->buffer;
    stream->raw_at = 0;
    stream->raw_size = left;
    while (stream->raw_size < RAW_BYTES) {
        ssize_t count = read(stream->descriptor, stream->buffer + stream->raw_size, RAW_BYTES - stream->raw_size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return ct_errno_error("cannot read %s", stream->path);
        stream->raw_ended = count == 0;
        stream->raw_size += (size_t)count;
        if (count == 0 || stream->raw_size >= MIN_RAW_BYTES) break;
    }
    return NULL;
}

static void find_encoding(ct_byte_stream *stream)
{
    const unsigned char *raw = stream->raw;
    if (stream->raw_size >= 3 && raw[0] == 0x1f && raw[1] == 0x8b && raw[2] == 8) {
        stream->encoding = GZIP;
        if (inflateInit2(&stream->gzip, 16 + MAX_WBITS) != Z_OK) CT_BUG("zlib cannot start");
    } else if (stream->raw_size >= 4 && raw[0] == 0x28 && raw[1] == 0xb5 && raw[2] == 0x2f && raw[3] == 0xfd) {
        stream->encoding = ZSTD;
        stream->zstd = ZSTD_createDStream();
        CT_ASSERT(stream->zstd);
    }
}

ct_status *ct_byte_stream_open(const char *path, ct_byte_stream **out_stream)
{
    *out_stream = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return ct_errno_error("cannot open %s", path);
    ct_byte_stream *stream = ct_alloc_zeroed(1, sizeof(*stream));
    stream->path = ct_strdup(path);
    stream->descriptor = descriptor;
    stream->raw = stream->buffer = ct_alloc(RAW_BYTES);
    struct stat info;
    stream->plain_size = !fstat(descriptor, &info) && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
    ct_status *status = fill(stream);
    if (status) {
        ct_byte_stream_close(stream);
        return status;
    }
    find_encoding(stream);
    *out_stream = stream;
    return NULL;
}

ct_byte_stream *ct_byte_stream_from_memory(const char *name, const void *bytes, size_t size_bytes)
{
    ct_byte_stream *stream = ct_alloc_zeroed(1, sizeof(*stream));
    stream->path = ct_strdup(name);
    stream->descriptor = -1;
    stream->raw = bytes;
    stream->raw_size = size_bytes;
    stream->plain_size = -1;
    find_encoding(stream);
    return stream;
}

void ct_byte_stream_close(ct_byte_stream *stream)
{
    if (!stream) return;
    if (stream->encoding == GZIP) inflateEnd(&stream->gzip);
    ZSTD_freeDStream(stream->zstd);
    ct_status_free(stream->failed);
    if (stream->descriptor >= 0) close(stream->descriptor);
    free(stream->buffer);
    free(stream->path);
    free(stream);
}

static size_t raw_left(const ct_byte_stream *stream)
{
    return stream->raw_size - stream->raw_at;
}

static ct_status *damaged(const ct_byte_stream *stream, const char *why)
{
    return ct_error(CT_CODE_DATA_LOSS, "%s: the %s data is damaged behind byte %lld of what it decompresses to: %s",
                    stream->path, stream->encoding == GZIP ? "gzip" : "Zstandard", (long long)stream->offset, why);
}

static ct_status *read_plain(ct_byte_stream *stream, unsigned char *to, size_t size, size_t *out_size)
{
    if (!raw_left(stream)) CT_TRY(fill(stream));
    *out_size = CT_MIN(size, raw_left(stream));
    memcpy(to, stream->raw + stream->raw_at, *out_size);
    stream->raw_at += *out_size;
    return NULL;
}

static ct_status *read_gzip(ct_byte_stream *stream, unsigned char *to, size_t size, size_t *out_size)
{
    z_stream *gzip = &stream->gzip;
    gzip->next_out = to;
    gzip->avail_out = (uInt)CT_MIN(size, (size_t)1 << 30);
    while (gzip->next_out == to) {
        if (!raw_left(stream)) CT_TRY(fill(stream));
        if (!raw_left(stream)) return stream->in_member ? damaged(stream, "it is cut short") : NULL;
        stream->in_member = true;
        size_t given = CT_MIN(raw_left(stream), (size_t)1 << 30);
        gzip->next_in = (unsigned char *)(uintptr_t)(stream->raw + stream->raw_at);
        gzip->avail_in = (uInt)given;
        int result = inflate(gzip, Z_NO_FLUSH);
        stream->raw_at += given - gzip->avail_in;
        if (result == Z_STREAM_END) {
            stream->in_member = false;
            inflateReset(gzip);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            *out_size = (size_t)(gzip->next_out - to);
            return damaged(stream, gzip->msg ? gzip->msg : "it is not gzip");
        }
    }
    *out_size = (size_t)(gzip->next_out - to);
    return NULL;
}

static ct_status *read_zstd(ct_byte_stream *stream, unsigned char *to, size_t size, size_t *out_size)
{
    ZSTD_outBuffer out = {to, size, 0};
    bool may_hold_more = true; /* a full output last time may have left some in the decoder */
    while (!out.pos) {
        if (!raw_left(stream)) CT_TRY(fill(stream));
        if (!raw_left(stream) && !may_hold_more) return stream->in_member ? damaged(stream, "it is cut short") : NULL;
        if (!raw_left(stream) && !stream->in_member) return NULL;
        ZSTD_inBuffer in = {stream->raw + stream->raw_at, raw_left(stream), 0};
        size_t hint = ZSTD_decompressStream(stream->zstd, &out, &in);
        if (ZSTD_isError(hint)) return damaged(stream, ZSTD_getErrorName(hint));
        stream->raw_at += in.pos;
        stream->in_member = hint != 0;
        may_hold_more = in.pos > 0;
    }
    *out_size = out.pos;
    return NULL;
}

/* The first bytes that are to be had; 0 at the end. On an error those before it. */
static ct_status *read_some(ct_byte_stream *stream, unsigned char *to, size_t size, size_t *out_size)
{
    *out_size = 0;
    switch (stream->encoding) {
    case PLAIN: return read_plain(stream, to, size, out_size);
    case GZIP: return read_gzip(stream, to, size, out_size);
    case ZSTD: return read_zstd(stream, to, size, out_size);
    }
    return NULL;
}

ct_status *ct_byte_stream_read(ct_byte_stream *stream, void *bytes, size_t size, size_t *out_size)
{
    unsigned char *to = bytes;
    size_t total = 0;
    *out_size = 0;
    while (total < size && !stream->failed) {
        size_t count;
        stream->failed = read_some(stream, to + total, size - total, &count);
        if (!count) break;
        total += count;
        stream->offset += (int64_t)count;
    }
    *out_size = total;
    if (total || !stream->failed) return NULL;
    return ct_error(ct_status_code(stream->failed), "%s", ct_status_message(stream->failed));
}

ct_status *ct_byte_stream_skip_to(ct_byte_stream *stream, int64_t offset, int64_t *out_offset)
{
    CT_ASSERT(offset >= stream->offset);
    int64_t far = stream->offset + (int64_t)raw_left(stream);
    if (stream->encoding == PLAIN && stream->plain_size >= 0 && offset > far) {
        int64_t to = CT_MIN(offset, CT_MAX(stream->plain_size, far));
        if (lseek(stream->descriptor, to, SEEK_SET) < 0) return ct_errno_error("cannot seek in %s", stream->path);
        stream->raw_at = stream->raw_size = 0;
        stream->raw_ended = false;
        stream->offset = to;
    }
    char scratch[1 << 14];
    while (stream->offset < offset) {
        size_t count, wanted = (size_t)CT_MIN(offset - stream->offset, (int64_t)sizeof(scratch));
        CT_TRY(ct_byte_stream_read(stream, scratch, wanted, &count));
        if (count < wanted) break;
    }
    *out_offset = stream->offset;
    return NULL;
}

int64_t ct_byte_stream_offset(const ct_byte_stream *stream)
{
    return stream->offset;
}

const char *ct_byte_stream_path(const ct_byte_stream *stream)
{
    return stream->path;
}
