/* Files and cursors: from row group to row group, page to page, value to value. */
#include "formats/parquet/parquet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/internal.h"

/* What text compresses to is far from this; a header that says more is wrong. */
enum { MAX_RATIO = 4096, MIN_PAGE_BYTES = 1 << 20, MAX_PAGE_VALUES = 1 << 26 };

/* ---- files ---- */

static ct_status *open_file(ct_parquet *file, ct_parquet **out_file)
{
    ct_arena_init(&file->arena);
    ct_status *status = ct__parquet_read_footer(file);
    if (status)
        ct_parquet_close(file);
    else
        *out_file = file;
    return status;
}

ct_status *ct_parquet_open(const char *path, ct_parquet **out_file)
{
    *out_file = NULL;
    ct_file_map map;
    CT_TRY(ct_file_map_open(path, &map));
    ct_parquet *file = ct_alloc_zeroed(1, sizeof(*file));
    file->path = ct_strdup(path);
    file->map = map;
    file->bytes = map.data;
    file->size_bytes = map.size_bytes;
    return open_file(file, out_file);
}

ct_status *ct_parquet_from_memory(const char *name, const void *bytes, size_t size_bytes, ct_parquet **out_file)
{
    *out_file = NULL;
    ct_parquet *file = ct_alloc_zeroed(1, sizeof(*file));
    file->path = ct_strdup(name);
    file->bytes = bytes;
    file->size_bytes = size_bytes;
    return open_file(file, out_file);
}

void ct_parquet_close(ct_parquet *file)
{
    if (!file) return;
    if (file->map.data) ct_file_map_close(&file->map);
    ct_arena_deinit(&file->arena);
    free(file->path);
    free(file);
}

int64_t ct_parquet_num_rows(const ct_parquet *file)
{
    return file->num_rows;
}

size_t ct_parquet_num_leaves(const ct_parquet *file)
{
    return file->num_leaves;
}

const ct_parquet_leaf *ct_parquet_leaf_at(const ct_parquet *file, size_t index)
{
    return &file->leaves[index];
}

void ct_parquet_row_init(ct_parquet_row *row)
{
    *row = (ct_parquet_row){0};
    ct_str_init(&row->bytes);
}

void ct_parquet_row_deinit(ct_parquet_row *row)
{
    ct_str_deinit(&row->bytes);
    free(row->values);
}

/* ---- cursors ---- */

struct ct_parquet_cursor {
    const ct_parquet *file;
    const ct_parquet_leaf *leaf;
    size_t leaf_index;
    int64_t row; /* the next one */

    size_t group; /* its chunk is open when in_chunk */
    bool in_chunk;
    const uint8_t *at, *end;    /* the chunk's pages that are not open yet */
    int64_t chunk_values, left; /* values of the chunk that no page gave yet; of the page that were not taken yet */
    uint8_t *page, *dictionary_page;
    ct__slice *dictionary;
    size_t num_dictionary;
    ct__runs repetitions, definitions;
    ct__values values;
    bool has_peeked; /* peeked is the first value of the next row */
    ct_parquet_value peeked;
    ct__slice peeked_bytes;
};

ct_status *ct_parquet_cursor_new(const ct_parquet *file, size_t leaf, ct_parquet_cursor **out_cursor)
{
    *out_cursor = NULL;
    CT_ASSERT(leaf < file->num_leaves);
    if (!file->leaves[leaf].is_bytes)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%s: column %s must be of strings (BYTE_ARRAY), but is of another type",
                        file->path, file->leaves[leaf].path);
    ct_parquet_cursor *cursor = ct_alloc_zeroed(1, sizeof(*cursor));
    cursor->file = file;
    cursor->leaf = &file->leaves[leaf];
    cursor->leaf_index = leaf;
    ct_str_init(&cursor->values.last);
    *out_cursor = cursor;
    return NULL;
}

