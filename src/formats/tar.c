/* Tar archives. Headers of kind x (pax), L and K (GNU) tell about the member behind them. */
#include "formats/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { BLOCK = 512, MAX_NAME_BYTES = 1 << 20 };

struct ct_tar {
    ct_byte_stream *stream;
    ct_str name, extra;
    int64_t left, next; /* unread bytes of the member's contents; where the next header is */
    bool has_name;      /* a header before gave it */
    int64_t pax_size;   /* -1: none */
    bool ended;
};

ct_tar *ct_tar_new(ct_byte_stream *stream)
{
    ct_tar *tar = ct_alloc_zeroed(1, sizeof(*tar));
    tar->stream = stream;
    tar->next = ct_byte_stream_offset(stream);
    ct_str_init(&tar->name);
    ct_str_init(&tar->extra);
    return tar;
}

void ct_tar_free(ct_tar *tar)
{
    if (!tar) return;
    ct_byte_stream_close(tar->stream);
    ct_str_deinit(&tar->name);
    ct_str_deinit(&tar->extra);
    free(tar);
}

static ct_status *damaged(const ct_tar *tar, int64_t offset, const char *why)
{
    return ct_error(CT_CODE_DATA_LOSS, "%s: the tar archive is damaged at byte %lld: %s",
                    ct_byte_stream_path(tar->stream), (long long)offset, why);
}

/* An octal number, or with the first bit set a big-endian one; -1 for neither. */
static int64_t number(const unsigned char *field, size_t size)
{
    int64_t value = 0;
    if (field[0] & 0x80) {
        for (size_t i = 0; i < size; i++) {
            if (value >> 54) return -1;
            value = value << 8 | (i ? field[i] : field[0] & 0x7f);
        }
        return value;
    }
    size_t i = 0;
    while (i < size && field[i] == ' ') i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) value = value << 3 | (field[i] - '0');
    return i == size || field[i] == 0 || field[i] == ' ' ? value : -1;
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < BLOCK; i++)
        if (block[i]) return false;
    return true;
}

static bool has_checksum(const unsigned char *block)
{
    int64_t sum = 0, wanted = number(block + 148, 8);
    for (size_t i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : block[i];
    return sum == wanted;
}

/* The next block; out_ended at the end of the file. */
static ct_status *read_block(ct_tar *tar, unsigned char *block, bool *out_ended)
{
    int64_t at;
    size_t count;
    CT_TRY(ct_byte_stream_skip_to(tar->stream, tar->next, &at));
    if (at < tar->next) return damaged(tar, at, "the file ends in the middle of a member");
    CT_TRY(ct_byte_stream_read(tar->stream, block, BLOCK, &count));
    if (count && count < BLOCK) return damaged(tar, at, "the file ends in the middle of a header");
    *out_ended = count == 0;
    return NULL;
}

/* Appends size bytes of contents. */
static ct_status *read_contents(ct_tar *tar, int64_t size, ct_str *out)
{
    char piece[1 << 13]; /* in pieces: a size that is a lie costs no memory */
    while (size > 0) {
        size_t count, wanted = (size_t)CT_MIN(size, (int64_t)sizeof(piece));
        CT_TRY(ct_byte_stream_read(tar->stream, piece, wanted, &count));
        ct_str_append_n(out, piece, count);
        if (count < wanted)
            return damaged(tar, ct_byte_stream_offset(tar->stream), "the file ends in the middle of a member");
        size -= (int64_t)count;
    }
    return NULL;
}

/* "length key=value\n" records. */
static void read_pax(ct_tar *tar)
{
    const char *at = tar->extra.data, *end = at + tar->extra.length;
    while (at < end) {
        char *after;
        long long length = strtoll(at, &after, 10);
        if (length <= 0 || length > end - at || after >= at + length || *after != ' ' || at[length - 1] != '\n') return;
        const char *key = after + 1, *value = memchr(key, '=', (size_t)(at + length - key));
        if (!value) return;
        size_t key_length = (size_t)(value - key), value_length = (size_t)(at + length - 1 - (value + 1));
        if (key_length == 4 && !memcmp(key, "path", 4)) {
            ct_str_reset(&tar->name);
            ct_str_append_n(&tar->name, value + 1, value_length);
            tar->has_name = true;
        } else if (key_length == 4 && !memcmp(key, "size", 4)) {
            long long size = strtoll(value + 1, &after, 10);
            if (after == at + length - 1 && size >= 0) tar->pax_size = size;
        }
        at += length;
    }
}

static void append_field(ct_str *str, const unsigned char *field, size_t size)
{
    ct_str_append_n(str, (const char *)field, strnlen((const char *)field, size));
}

static void read_name(ct_tar *tar, const unsigned char *block)
{
    if (tar->has_name) return;
    ct_str_reset(&tar->name);
    if (!memcmp(block + 257, "ustar", 6) && block[345]) { /* GNU's own form has other things there */
        append_field(&tar->name, block + 345, 155);
        ct_str_append_char(&tar->name, '/');
    }
    append_field(&tar->name, block, 100);
}

ct_status *ct_tar_next(ct_tar *tar, ct_tar_member *out_member)
{
    *out_member = (ct_tar_member){.offset = tar->next};
    tar->has_name = false;
    tar->pax_size = -1;
    tar->left = 0;
    while (!tar->ended) {
        unsigned char block[BLOCK];
        int64_t at = tar->next;
        CT_TRY(read_block(tar, block, &tar->ended));
        if (tar->ended || is_zero(block)) break;
        int64_t size = number(block + 124, 12), padded;
        if (!has_checksum(block)) return damaged(tar, at, "there is no tar header");
        char type = (char)block[156];
        bool is_extra = type == 'x' || type == 'L' || type == 'K' || type == 'g';
        if (!is_extra && tar->pax_size >= 0) size = tar->pax_size;
        if (size < 0 || !ct_checked_add(size, BLOCK - 1, &padded) ||
            !ct_checked_add(at + BLOCK, padded / BLOCK * BLOCK, &tar->next))
            return damaged(tar, at, "a header gives no size");
        if (is_extra) {
            if (type == 'g' || type == 'K') continue;
            if (size > MAX_NAME_BYTES) return damaged(tar, at, "a header of more than 1 MiB");
            ct_str_reset(&tar->extra);
            CT_TRY(read_contents(tar, size, &tar->extra));
            if (type == 'x') {
                read_pax(tar);
            } else {
                ct_str_reset(&tar->name);
                append_field(&tar->name, (const unsigned char *)tar->extra.data, tar->extra.length);
                tar->has_name = true;
            }
            continue;
        }
        read_name(tar, block);
        out_member->is_file = type == '0' || type == 0 || type == '7';
        if (!out_member->is_file) tar->next = at + BLOCK;
        out_member->name = tar->name.data;
        out_member->size = tar->left = out_member->is_file ? size : 0;
        return NULL;
    }
    tar->ended = true;
    return NULL;
}

ct_status *ct_tar_read(ct_tar *tar, ct_str *out_contents)
{
    int64_t size = tar->left;
    tar->left = 0;
    return read_contents(tar, size, out_contents);
}

ct_status *ct_tar_skip_to(ct_tar *tar, int64_t offset)
{
    CT_ASSERT(offset >= ct_byte_stream_offset(tar->stream));
    tar->next = offset;
    tar->left = 0;
    return NULL;
}
