/* Rows of Parquet; an offset is a row's number. A column of strings is taken as it is. Messages are a column of strings
 * that hold JSON, or a list of structs with role and content (or from and value), made into such JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/record.h"
#include "formats/json.h"
#include "formats/parquet/parquet.h"

typedef struct column {
    ct_parquet_cursor *cursor, *second; /* second: the contents, where cursor gives the roles */
} column;

typedef struct parquet_rows {
    ct__record_reader base;
    ct_parquet *file;
    int64_t row;
    column columns[CT__NUM_COLUMNS];
    ct_parquet_row first, second;
} parquet_rows;

static ct_status *skip_to(ct__record_reader *reader, int64_t offset)
{
    parquet_rows *rows = (parquet_rows *)reader;
    rows->row = CT_MIN(offset, ct_parquet_num_rows(rows->file));
    for (int i = 0; i < CT__NUM_COLUMNS; i++) {
        column *c = &rows->columns[i];
        if (c->cursor) CT_TRY(ct_parquet_cursor_seek(c->cursor, rows->row));
        if (c->second) CT_TRY(ct_parquet_cursor_seek(c->second, rows->row));
    }
    return NULL;
}

static char *value_text(ct_arena *arena, const ct_parquet_row *row, size_t index)
{
    return ct_arena_strndup(arena, row->bytes.data + row->values[index].offset, row->values[index].size);
}

static ct_status *messages_json(parquet_rows *rows, ct_arena *arena, ct__text *out)
{
    const ct_parquet_row *roles = &rows->first, *contents = &rows->second;
    if (roles->num_values != contents->num_values)
        return ct_error(CT_CODE_DATA_LOSS, "row %lld has %zu roles, but %zu contents", (long long)rows->row,
                        roles->num_values, contents->num_values);
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_array(writer, NULL);
    for (size_t i = 0; i < roles->num_values; i++) {
        if (roles->values[i].is_null && contents->values[i].is_null) continue; /* no list, or an empty one */
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "role", value_text(arena, roles, i));
        if (contents->values[i].is_null)
            ct_json_put_null(writer, "content");
        else
            ct_json_put_string(writer, "content", value_text(arena, contents, i));
        ct_json_end(writer);
    }
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    out->length = strlen(text);
    out->bytes = ct_arena_dup(arena, text, out->length + 1);
    free(text);
    ct_json_writer_free(writer);
    return NULL;
}

static ct_status *next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    parquet_rows *rows = (parquet_rows *)reader;
    *out_ended = rows->row >= ct_parquet_num_rows(rows->file);
    if (*out_ended) return NULL;
    for (int i = 0; i < CT__NUM_COLUMNS; i++) {
        const column *c = &rows->columns[i];
        if (!c->cursor) continue;
        CT_TRY(ct_parquet_next_row(c->cursor, &rows->first));
        if (c->second) {
            CT_TRY(ct_parquet_next_row(c->second, &rows->second));
            CT_TRY(messages_json(rows, arena, &out_record->columns[i]));
        } else if (!rows->first.values[0].is_null) {
            out_record->columns[i] = (ct__text){ct_arena_dup(arena, rows->first.bytes.data, rows->first.bytes.length),
                                                rows->first.bytes.length};
        }
    }
    out_record->offset = rows->row++;
    out_record->end = rows->row;
    return NULL;
}

static void close_rows(ct__record_reader *reader)
{
    parquet_rows *rows = (parquet_rows *)reader;
    for (int i = 0; i < CT__NUM_COLUMNS; i++) {
        ct_parquet_cursor_free(rows->columns[i].cursor);
        ct_parquet_cursor_free(rows->columns[i].second);
    }
    ct_parquet_row_deinit(&rows->first);
    ct_parquet_row_deinit(&rows->second);
    ct_parquet_close(rows->file);
    free(rows);
}

/* The leaf of a whole column, or of a struct's member in the list that the column is; -1: none. */
static int64_t find_leaf(const ct_parquet *file, const char *column_name, const char *member)
{
    for (size_t i = 0; i < ct_parquet_num_leaves(file); i++) {
        const ct_parquet_leaf *leaf = ct_parquet_leaf_at(file, i);
        if (!leaf->is_bytes) continue;
        if (!member && leaf->max_repetition == 0 && !strcmp(leaf->path, column_name)) return (int64_t)i;
        if (member && leaf->max_repetition == 1 && !strcmp(leaf->column, column_name) && !strcmp(leaf->name, member))
            return (int64_t)i;
    }
    return -1;
}

static ct_status *open_column(parquet_rows *rows, const char *path, int index, const char *name)
{
    column *c = &rows->columns[index];
    int64_t first = find_leaf(rows->file, name, NULL), second = -1;
    if (first < 0 && index == CT__COLUMN_MESSAGES) {
        first = find_leaf(rows->file, name, "role");
        second = find_leaf(rows->file, name, "content");
        if (first < 0) first = find_leaf(rows->file, name, "from");
        if (second < 0) second = find_leaf(rows->file, name, "value");
        if (second < 0) first = -1;
    }
    if (first < 0) {
        ct_str names;
        ct_str_init(&names);
        for (size_t i = 0; i < ct_parquet_num_leaves(rows->file); i++)
            ct_str_printf(&names, "%s%s%s", i ? ", " : "", ct_parquet_leaf_at(rows->file, i)->path,
                          ct_parquet_leaf_at(rows->file, i)->is_bytes ? "" : " (not of strings)");
        ct_status *status =
            ct_error(CT_CODE_NOT_FOUND, "%s must have a column \"%s\" of %s, but has: %s", path, name,
                     index == CT__COLUMN_MESSAGES ? "messages with role and content" : "strings", names.data);
        ct_str_deinit(&names);
        return status;
    }
    CT_TRY(ct_parquet_cursor_new(rows->file, (size_t)first, &c->cursor));
    return second < 0 ? NULL : ct_parquet_cursor_new(rows->file, (size_t)second, &c->second);
}

ct_status *ct__parquet_rows_new(const ct__columns *columns, const char *path, ct_parquet *file,
                                ct__record_reader **out_reader)
{
    static const ct__record_class class = {skip_to, next, close_rows};
    *out_reader = NULL;
    parquet_rows *rows = ct_alloc_zeroed(1, sizeof(*rows));
    rows->base.class = &class;
    rows->file = file;
    ct_parquet_row_init(&rows->first);
    ct_parquet_row_init(&rows->second);
    ct_status *status = NULL;
    for (int i = 0; i < CT__NUM_COLUMNS && !status; i++)
        if (columns->names[i]) status = open_column(rows, path, i, columns->names[i]);
    if (status)
        close_rows(&rows->base);
    else
        *out_reader = &rows->base;
    return status;
}
