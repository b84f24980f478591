/* The description beside a saved executable, and its comparison with this run's. */
#include "train/saved_step.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "formats/json.h"

enum { MAX_NAMED = 8 };

static char *description_path(const char *path)
{
    return ct_asprintf("%s.json", path);
}

static char *hash_text(const void *bytes, size_t size)
{
    return ct_asprintf("%016llx, %zu bytes", (unsigned long long)ct_hash_bytes(bytes, size), size);
}

static char *torus_text(const ct_torus *torus)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < torus->num_axes; i++)
        ct_str_printf(&text, "%s%c%lld%s", i ? " " : "", torus->names[i], (long long)torus->sizes[i],
                      torus->wraps[i] ? "*" : "");
    if (torus->num_slices > 1) ct_str_printf(&text, " in %lld slices", (long long)torus->num_slices);
    return ct_str_release(&text);
}

static char *describe(const ct_saved_step *step)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct_json_writer *json = ct_json_writer_new();
    char *hash = hash_text(step->text->data, step->text->length), *torus = torus_text(step->torus);
    ct_json_begin_object(json, NULL);
    ct_json_put_string(json, "plugin", step->build);
    ct_json_put_string(json, "devices", step->kind);
    ct_json_put_int(json, "num_devices", step->compile->num_partitions);
    ct_json_put_string(json, "torus", torus);
    ct_json_begin_object(json, "flags");
    for (size_t i = 0; i < step->compile->num_flags; i++)
        ct_json_put_string(json, step->compile->flags[i].name, ct_named_value_text(&arena, &step->compile->flags[i]));
    ct_json_end(json);
    ct_json_put_string(json, "program", hash);
    ct_str recipe;
    ct_str_init(&recipe);
    ct_recipe_print(step->recipe, &recipe);
    ct_json_put_string(json, "recipe", recipe.data);
    ct_str_deinit(&recipe);
    ct_json_end(json);
    char *text = ct_json_writer_text(json, true);
    ct_json_writer_free(json);
    free(torus);
    free(hash);
    ct_arena_deinit(&arena);
    return text;
}

ct_status *ct_saved_step_write(const ct_saved_step *step, ct_executable *executable, const char *path)
{
    CT_TRY_NOTE(ct_executable_save(executable, path), "saving the compiled step as %s", path);
    char *text = describe(step), *beside = description_path(path);
    ct_status *status = ct_file_write(beside, text, strlen(text));
    free(beside);
    free(text);
    return status;
}

/* "key = value" lines of a printed recipe by "section.key"; values are heap. */
static void read_keys(const char *recipe, ct_map *out)
{
    char section[64] = "";
    for (const char *at = recipe; *at;) {
        size_t length = strcspn(at, "\n");
        if (at[0] == '[' && length < sizeof(section)) {
            memcpy(section, at + 1, length - 2);
            section[length - 2] = 0;
        }
        const char *equals = memchr(at, '=', length);
        if (equals && at[0] != '#' && at[0] != '[') {
            char *line = ct_asprintf("%.*s", (int)length, at), *comment = strstr(line, "  # ");
            if (comment) *comment = 0;
            size_t name = strcspn(line, " =");
            char *key = ct_asprintf("%s%s%.*s", section, section[0] ? "." : "", (int)name, line);
            const char *value = line + (equals - at) + 1;
            ct_map_set(out, key, ct_strdup(value + strspn(value, " ")));
            free(key);
            free(line);
        }
        at += length + (at[length] == '\n');
    }
}

static void free_keys(ct_map *map)
{
    for (size_t i = 0; i < map->num_entries; i++) free(map->entries[i].value);
    ct_map_deinit(map);
}

