/* Adapters' configuration, info and base. */
#include "train/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "formats/safetensors.h"

/* ---- the base ---- */

/* Of each tensor the pieces that a fingerprint looks at, spread from its first byte to its last. */
enum { NUM_PIECES = 4, PIECE_BYTES = 4096 };

static void append_tensor(const ct_safetensors_tensor *tensor, ct_str *out)
{
    ct_str_printf(out, "%s %s", tensor->name, tensor->dtype_name);
    for (int i = 0; i < tensor->rank; i++) ct_str_printf(out, " %lld", (long long)tensor->sizes[i]);
    size_t piece = CT_MIN(tensor->size_bytes, (size_t)PIECE_BYTES), rest = tensor->size_bytes - piece;
    for (size_t i = 0; i < NUM_PIECES; i++) {
        const char *from = (const char *)tensor->data + rest / (NUM_PIECES - 1) * i;
        if (i == NUM_PIECES - 1) from = (const char *)tensor->data + rest;
        ct_str_printf(out, " %016llx", (unsigned long long)ct_hash_bytes(from, piece));
    }
    ct_str_append_char(out, '\n');
}

static int compare_names(const void *a, const void *b)
{
    const ct_safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* In the order of names, so that it does not hang on how the tensors are spread over files. */
static ct_status *describe_folder(const char *path, ct_str *out)
{
    ct_safetensors *file;
    CT_TRY(ct_safetensors_dir_open(path, &file));
    size_t count = ct_safetensors_num_tensors(file);
    const ct_safetensors_tensor **tensors = ct_alloc((count + 1) * sizeof(*tensors));
    for (size_t i = 0; i < count; i++) tensors[i] = ct_safetensors_at(file, i);
    qsort(tensors, count, sizeof(*tensors), compare_names);
    for (size_t i = 0; i < count; i++) append_tensor(tensors[i], out);
    free(tensors);
    ct_safetensors_close(file);
    return NULL;
}

static ct_status *describe_step(const char *path, ct_str *out)
{
    char *manifest = ct_path_join(path, "manifest.json"), *text;
    size_t length;
    ct_status *status = ct_file_read(manifest, &text, &length);
    free(manifest);
    CT_TRY(status);
    ct_str_append(out, text);
    free(text);
    return NULL;
}

ct_status *ct_lora_fingerprint(const char *path, bool is_hf, char out_digits[17])
{
    out_digits[0] = 0;
    ct_str text;
    ct_str_init(&text);
    ct_status *status = is_hf ? describe_folder(path, &text) : describe_step(path, &text);
    if (!status) snprintf(out_digits, 17, "%016llx", (unsigned long long)ct_hash_bytes(text.data, text.length));
    ct_str_deinit(&text);
    return status;
}

ct_status *ct_lora_base_of(const ct_recipe *recipe, ct_lora_base *out_base)
{
    *out_base = (ct_lora_base){.path = recipe->checkpoint.initial_load_path,
                               .is_hf = recipe->checkpoint.initial_load_in_hf,
                               .seed = recipe->debug.seed};
    return out_base->path ? ct_lora_fingerprint(out_base->path, out_base->is_hf, out_base->fingerprint) : NULL;
}

/* ---- info ---- */

static void put_targets(const ct_model *model, ct_json_writer *writer)
{
    const char *names[CT_LORA_MAX_TARGETS];
    size_t count = ct_lora_targets(model, names);
    ct_json_begin_array(writer, "target_modules");
    for (size_t i = 0; i < count; i++) ct_json_put_string(writer, NULL, names[i]);
    ct_json_end(writer);
}

/* As a whole number where it is one, which is what PEFT writes. */
static void put_alpha(const ct_model *model, const char *key, ct_json_writer *writer)
{
    double alpha = model->lora->alpha;
    if (alpha == floor(alpha) && alpha < 1e9)
        ct_json_put_int(writer, key, (int64_t)alpha);
    else
        ct_json_put_double(writer, key, alpha);
}

void ct_lora_info_write(const ct_model *model, const ct_lora_base *base, ct_json_writer *writer)
{
    ct_json_begin_object(writer, "lora");
    ct_json_put_int(writer, "rank", model->lora->rank);
    put_alpha(model, "alpha", writer);
    put_targets(model, writer);
    ct_json_begin_object(writer, "base");
    if (base->path) {
        ct_json_put_string(writer, "path", base->path);
        ct_json_put_bool(writer, "is_hf", base->is_hf);
        ct_json_put_string(writer, "fingerprint", base->fingerprint);
    } else {
        ct_json_put_int(writer, "seed", base->seed);
    }
    ct_json_end(writer);
    ct_json_end(writer);
}

bool ct_lora_info_has(ct_json_value info)
{
    return !ct_json_is_absent(ct_json_get(info, "lora"));
}

ct_status *ct_lora_info_base(ct_json_value info, ct_lora_base *out_base)
{
    *out_base = (ct_lora_base){0};
    ct_json_value lora, base;
    const char *fingerprint = "";
    CT_TRY(ct_json_need_object(info, "lora", &lora));
    CT_TRY(ct_json_need_object(lora, "base", &base));
    CT_TRY(ct_json_get_string(base, "path", &out_base->path));
    CT_TRY(ct_json_get_bool(base, "is_hf", &out_base->is_hf));
    CT_TRY(ct_json_get_int(base, "seed", &out_base->seed));
    CT_TRY(ct_json_get_string(base, "fingerprint", &fingerprint));
    snprintf(out_base->fingerprint, sizeof(out_base->fingerprint), "%s", fingerprint);
    return NULL;
}

/* An array of names under a key. */
static ct_status *read_targets(ct_json_value object, ct_arena *arena, ct_lora *lora)
{
    ct_json_value array;
    CT_TRY(ct_json_need_array(object, "target_modules", &array));
    const char **targets = CT_ARENA_ARRAY(arena, const char *, ct_json_size(array));
    for (ct_json_iter iter = ct_json_iterate(array); ct_json_next(&iter);) {
        const char *name;
        CT_TRY(ct_json_as_string(iter.value, &name));
        targets[lora->num_targets++] = ct_arena_strdup(arena, name);
    }
    lora->targets = targets;
    return NULL;
}

ct_status *ct_lora_info_read(ct_json_value info, ct_arena *arena, ct_lora *out_lora)
{
    *out_lora = (ct_lora){0};
    ct_json_value lora;
    CT_TRY(ct_json_need_object(info, "lora", &lora));
    CT_TRY(ct_json_need_int(lora, "rank", &out_lora->rank));
    CT_TRY(ct_json_need_double(lora, "alpha", &out_lora->alpha));
    return read_targets(lora, arena, out_lora);
}

/* ---- the same adapters? ---- */

static bool has_target(const ct_lora *lora, const char *name)
{
    for (size_t i = 0; i < lora->num_targets; i++)
        if (!strcmp(lora->targets[i], name)) return true;
    return false;
}

static void append_names(ct_str *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) ct_str_printf(out, "%s%s", i ? ", " : "", names[i]);
}

