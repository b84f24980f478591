/* Loading a recipe: defaults, then the file, then the command line, each value through the table of keys. A mistake is
 * noted and loading goes on, so that all of them are reported together.
 */
#include "train/recipe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/recipe_schema.h"

typedef struct loader {
    ct_recipe *recipe;
    const char *name; /* of the file */
    ct__recipe_mistakes mistakes;
    ct_str problem; /* reused */
} loader;

void ct__recipe_mistake(ct__recipe_mistakes *mistakes, const char *where, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char text[2048];
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    ct_str_printf(&mistakes->text, "\n  %s: %s", where, text);
    mistakes->count++;
}

static size_t index_of(const ct__recipe_key *key)
{
    return (size_t)(key - ct__recipe_keys);
}

static const char *full_name(loader *load, const ct__recipe_key *key)
{
    return ct__recipe_full_name(&load->recipe->arena, key);
}

static void keep_outcome(loader *load, const ct__recipe_key *key, const char *where, bool is_set)
{
    load->recipe->origins[index_of(key)] = where;
    if (!is_set) {
        ct__recipe_mistake(&load->mistakes, where, "%s %s", full_name(load, key), load->problem.data);
        load->mistakes.is_broken[index_of(key)] = true;
    }
    ct_str_reset(&load->problem);
}

/* What the writer of an unknown key may have meant, and what the section has. */
static void unknown_key(loader *load, const char *where, const char *section, const char *name)
{
    const char *names[64] = {NULL}, *elsewhere = NULL;
    size_t count = 0;
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "unknown key %s%s%s", section, section[0] ? "." : "", name);
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (strcmp(key->section, section) == 0 && count < CT_COUNT(names)) names[count++] = key->name;
        if (!elsewhere && strcmp(key->name, name) == 0) elsewhere = full_name(load, key);
    }
    const char *nearest = ct_nearest_name(name, names, count);
    if (elsewhere)
        ct_str_printf(&text, "; did you mean %s?", elsewhere);
    else if (nearest)
        ct_str_printf(&text, "; did you mean %s%s%s?", section, section[0] ? "." : "", nearest);
    if (section[0] && count) {
        ct_str_printf(&text, " [%s] has", section);
        for (size_t i = 0; i < count; i++) ct_str_printf(&text, "%s %s", i ? "," : "", names[i]);
    }
    ct__recipe_mistake(&load->mistakes, where, "%s", text.data);
    ct_str_deinit(&text);
}

static void unknown_section(loader *load, const char *where, const char *section)
{
    const char *names[32] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const char *name = ct__recipe_keys[i].section;
        if (name[0] && (!count || strcmp(names[count - 1], name) != 0) && count < CT_COUNT(names))
            names[count++] = name;
    }
    const char *nearest = ct_nearest_name(section, names, count);
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "unknown section [%s]", section);
    if (nearest) ct_str_printf(&text, "; did you mean [%s]?", nearest);
    ct_str_append(&text, " There are");
    for (size_t i = 0; i < count; i++) ct_str_printf(&text, "%s [%s]", i ? "," : "", names[i]);
    ct__recipe_mistake(&load->mistakes, where, "%s", text.data);
    ct_str_deinit(&text);
}

static const char *place(loader *load, int line)
{
    return ct_arena_printf(&load->recipe->arena, "%s:%d", load->name, line);
}

static void take_entry(loader *load, const char *section, const ct_toml_entry *entry)
{
    const char *where = place(load, entry->line);
    const ct__recipe_key *key = ct__recipe_find(section, strlen(section), entry->key);
    if (!key) {
        unknown_key(load, where, section, entry->key);
        return;
    }
    const char *before = load->recipe->origins[index_of(key)];
    if (before) {
        ct__recipe_mistake(&load->mistakes, where, "%s%s%s sets %s again, after %s; keep one of them", section,
                           section[0] ? "." : "", entry->key, full_name(load, key), before);
        return;
    }
    keep_outcome(load, key, where, ct__recipe_set(load->recipe, key, &entry->value, &load->problem));
}

static void take_file(loader *load, const ct_toml *root)
{
    for (size_t i = 0; i < root->table.num_entries; i++) {
        const ct_toml_entry *entry = &root->table.entries[i];
        bool is_section = ct__recipe_has_section(entry->key, strlen(entry->key));
        if (entry->value.type == CT_TOML_TABLE && is_section) {
            const ct_toml *table = &entry->value;
            for (size_t j = 0; j < table->table.num_entries; j++)
                take_entry(load, entry->key, &table->table.entries[j]);
        } else if (entry->value.type == CT_TOML_TABLE && !ct__recipe_find("", 0, entry->key)) {
            unknown_section(load, place(load, entry->line), entry->key);
        } else if (is_section) {
            ct__recipe_mistake(&load->mistakes, place(load, entry->line), "[%s] must be a section, found %s",
                               entry->key, ct_toml_type_name(entry->value.type));
        } else {
            take_entry(load, "", entry);
        }
    }
}