static void close_chunk(ct_parquet_cursor *cursor)
{
    ct__values_deinit(&cursor->values);
    free(cursor->page);
    free(cursor->dictionary_page);
    free(cursor->dictionary);
    cursor->page = cursor->dictionary_page = NULL;
    cursor->dictionary = NULL;
    cursor->num_dictionary = 0;
    cursor->left = cursor->chunk_values = 0;
    cursor->in_chunk = cursor->has_peeked = false;
}

void ct_parquet_cursor_free(ct_parquet_cursor *cursor)
{
    if (!cursor) return;
    close_chunk(cursor);
    ct_str_deinit(&cursor->values.last);
    free(cursor);
}

int64_t ct_parquet_cursor_row(const ct_parquet_cursor *cursor)
{
    return cursor->row;
}

static ct_status *damaged(const ct_parquet_cursor *cursor, const char *why)
{
    return ct_error(CT_CODE_DATA_LOSS, "%s: column %s is damaged at row %lld: %s", cursor->file->path,
                    cursor->leaf->path, (long long)cursor->row, why);
}

static ct_status *unknown(const ct_parquet_cursor *cursor, const char *what, const char *name)
{
    return ct_error(CT_CODE_UNIMPLEMENTED,
                    "%s: column %s has %s %s, which is not read; write the file anew with zstd and plain or dictionary "
                    "encoding",
                    cursor->file->path, cursor->leaf->path, what, name);
}

static ct__row_group *group_of(const ct_parquet_cursor *cursor)
{
    return &cursor->file->groups[cursor->group];
}

/* The page's bytes, decompressed but for the first num_plain; heap. */
static ct_status *read_page(ct_parquet_cursor *cursor, const ct__page_header *header, size_t num_plain,
                            uint8_t **out_page)
{
    int64_t codec = header->is_compressed ? group_of(cursor)->chunks[cursor->leaf_index].codec : CT__CODEC_NONE;
    size_t size = (size_t)header->compressed_size, out_size = (size_t)header->uncompressed_size;
    if (!ct__codec_is_known(codec)) return unknown(cursor, "compression", ct__codec_name(codec));
    if (num_plain > size || num_plain > out_size) return damaged(cursor, "a page shorter than its levels");
    if (out_size > MIN_PAGE_BYTES && out_size / MAX_RATIO > size)
        return damaged(cursor, "a page that would be thousands of times larger than its bytes");
    uint8_t *page = ct_alloc(out_size);
    memcpy(page, cursor->at, num_plain);
    const char *problem = out_size == num_plain ? NULL /* no values: some writers compress nothing to nothing */
                                                : ct__decompress(codec, cursor->at + num_plain, size - num_plain,
                                                                 page + num_plain, out_size - num_plain);
    if (problem) {
        free(page);
        return damaged(cursor, problem);
    }
    *out_page = page;
    return NULL;
}

static ct_status *read_dictionary(ct_parquet_cursor *cursor, const ct__page_header *header)
{
    if (cursor->dictionary_page) return damaged(cursor, "a second dictionary");
    CT_TRY(read_page(cursor, header, 0, &cursor->dictionary_page));
    size_t size = (size_t)header->uncompressed_size;
    if (header->num_values < 0 || (uint64_t)header->num_values > size / 4)
        return damaged(cursor, "a dictionary of more values than it has room for");
    cursor->dictionary = ct_alloc((size_t)header->num_values * sizeof(*cursor->dictionary));
    ct__values values = {
        .encoding = CT__ENCODING_PLAIN, .at = cursor->dictionary_page, .end = cursor->dictionary_page + size};
    for (; cursor->num_dictionary < (size_t)header->num_values; cursor->num_dictionary++)
        if (!ct__values_next(&values, &cursor->dictionary[cursor->num_dictionary]))
            return damaged(cursor, "a dictionary that is cut short");
    return NULL;
}

static unsigned width_of(int max_level)
{
    unsigned width = 0;
    while (max_level >> width) width++;
    return width;
}

/* Levels of version 1 stand behind their length. */
static bool take_levels(const uint8_t **at, const uint8_t *end, int max_level, ct__runs *out)
{
    if (!max_level) return true;
    if (end - *at < 4) return false;
    const uint8_t *b = *at;
    size_t size = b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
    *at += 4;
    if (size > (size_t)(end - *at)) return false;
    ct__runs_init(out, *at, *at + size, width_of(max_level));
    *at += size;
    return true;
}