/* found: of a file; rank, alpha and targets must be the model's. */
static ct_status *check_same(const ct_lora *found, const ct_model *model)
{
    const ct_model_lora *lora = model->lora;
    if (found->rank != lora->rank)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "its adapters are of rank %lld, but lora.rank = %lld; set it to that", (long long)found->rank,
                        (long long)lora->rank);
    if (found->alpha != lora->alpha)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "its adapters have alpha %g, but lora.alpha = %g; set it to that",
                        found->alpha, lora->alpha);
    const char *names[CT_LORA_MAX_TARGETS];
    size_t count = ct_lora_targets(model, names);
    bool is_same = count == found->num_targets;
    for (size_t i = 0; i < count && is_same; i++) is_same = has_target(found, names[i]);
    if (is_same) return NULL;
    ct_str theirs, ours;
    ct_str_init(&theirs);
    ct_str_init(&ours);
    append_names(&theirs, found->targets, found->num_targets);
    append_names(&ours, names, count);
    ct_status *status =
        ct_error(CT_CODE_FAILED_PRECONDITION, "its adapters are of %s, but lora.target_modules is %s; set it to those",
                 theirs.data, ours.data);
    ct_str_deinit(&theirs);
    ct_str_deinit(&ours);
    return status;
}

static ct_status *check_base(const ct_lora_base *found, const ct_lora_base *base)
{
    if (!found->path != !base->path || (!base->path && found->seed != base->seed))
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "its adapters were trained on weights %s%s, so checkpoint.initial_load_path must %s",
                        found->path ? "of " : "from another seed or none", found->path ? found->path : "",
                        found->path ? "name them" : "be unset and debug.seed the same");
    if (strcmp(found->fingerprint, base->fingerprint) != 0)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "its adapters were trained on the weights that %s had then (fingerprint %s), but %s has "
                        "others (%s); adapters fit only the weights that they were trained on",
                        found->path, found->fingerprint, base->path, base->fingerprint);
    return NULL;
}

