/* The footer: schema to leaves, row groups to chunks. Numbers are believed only within the file. */
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/internal.h"

enum { MAX_LEVEL = 255, MAX_SCHEMA_DEPTH = 64, BYTE_ARRAY = 6 };

static ct_status *damaged(const ct_parquet *file, const char *why)
{
    return ct_error(CT_CODE_DATA_LOSS, "%s is no Parquet file that can be read: %s", file->path, why);
}

/* ---- schema ---- */

typedef struct element {
    int64_t type, repetition, num_children;
    const char *name;
} element;

static element read_element(ct_parquet *file, ct__thrift *t)
{
    element e = {.type = -1, .name = ""};
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) {
        if (field.id == 1) {
            e.type = ct__thrift_field_int(t, &field);
        } else if (field.id == 3) {
            e.repetition = ct__thrift_field_int(t, &field);
        } else if (field.id == 4 && field.type == CT__THRIFT_BINARY) {
            size_t size;
            const uint8_t *name = ct__thrift_binary(t, &size);
            e.name = ct_arena_strndup(&file->arena, (const char *)name, size);
        } else if (field.id == 5) {
            e.num_children = ct__thrift_field_int(t, &field);
        } else {
            ct__thrift_skip(t, field.type);
        }
    }
    return e;
}

typedef struct schema {
    ct_parquet *file;
    const element *elements;
    size_t num_elements, next;
    bool failed;
} schema;

static void walk(schema *s, const char *path, const char *column, int definition, int repetition, int depth)
{
    if (s->next >= s->num_elements || depth > MAX_SCHEMA_DEPTH) s->failed = true;
    if (s->failed) return;
    const element *e = &s->elements[s->next++];
    if (depth > 0) {
        definition += e->repetition != 0;
        repetition += e->repetition == 2;
        path = *path ? ct_arena_printf(&s->file->arena, "%s.%s", path, e->name) : e->name;
        if (depth == 1) column = e->name;
    }
    if (e->num_children < 0 || (uint64_t)e->num_children > s->num_elements || e->repetition < 0 || e->repetition > 2 ||
        definition > MAX_LEVEL) {
        s->failed = true;
        return;
    }
    for (int64_t i = 0; i < e->num_children && !s->failed; i++)
        walk(s, path, column, definition, repetition, depth + 1);
    if (e->num_children || depth == 0) return;
    s->file->leaves[s->file->num_leaves++] = (ct_parquet_leaf){.path = path,
                                                               .column = column,
                                                               .name = e->name,
                                                               .max_definition = definition,
                                                               .max_repetition = repetition,
                                                               .is_bytes = e->type == BYTE_ARRAY};
}

static ct_status *read_schema(ct_parquet *file, ct__thrift *t)
{
    ct__thrift_type type;
    size_t count = ct__thrift_list(t, &type);
    if (t->failed || type != CT__THRIFT_STRUCT || file->leaves) return damaged(file, "its schema is no list");
    element *elements = CT_ARENA_ARRAY(&file->arena, element, count);
    for (size_t i = 0; i < count && !t->failed; i++) elements[i] = read_element(file, t);
    file->leaves = CT_ARENA_ARRAY(&file->arena, ct_parquet_leaf, count);
    schema s = {.file = file, .elements = elements, .num_elements = count};
    if (!t->failed) walk(&s, "", "", 0, 0, 0);
    if (t->failed || s.failed || s.next != count) return damaged(file, "its schema is no tree");
    return NULL;
}

/* ---- row groups ---- */

static void read_column_metadata(ct__thrift *t, ct__chunk *chunk)
{
    int64_t data = -1, dictionary = -1;
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) switch (field.id) {
        case 4: chunk->codec = ct__thrift_field_int(t, &field); break;
        case 5: chunk->num_values = ct__thrift_field_int(t, &field); break;
        case 7: chunk->size = ct__thrift_field_int(t, &field); break;
        case 9: data = ct__thrift_field_int(t, &field); break;
        case 11: dictionary = ct__thrift_field_int(t, &field); break;
        default: ct__thrift_skip(t, field.type);
        }
    chunk->offset = dictionary > 0 && dictionary < data ? dictionary : data;
}