static ct_status *open_data_page(ct_parquet_cursor *cursor, const ct__page_header *header)
{
    const ct_parquet_leaf *leaf = cursor->leaf;
    bool is_v2 = header->type == CT__PAGE_DATA_V2;
    if (header->num_values < 0 || header->num_values > cursor->chunk_values || header->num_values > MAX_PAGE_VALUES)
        return damaged(cursor, "a page of more values than its column has");
    if (!ct__encoding_is_known(header->encoding)) {
        char name[24];
        snprintf(name, sizeof(name), "%lld", (long long)header->encoding);
        return unknown(cursor, "encoding", name);
    }
    if (!is_v2 && ((leaf->max_repetition && header->repetition_encoding != CT__ENCODING_RLE) ||
                   (leaf->max_definition && header->definition_encoding != CT__ENCODING_RLE)))
        return unknown(cursor, "levels in encoding", "BIT_PACKED");
    size_t num_levels =
        is_v2 ? (size_t)CT_MIN(header->definition_bytes + header->repetition_bytes, (int64_t)INT32_MAX) : 0;
    free(cursor->page);
    cursor->page = NULL;
    CT_TRY(read_page(cursor, header, num_levels, &cursor->page));
    const uint8_t *at = cursor->page, *end = cursor->page + header->uncompressed_size;
    if (is_v2) {
        const uint8_t *definitions = at + header->repetition_bytes;
        ct__runs_init(&cursor->repetitions, at, definitions, width_of(leaf->max_repetition));
        at = definitions + header->definition_bytes;
        ct__runs_init(&cursor->definitions, definitions, at, width_of(leaf->max_definition));
    } else if (!take_levels(&at, end, leaf->max_repetition, &cursor->repetitions) ||
               !take_levels(&at, end, leaf->max_definition, &cursor->definitions)) {
        return damaged(cursor, "a page shorter than its levels");
    }
    ct__values_deinit(&cursor->values);
    cursor->values.dictionary = cursor->dictionary;
    cursor->values.num_dictionary = cursor->num_dictionary;
    cursor->values.indices = (ct__runs){0};
    if (!ct__values_init(&cursor->values, header->encoding, at, end, (size_t)header->num_values))
        return damaged(cursor, "a page whose values cannot be decoded");
    cursor->left = header->num_values;
    return NULL;
}

/* Opens the next data page that has values; those of `skip` rows or less are passed over, which only columns without
 * lists allow. */
static ct_status *next_page(ct_parquet_cursor *cursor, int64_t skip)
{
    while (!cursor->left) {
        if (!cursor->in_chunk) {
            const ct__chunk *chunk = &group_of(cursor)->chunks[cursor->leaf_index];
            cursor->at = cursor->file->bytes + chunk->offset;
            cursor->end = cursor->at + chunk->size;
            cursor->chunk_values = chunk->num_values;
            cursor->in_chunk = true;
        }
        if (!cursor->chunk_values) return NULL;
        ct__page_header header;
        if (!ct__page_header_read(&cursor->at, cursor->end, &header)) return damaged(cursor, "no page header");
        if (header.type == CT__PAGE_DICTIONARY) {
            CT_TRY(read_dictionary(cursor, &header));
        } else if (header.type == CT__PAGE_DATA || header.type == CT__PAGE_DATA_V2) {
            if (header.num_values >= 0 && header.num_values <= skip && header.num_values <= cursor->chunk_values) {
                skip -= header.num_values;
                cursor->row += header.num_values;
            } else {
                CT_TRY(open_data_page(cursor, &header));
            }
            cursor->chunk_values -= header.num_values;
        }
        cursor->at += header.compressed_size;
    }
    return NULL;
}

