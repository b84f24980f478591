/* Entries as JSON. */
#include "plan/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"

enum { VERSION = 1 };

#define AT(field) offsetof(ct_executable_memory, field)
static const struct {
    const char *name;
    size_t offset;
} memory_fields[] = {
    {"code_bytes", AT(code_bytes)},
    {"argument_bytes", AT(argument_bytes)},
    {"output_bytes", AT(output_bytes)},
    {"alias_bytes", AT(alias_bytes)},
    {"temp_bytes", AT(temp_bytes)},
    {"peak_bytes", AT(peak_bytes)},
    {"host_argument_bytes", AT(host_argument_bytes)},
    {"host_output_bytes", AT(host_output_bytes)},
    {"host_alias_bytes", AT(host_alias_bytes)},
    {"host_temp_bytes", AT(host_temp_bytes)},
};

static int64_t *memory_field(const ct_executable_memory *memory, size_t i)
{
    return (int64_t *)(void *)((char *)(uintptr_t)memory + memory_fields[i].offset);
}

static char *path_of(const char *folder, const char *key, const char *ending)
{
    char *name = ct_asprintf("%s%s", key, ending), *path = ct_path_join(folder, name);
    free(name);
    return path;
}

static char *to_json(const ct_plan_entry *entry)
{
    ct_json_writer *json = ct_json_writer_new();
    ct_json_begin_object(json, NULL);
    ct_json_put_int(json, "version", VERSION);
    if (entry->topology) ct_json_put_string(json, "topology", entry->topology);
    ct_json_put_string(json, "kind", entry->kind);
    ct_json_put_string(json, "compiler", entry->compiler);
    ct_json_put_int(json, "num_devices", entry->num_devices);
    ct_json_put_int(json, "num_slices", entry->num_slices);
    ct_json_begin_array(json, "torus");
    for (int i = 0; i < entry->torus.num_axes; i++) {
        char name[2] = {entry->torus.names[i], 0};
        ct_json_begin_object(json, NULL);
        ct_json_put_string(json, "name", name);
        ct_json_put_int(json, "size", entry->torus.sizes[i]);
        ct_json_put_bool(json, "wraps", entry->torus.wraps[i]);
        ct_json_end(json);
    }
    ct_json_end(json);
    ct_json_begin_array(json, "flags");
    for (size_t i = 0; i < entry->num_flags; i++) ct_json_put_string(json, NULL, entry->flags[i]);
    ct_json_end(json);
    ct_json_put_string(json, "libtpu_init_args", entry->init_args);
    if (entry->refusal) ct_json_put_string(json, "refusal", entry->refusal);
    for (size_t i = 0; i < CT_COUNT(memory_fields); i++)
        ct_json_put_int(json, memory_fields[i].name, *memory_field(&entry->memory, i));
    ct_json_put_int(json, "program_bytes", entry->program_bytes);
    ct_json_put_double(json, "compile_seconds", entry->compile_seconds);
    ct_json_put_double(json, "cpu_seconds", entry->cpu_seconds);
    ct_json_put_int(json, "host_peak_bytes", entry->host_peak_bytes);
    ct_json_end(json);
    char *text = ct_json_writer_text(json, true);
    ct_json_writer_free(json);
    return text;
}

ct_status *ct__plan_entry_write(const char *folder, const ct_plan_entry *entry)
{
    char *program = path_of(folder, entry->key, ".hlo"), *facts = path_of(folder, entry->key, ".json");
    char *text = to_json(entry);
    ct_status *status = ct_dir_make(folder);
    if (!status && entry->program) status = ct_file_write(program, entry->program, entry->num_program_bytes);
    if (!status) status = ct_file_write(facts, text, strlen(text));
    free(text);
    free(facts);
    free(program);
    return status;
}

static ct_status *read_torus(ct_json_value root, ct_torus *out_torus)
{
    ct_json_value axes;
    CT_TRY(ct_json_need_array(root, "torus", &axes));
    for (ct_json_iter iter = ct_json_iterate(axes); ct_json_next(&iter);) {
        if (iter.index >= CT_TORUS_MAX_AXES)
            return ct_error(CT_CODE_DATA_LOSS, "a torus has at most %d axes", CT_TORUS_MAX_AXES);
        const char *name;
        int i = out_torus->num_axes++;
        CT_TRY(ct_json_need_string(iter.value, "name", &name));
        CT_TRY(ct_json_need_int(iter.value, "size", &out_torus->sizes[i]));
        CT_TRY(ct_json_need_bool(iter.value, "wraps", &out_torus->wraps[i]));
        out_torus->names[i] = name[0];
    }
    return NULL;
}