/* An argument "--section.key=value" taken apart. */
typedef struct override {
    const ct__recipe_key *key; /* NULL: unknown */
    char *name;                /* "section.key" with underscores; heap */
    const char *flag;          /* NAME of compile.xla_flags.NAME, else NULL */
    const char *value;         /* NULL: none in this argument */
    bool is_negated;
} override;

static bool split_override(const char *argument, override *out)
{
    *out = (override){0};
    if (strncmp(argument, "--", 2) != 0 || !argument[2]) return false;
    size_t length = strcspn(argument + 2, "=");
    out->name = ct_strdup(argument + 2);
    out->name[length] = 0;
    if (argument[2 + length]) out->value = argument + 2 + length + 1;
    for (char *at = out->name; *at; at++)
        if (*at == '-') *at = '_';
    size_t point = strcspn(out->name, ".");
    bool has_point = out->name[point];
    const char *section = has_point ? out->name : "", *rest = has_point ? out->name + point + 1 : out->name;
    size_t section_length = has_point ? point : 0;
    out->key = ct__recipe_find(section, section_length, rest);
    if (!out->key && strncmp(rest, "no_", 3) == 0) {
        const ct__recipe_key *key = ct__recipe_find(section, section_length, rest + 3);
        if (key && key->type == CT__RECIPE_BOOL) {
            out->key = key;
            out->is_negated = true;
        }
    }
    char *inner = has_point && !out->key ? strchr(out->name + point + 1, '.') : NULL;
    if (inner && inner[1]) {
        *inner = 0;
        const ct__recipe_key *key = ct__recipe_find(section, section_length, rest);
        *inner = '.';
        if (key && key->type == CT__RECIPE_FLAGS) {
            out->key = key;
            out->flag = inner + 1;
        }
    }
    if (has_point || out->key) return true;
    free(out->name);
    return false;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

size_t ct_recipe_override_length(const char *const *args, size_t num_args)
{
    override found;
    if (!num_args || !split_override(args[0], &found)) return 0;
    free(found.name);
    const char *next = num_args > 1 && strncmp(args[1], "--", 2) != 0 ? args[1] : NULL;
    if (found.value || !next || found.is_negated) return 1;
    if (!found.key) return ends_with(next, ".toml") ? 1 : 2; /* it will be reported, with what looks like its value */
    if (found.key->type != CT__RECIPE_BOOL) return 2;
    return strcasecmp(next, "true") == 0 || strcasecmp(next, "false") == 0 ? 2 : 1;
}

static void unknown_override(loader *load, const char *where, const override *found)
{
    char *section = ct_strdup(found->name);
    size_t point = strcspn(section, ".");
    section[point] = 0;
    if (ct__recipe_has_section(section, point))
        unknown_key(load, where, section, found->name + point + 1);
    else
        unknown_section(load, where, section);
    free(section);
}

static void take_override(loader *load, const char *where, const override *found, const char *value)
{
    if (!found->key) {
        unknown_override(load, where, found);
        return;
    }
    const ct__recipe_key *key = found->key;
    load->mistakes.is_broken[index_of(key)] = false; /* the later value counts */
    if (found->is_negated && value) {
        ct__recipe_mistake(&load->mistakes, where, "a key with \"no-\" takes no value; write --%s=%s or --%s=%s",
                           full_name(load, key), "true", full_name(load, key), "false");
        return;
    }
    if (!value && key->type == CT__RECIPE_BOOL) value = found->is_negated ? "false" : "true";
    bool is_set = false;
    if (!value) {
        ct_str_append(&load->problem, "needs a value: ");
        ct__recipe_requirement(key, &load->problem);
    } else if (found->flag) {
        is_set = ct__recipe_set_flag(load->recipe, key, found->flag, value, &load->problem);
    } else {
        is_set = ct__recipe_set_text(load->recipe, key, value, &load->problem);
    }
    keep_outcome(load, key, where, is_set);
}

static void take_overrides(loader *load, const char *const *args, size_t num_args)
{
    for (size_t i = 0; i < num_args;) {
        size_t length = ct_recipe_override_length(args + i, num_args - i);
        override found;
        if (!length || !split_override(args[i], &found)) {
            ct__recipe_mistake(&load->mistakes, args[i], "not of the form --section.key=value");
            i++;
            continue;
        }
        const char *value = length == 2 ? args[i + 1] : found.value;
        const char *where = length == 2 ? ct_arena_printf(&load->recipe->arena, "%s %s", args[i], args[i + 1])
                                        : ct_arena_strdup(&load->recipe->arena, args[i]);
        take_override(load, where, &found, value);
        free(found.name);
        i += length;
    }
}

static void set_defaults(loader *load)
{
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        const char *text = key->default_value ? key->default_value : ct__recipe_can_unset(key) ? "none" : NULL;
        if (text && !ct__recipe_set_text(load->recipe, key, text, &load->problem))
            CT_BUG("the default of %s.%s %s", key->section, key->name, load->problem.data);
    }
}