/* Keys that do not change the program. */
static bool is_of_the_run(const char *key)
{
    static const char *const prefixes[] = {
        "dump_folder",      "checkpoint.",    "metrics.",         "compile.executable", "sample.", "compile.cache_dir",
        "lr_scheduler.",    "training.steps", "training.dataset", "training.shuffle",   "debug.",  "data.",
        "lora.adapter_path"};
    for (size_t i = 0; i < CT_COUNT(prefixes); i++)
        if (!strncmp(key, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

/* Names the recipe's keys that differ. */
static void compare_recipes(const char *saved, const ct_recipe *recipe, ct_str *out)
{
    ct_map theirs, ours;
    ct_map_init(&theirs);
    ct_map_init(&ours);
    ct_str text;
    ct_str_init(&text);
    ct_recipe_print(recipe, &text);
    read_keys(saved, &theirs);
    read_keys(text.data, &ours);
    size_t count = 0;
    for (size_t i = 0; i < ours.num_entries + theirs.num_entries && count < MAX_NAMED; i++) {
        bool is_ours = i < ours.num_entries;
        const char *key = is_ours ? ours.entries[i].key : theirs.entries[i - ours.num_entries].key;
        const char *a = ct_map_get(&theirs, key), *b = ct_map_get(&ours, key);
        if (is_of_the_run(key) || (!is_ours && b) || (a && b && !strcmp(a, b))) continue;
        ct_str_printf(out, "\n  %s is %s there and %s here", key, a ? a : "not set", b ? b : "not set");
        count++;
    }
    if (!count) ct_str_append(out, "\n  the program, though no key does: it was made by another version of ctitan");
    ct_str_deinit(&text);
    free_keys(&ours);
    free_keys(&theirs);
}

static void compare_text(ct_json_value saved, ct_json_value ours, const char *key, const char *what, ct_str *out)
{
    const char *a = "", *b = "";
    ct_status_free(ct_json_get_string(saved, key, &a));
    ct_status_free(ct_json_get_string(ours, key, &b));
    if (strcmp(a, b)) ct_str_printf(out, "\n  %s: \"%s\" there and \"%s\" here", what, a, b);
}

static void compare_flags(ct_json_value saved, ct_json_value ours, ct_str *out)
{
    for (int side = 0; side < 2; side++) {
        ct_json_value from = ct_json_get(side ? ours : saved, "flags"), to = ct_json_get(side ? saved : ours, "flags");
        for (ct_json_iter iter = ct_json_iterate(from); ct_json_next(&iter);) {
            const char *a = "", *b = "not set";
            ct_status_free(ct_json_as_string(iter.value, &a));
            ct_status_free(ct_json_get_string(to, iter.key, &b));
            bool is_told = side && ct_json_type_of(ct_json_get(to, iter.key)) != CT_JSON_ABSENT;
            if (strcmp(a, b) && !is_told)
                ct_str_printf(out, "\n  the flag %s is %s there and %s here", iter.key, side ? b : a, side ? a : b);
        }
    }
}

static ct_status *check(const ct_saved_step *step, const char *path, const ct_json *saved_json)
{
    char *text = describe(step);
    ct_json *ours_json = NULL;
    ct_status *status = ct_json_parse(text, strlen(text), "this run", &ours_json);
    free(text);
    CT_TRY(status);
    ct_json_value saved = ct_json_root(saved_json), ours = ct_json_root(ours_json);
    ct_str differences;
    ct_str_init(&differences);
    int64_t a = 0, b = 0;
    ct_status_free(ct_json_get_int(saved, "num_devices", &a));
    ct_status_free(ct_json_get_int(ours, "num_devices", &b));
    compare_text(saved, ours, "plugin", "the plugin", &differences);
    compare_text(saved, ours, "devices", "the devices", &differences);
    if (a != b) ct_str_printf(&differences, "\n  %lld devices there and %lld here", (long long)a, (long long)b);
    compare_text(saved, ours, "torus", "the topology", &differences);
    compare_flags(saved, ours, &differences);
    const char *program = "", *our_program = "", *recipe = "";
    ct_status_free(ct_json_get_string(saved, "program", &program));
    ct_status_free(ct_json_get_string(ours, "program", &our_program));
    ct_status_free(ct_json_get_string(saved, "recipe", &recipe));
    if (strcmp(program, our_program)) compare_recipes(recipe, step->recipe, &differences);
    if (differences.length)
        status = ct_error(CT_CODE_FAILED_PRECONDITION,
                          "compile.executable = \"%s\" (%s) was compiled from something else:%s\nsave it again with "
                          "ctitan plan --save, or leave compile.executable out",
                          path, ct_recipe_where(step->recipe, "compile.executable"), differences.data);
    ct_str_deinit(&differences);
    ct_json_free(ours_json);
    return status;
}

ct_status *ct_saved_step_load(const ct_saved_step *step, ct_session *session, const char *path,
                              ct_executable **out_executable)
{
    *out_executable = NULL;
    char *beside = description_path(path);
    ct_json *json = NULL;
    ct_status *status =
        ct_status_note(ct_json_read(beside, &json),
                       "compile.executable = \"%s\" needs what ctitan plan --save writes beside it", path);
    free(beside);
    if (!status) status = check(step, path, json);
    ct_json_free(json);
    CT_TRY(status);
    return ct_status_note(ct_executable_load(session->client, path, out_executable), "compile.executable (%s)",
                          ct_recipe_where(step->recipe, "compile.executable"));
}

ct_status *ct_train_step_compile(const ct_recipe *recipe, ct_session *session, ct_graph *graph,
                                 ct_executable **out_executable)
{
    const char *path = recipe->compile.executable;
    if (!path) return ct_session_compile(session, graph, "training step", out_executable);
    *out_executable = NULL;
    ct_str text;
    ct_str_init(&text);
    double start = ct_clock_seconds();
    ct_status *status = ct_graph_print(graph, &text);
    ct_saved_step step = {.recipe = recipe,
                          .text = &text,
                          .build = ct_plugin_build(session->plugin),
                          .kind = ct_device_kind(ct_session_device(session, 0)),
                          .torus = &session->torus,
                          .compile = &session->compile};
    if (!status) status = ct_saved_step_load(&step, session, path, out_executable);
    if (!status) ct_info("Loaded the training step from %s in %.2f s", path, ct_clock_seconds() - start);
    ct_str_deinit(&text);
    return status;
}