static ct_status *read_text(ct_arena *arena, ct_json_value root, const char *name, const char **out_text)
{
    CT_TRY(ct_json_need_string(root, name, out_text));
    *out_text = ct_arena_strdup(arena, *out_text);
    return NULL;
}

static ct_status *from_json(ct_arena *arena, ct_json_value root, ct_plan_entry *out)
{
    int64_t version, num_slices;
    ct_json_value flags;
    CT_TRY(ct_json_need_int(root, "version", &version));
    if (version != VERSION)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "version %d is wanted, found %lld", VERSION, (long long)version);
    CT_TRY(ct_json_get_string(root, "topology", &out->topology));
    if (out->topology) out->topology = ct_arena_strdup(arena, out->topology);
    CT_TRY(ct_json_get_string(root, "refusal", &out->refusal));
    if (out->refusal) out->refusal = ct_arena_strdup(arena, out->refusal);
    CT_TRY(read_text(arena, root, "kind", &out->kind));
    CT_TRY(read_text(arena, root, "compiler", &out->compiler));
    CT_TRY(read_text(arena, root, "libtpu_init_args", &out->init_args));
    CT_TRY(ct_json_need_int(root, "num_devices", &out->num_devices));
    CT_TRY(ct_json_need_int(root, "num_slices", &num_slices));
    out->num_slices = (int)num_slices;
    CT_TRY(read_torus(root, &out->torus));
    CT_TRY(ct_json_need_array(root, "flags", &flags));
    out->flags = CT_ARENA_ARRAY(arena, const char *, ct_json_size(flags) + 1);
    for (ct_json_iter iter = ct_json_iterate(flags); ct_json_next(&iter);) {
        CT_TRY(ct_json_as_string(iter.value, &out->flags[out->num_flags]));
        out->flags[out->num_flags] = ct_arena_strdup(arena, out->flags[out->num_flags]);
        out->num_flags++;
    }
    for (size_t i = 0; i < CT_COUNT(memory_fields); i++)
        CT_TRY(ct_json_need_int(root, memory_fields[i].name, memory_field(&out->memory, i)));
    CT_TRY(ct_json_need_int(root, "program_bytes", &out->program_bytes));
    CT_TRY(ct_json_need_double(root, "compile_seconds", &out->compile_seconds));
    CT_TRY(ct_json_need_double(root, "cpu_seconds", &out->cpu_seconds));
    return ct_json_need_int(root, "host_peak_bytes", &out->host_peak_bytes);
}

static ct_status *read_entry(ct_arena *arena, const char *facts, const char *program, ct_plan_entry *out)
{
    ct_json *json;
    CT_TRY(ct_json_read(facts, &json));
    ct_status *status = from_json(arena, ct_json_root(json), out);
    ct_json_free(json);
    if (status || out->refusal) return status;
    char *bytes;
    CT_TRY(ct_file_read(program, &bytes, &out->num_program_bytes));
    char *copy = ct_arena_alloc(arena, out->num_program_bytes);
    memcpy(copy, bytes, out->num_program_bytes);
    out->program = copy;
    free(bytes);
    return NULL;
}

ct_plan_entry *ct__plan_entry_read(ct_arena *arena, const char *folder, const char *key)
{
    char *program = path_of(folder, key, ".hlo"), *facts = path_of(folder, key, ".json");
    ct_plan_entry *entry = NULL;
    if (ct_path_exists(facts)) {
        entry = CT_ARENA_NEW(arena, ct_plan_entry);
        memcpy(entry->key, key, CT_MIN(strlen(key), sizeof(entry->key) - 1));
        ct_status *status = read_entry(arena, facts, program, entry);
        if (status) {
            ct_warning("compiling again: %s", ct_status_message(status));
            entry = NULL;
        }
        ct_status_free(status);
    }
    free(facts);
    free(program);
    return entry;
}