static void require(loader *load)
{
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (!key->is_required || load->recipe->origins[i]) continue;
        ct__recipe_requirement(key, &load->problem);
        ct__recipe_mistake(&load->mistakes, load->name, "%s is required: %s", full_name(load, key), load->problem.data);
        ct_str_reset(&load->problem);
    }
}

static ct_status *build(const char *name, const ct_toml *root, const ct_recipe_load_opts *opts, ct_recipe *recipe)
{
    loader load = {.recipe = recipe, .name = name};
    ct_str_init(&load.problem);
    ct_str_init(&load.mistakes.text);
    load.mistakes.is_broken = ct_alloc_zeroed(ct__recipe_num_keys, sizeof(bool));
    recipe->origins = CT_ARENA_ARRAY(&recipe->arena, const char *, ct__recipe_num_keys);
    set_defaults(&load);
    if (root) take_file(&load, root);
    take_overrides(&load, opts->overrides, opts->num_overrides);
    require(&load);
    ct__recipe_resolve(recipe);
    ct__recipe_check(recipe, opts, &load.mistakes);
    ct_status *status = NULL;
    if (load.mistakes.count)
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: %zu mistake%s in the recipe:%s", name, load.mistakes.count,
                          load.mistakes.count == 1 ? "" : "s", load.mistakes.text.data);
    free(load.mistakes.is_broken);
    ct_str_deinit(&load.mistakes.text);
    ct_str_deinit(&load.problem);
    return status;
}

static ct_status *load_from(const char *path, const char *name, const char *text, size_t size_bytes,
                            const ct_recipe_load_opts *opts, ct_recipe **out_recipe)
{
    static const ct_recipe_load_opts none = {0};
    *out_recipe = NULL;
    ct_recipe *recipe = ct_alloc_zeroed(1, sizeof(*recipe));
    ct_arena_init(&recipe->arena);
    const ct_toml *root = NULL;
    ct_status *status = NULL;
    if (name) recipe->path = ct_arena_strdup(&recipe->arena, name);
    if (path) CT_TRY_OUT(ct_toml_read(&recipe->arena, path, &root));
    if (text) CT_TRY_OUT(ct_toml_parse(&recipe->arena, name, text, size_bytes, &root));
    CT_TRY_OUT(build(name ? name : "command line", root, opts ? opts : &none, recipe));
    *out_recipe = recipe;
    recipe = NULL;
out:
    ct_recipe_free(recipe);
    return status;
}

ct_status *ct_recipe_load(const char *path, const ct_recipe_load_opts *opts, ct_recipe **out_recipe)
{
    return load_from(path, path, NULL, 0, opts, out_recipe);
}

ct_status *ct_recipe_parse(const char *name, const char *text, size_t size_bytes, const ct_recipe_load_opts *opts,
                           ct_recipe **out_recipe)
{
    return load_from(NULL, name, text, size_bytes, opts, out_recipe);
}

void ct_recipe_free(ct_recipe *recipe)
{
    if (!recipe) return;
    ct_arena_deinit(&recipe->arena);
    free(recipe);
}

const char *ct_recipe_where(const ct_recipe *recipe, const char *key_name)
{
    size_t point = strcspn(key_name, ".");
    const ct__recipe_key *key =
        key_name[point] ? ct__recipe_find(key_name, point, key_name + point + 1) : ct__recipe_find("", 0, key_name);
    if (!key) CT_BUG("no recipe key %s", key_name);
    const char *origin = recipe->origins[index_of(key)];
    return origin ? origin : "default";
}

int64_t ct_recipe_num_microbatches(const ct_recipe *recipe)
{
    int64_t global = recipe->training.global_batch_size;
    if (global == -1) return 1;
    int64_t unit = recipe->training.local_batch_size * ct_recipe_num_data_parallel(recipe);
    CT_ASSERT(global % unit == 0);
    return global / unit;
}

int64_t ct_recipe_num_data_parallel(const ct_recipe *recipe)
{
    /* degrees were checked to multiply to device.count */
    return recipe->device.count / recipe->parallelism.context_parallel_degree /
           recipe->parallelism.tensor_parallel_degree;
}

ct_lr_schedule ct_recipe_lr_schedule(const ct_recipe *recipe)
{
    int64_t total = recipe->lr_scheduler.total_steps;
    return (ct_lr_schedule){.total_steps = total > 0 ? total : recipe->training.steps,
                            .num_warmup_steps = recipe->lr_scheduler.warmup_steps,
                            .decay_ratio = recipe->lr_scheduler.decay_ratio,
                            .decay = recipe->lr_scheduler.decay_type,
                            .min_factor = recipe->lr_scheduler.min_lr_factor};
}