/* The next value of the chunk; out_ended when it has no more. */
static ct_status *next_value(ct_parquet_cursor *cursor, ct_parquet_value *out, ct__slice *out_bytes, bool *out_ended)
{
    CT_TRY(next_page(cursor, 0));
    *out_ended = cursor->left == 0;
    if (*out_ended) return NULL;
    const ct_parquet_leaf *leaf = cursor->leaf;
    uint32_t repetition = 0, definition = 0;
    if ((leaf->max_repetition && !ct__runs_next(&cursor->repetitions, &repetition)) ||
        (leaf->max_definition && !ct__runs_next(&cursor->definitions, &definition)) ||
        repetition > (uint32_t)leaf->max_repetition || definition > (uint32_t)leaf->max_definition)
        return damaged(cursor, "levels that are not of this column");
    *out = (ct_parquet_value){.repetition = (int)repetition,
                              .definition = (int)definition,
                              .is_null = (int)definition < leaf->max_definition};
    *out_bytes = (ct__slice){0};
    if (!out->is_null && !ct__values_next(&cursor->values, out_bytes))
        return damaged(cursor, "fewer values than it says");
    cursor->left--;
    return NULL;
}

static void add_value(ct_parquet_row *row, ct_parquet_value value, ct__slice bytes)
{
    if (row->num_values == row->capacity) {
        row->capacity = row->capacity ? row->capacity * 2 : 4;
        row->values = ct_realloc(row->values, row->capacity * sizeof(*row->values));
    }
    value.offset = row->bytes.length;
    value.size = bytes.size;
    if (bytes.size) ct_str_append_n(&row->bytes, (const char *)bytes.bytes, bytes.size);
    row->values[row->num_values++] = value;
}

/* Leaves a row group whose rows are all read. */
static void leave_group(ct_parquet_cursor *cursor)
{
    while (cursor->group < cursor->file->num_groups &&
           cursor->row >= group_of(cursor)->first_row + group_of(cursor)->num_rows) {
        close_chunk(cursor);
        cursor->group++;
    }
}

ct_status *ct_parquet_next_row(ct_parquet_cursor *cursor, ct_parquet_row *row)
{
    CT_ASSERT(cursor->row < cursor->file->num_rows);
    ct_str_reset(&row->bytes);
    row->num_values = 0;
    leave_group(cursor);
    ct_parquet_value value = cursor->peeked;
    ct__slice bytes = cursor->peeked_bytes;
    bool ended = false;
    if (!cursor->has_peeked) CT_TRY(next_value(cursor, &value, &bytes, &ended));
    cursor->has_peeked = false;
    if (ended) return damaged(cursor, "fewer rows than the file says");
    if (value.repetition) return damaged(cursor, "a list that goes on before it begins");
    add_value(row, value, bytes);
    while (cursor->leaf->max_repetition) {
        CT_TRY(next_value(cursor, &value, &bytes, &ended));
        if (ended) break;
        if (!value.repetition) {
            cursor->has_peeked = true;
            cursor->peeked = value;
            cursor->peeked_bytes = bytes;
            break;
        }
        add_value(row, value, bytes);
    }
    cursor->row++;
    return NULL;
}

ct_status *ct_parquet_cursor_seek(ct_parquet_cursor *cursor, int64_t row)
{
    CT_ASSERT(row >= cursor->row && row <= cursor->file->num_rows);
    if (row == cursor->row) return NULL;
    while (cursor->group < cursor->file->num_groups) { /* whole row groups */
        int64_t end = group_of(cursor)->first_row + group_of(cursor)->num_rows;
        if (row < end) break;
        close_chunk(cursor);
        cursor->row = end;
        cursor->group++;
    }
    ct_parquet_row ignored;
    ct_parquet_row_init(&ignored);
    ct_status *status = NULL;
    while (cursor->row < row && !status) {
        bool by_page = !cursor->left && !cursor->has_peeked && !cursor->leaf->max_repetition;
        if (by_page) status = next_page(cursor, row - cursor->row);
        if (!status && cursor->row < row) status = ct_parquet_next_row(cursor, &ignored);
    }
    ct_parquet_row_deinit(&ignored);
    return status;
}