static ct__chunk read_chunk(const ct_parquet *file, ct__thrift *t)
{
    ct__chunk chunk = {.offset = -1, .size = -1, .num_values = -1};
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) {
        if (field.id == 3 && field.type == CT__THRIFT_STRUCT)
            read_column_metadata(t, &chunk);
        else
            ct__thrift_skip(t, field.type);
    }
    int64_t end;
    if (chunk.offset < 0 || chunk.size < 0 || chunk.num_values < 0 || !ct_checked_add(chunk.offset, chunk.size, &end) ||
        (uint64_t)end > file->size_bytes)
        t->failed = true;
    return chunk;
}

static ct__row_group read_group(ct_parquet *file, ct__thrift *t)
{
    ct__row_group group = {.num_rows = -1};
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) {
        ct__thrift_type type;
        if (field.id == 1 && field.type == CT__THRIFT_LIST && !group.chunks) {
            size_t count = ct__thrift_list(t, &type);
            if (type != CT__THRIFT_STRUCT || count != file->num_leaves) t->failed = true;
            group.chunks = CT_ARENA_ARRAY(&file->arena, ct__chunk, count);
            for (size_t i = 0; i < count && !t->failed; i++) group.chunks[i] = read_chunk(file, t);
        } else if (field.id == 3) {
            group.num_rows = ct__thrift_field_int(t, &field);
        } else {
            ct__thrift_skip(t, field.type);
        }
    }
    if (group.num_rows < 0 || !group.chunks) t->failed = true;
    return group;
}

static ct_status *read_groups(ct_parquet *file, ct__thrift *t)
{
    ct__thrift_type type;
    size_t count = ct__thrift_list(t, &type);
    if (t->failed || (count && type != CT__THRIFT_STRUCT) || !file->leaves || file->groups)
        return damaged(file, "its row groups are no list behind a schema");
    file->groups = CT_ARENA_ARRAY(&file->arena, ct__row_group, count);
    for (size_t i = 0; i < count; i++) {
        ct__row_group group = read_group(file, t);
        if (t->failed) return damaged(file, "a row group is damaged");
        group.first_row = file->num_rows;
        if (!ct_checked_add(file->num_rows, group.num_rows, &file->num_rows)) return damaged(file, "too many rows");
        file->groups[file->num_groups++] = group;
    }
    return NULL;
}

ct_status *ct__parquet_read_footer(ct_parquet *file)
{
    const uint8_t *bytes = file->bytes;
    size_t size = file->size_bytes;
    if (size < 12 || memcmp(bytes, "PAR1", 4) != 0) return damaged(file, "it does not begin with PAR1");
    if (!memcmp(bytes + size - 4, "PARE", 4)) return damaged(file, "its footer is encrypted");
    if (memcmp(bytes + size - 4, "PAR1", 4) != 0) return damaged(file, "it does not end with PAR1; is it cut short?");
    const uint8_t *tail = bytes + size - 8;
    uint32_t length = tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
    if (length > size - 12) return damaged(file, "its footer would be longer than the file");
    ct__thrift t = {.at = tail - length, .end = tail};
    ct__thrift_field field = {0};
    while (ct__thrift_next(&t, &field)) {
        if (field.id == 2 && field.type == CT__THRIFT_LIST)
            CT_TRY(read_schema(file, &t));
        else if (field.id == 4 && field.type == CT__THRIFT_LIST)
            CT_TRY(read_groups(file, &t));
        else
            ct__thrift_skip(&t, field.type);
    }
    if (t.failed || !file->leaves) return damaged(file, "its footer is damaged");
    return NULL;
}