ct_status *ct_lora_info_check(ct_json_value info, const ct_model *model, const ct_lora_base *base)
{
    bool has = ct_lora_info_has(info);
    if (!has && !model->lora) return NULL;
    if (has != (model->lora != NULL))
        return ct_error(CT_CODE_FAILED_PRECONDITION, "it is a step of a run %s adapters, but lora.rank is %lld",
                        has ? "with" : "without", (long long)(model->lora ? model->lora->rank : 0));
    ct_arena arena;
    ct_arena_init(&arena);
    ct_lora found;
    ct_lora_base found_base;
    ct_status *status = ct_lora_info_read(info, &arena, &found);
    if (!status) status = check_same(&found, model);
    if (!status) status = ct_lora_info_base(info, &found_base);
    if (!status) status = check_base(&found_base, base);
    ct_arena_deinit(&arena);
    return status;
}

/* ---- PEFT's configuration ---- */

char *ct_lora_config_text(const ct_model *model, const char *base)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "peft_type", "LORA");
    ct_json_put_string(writer, "task_type", "CAUSAL_LM");
    ct_json_put_string(writer, "base_model_name_or_path", base);
    ct_json_put_int(writer, "r", model->lora->rank);
    put_alpha(model, "lora_alpha", writer);
    put_targets(model, writer);
    ct_json_put_double(writer, "lora_dropout", 0);
    ct_json_put_string(writer, "bias", "none");
    ct_json_put_bool(writer, "fan_in_fan_out", false);
    ct_json_put_bool(writer, "inference_mode", true);
    ct_json_put_bool(writer, "init_lora_weights", true);
    ct_json_put_bool(writer, "use_rslora", false);
    ct_json_put_bool(writer, "use_dora", false);
    ct_json_put_null(writer, "modules_to_save");
    ct_json_put_null(writer, "layers_to_transform");
    ct_json_put_null(writer, "layers_pattern");
    ct_json_begin_object(writer, "rank_pattern");
    ct_json_end(writer);
    ct_json_begin_object(writer, "alpha_pattern");
    ct_json_end(writer);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    ct_json_writer_free(writer);
    return text;
}

/* Absent, null, false, an empty array or object: the key asks for nothing. */
static bool asks_for_nothing(ct_json_value value)
{
    bool is_on = false;
    switch (ct_json_type_of(value)) {
    case CT_JSON_ABSENT:
    case CT_JSON_NULL: return true;
    case CT_JSON_BOOL: ct_status_free(ct_json_as_bool(value, &is_on)); return !is_on;
    case CT_JSON_ARRAY:
    case CT_JSON_OBJECT: return ct_json_size(value) == 0;
    default: return false;
    }
}

static ct_status *check_config(ct_json_value root, const ct_model *model, ct_arena *arena)
{
    static const char *const others[] = {"use_rslora",
                                         "use_dora",
                                         "use_qalora",
                                         "use_bdlora",
                                         "fan_in_fan_out",
                                         "lora_bias",
                                         "modules_to_save",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "exclude_modules",
                                         "layers_to_transform",
                                         "layer_replication",
                                         "target_parameters",
                                         "trainable_token_indices",
                                         "alora_invocation_tokens",
                                         "arrow_config"};
    const char *type = "", *bias = "none";
    ct_lora found = {0};
    CT_TRY(ct_json_get_string(root, "peft_type", &type));
    if (strcmp(type, "LORA") != 0)
        return ct_error(CT_CODE_UNIMPLEMENTED, "peft_type must be \"LORA\", found \"%s\"", type);
    CT_TRY(ct_json_get_string(root, "bias", &bias));
    if (strcmp(bias, "none") != 0) return ct_error(CT_CODE_UNIMPLEMENTED, "bias must be \"none\", found \"%s\"", bias);
    for (size_t i = 0; i < CT_COUNT(others); i++)
        if (!asks_for_nothing(ct_json_get(root, others[i])))
            return ct_error(CT_CODE_UNIMPLEMENTED, "%s must be unset: ctitan's adapters do without", others[i]);
    CT_TRY(ct_json_need_int(root, "r", &found.rank));
    CT_TRY(ct_json_need_double(root, "lora_alpha", &found.alpha));
    CT_TRY(read_targets(root, arena, &found));
    return check_same(&found, model);
}

ct_status *ct_lora_config_check(const char *folder, const ct_model *model)
{
    char *path = ct_path_join(folder, CT_ADAPTER_CONFIG_NAME);
    ct_arena arena;
    ct_arena_init(&arena);
    ct_json *json = NULL;
    ct_json_value root;
    ct_status *status = ct_json_read(path, &json);
    if (!status) status = ct_json_as_object(ct_json_root(json), &root);
    if (!status) status = ct_status_note(check_config(root, model, &arena), "%s", path);
    ct_json_free(json);
    ct_arena_deinit(&arena);
    free(path);
    return status;
}
