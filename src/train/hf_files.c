/* Small files, kept whole in memory. */
#include "train/hf_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "formats/json.h"

static const char CONFIG[] = "config.json";

/* What transformers reads beside the weights, and what its tokenizers read. */
static const char *const MODEL_NAMES[] = {"generation_config.json", "preprocessor_config.json"};
static const char *const TOKENIZER_NAMES[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",   "vocab.json",
    "merges.txt",     "tokenizer.model",       "qwen.tiktoken",           "chat_template.jinja", "chat_template.json",
};

static void files_init(ct_hf_files *files, size_t capacity)
{
    *files = (ct_hf_files){.arena = ct_alloc(sizeof(ct_arena))};
    ct_arena_init(files->arena);
    files->assets = CT_ARENA_ARRAY(files->arena, ct_checkpoint_asset, capacity);
}

static void add(ct_hf_files *files, const char *name, const void *bytes, size_t size_bytes)
{
    files->assets[files->num_assets++] = (ct_checkpoint_asset){.name = ct_arena_strdup(files->arena, name),
                                                               .bytes = ct_arena_dup(files->arena, bytes, size_bytes),
                                                               .size_bytes = size_bytes};
}

static ct_status *add_from_folder(ct_hf_files *files, const char *folder, const char *name)
{
    char *path = ct_path_join(folder, name), *bytes;
    size_t size_bytes;
    ct_status *status = NULL;
    if (ct_path_exists(path)) {
        status = ct_file_read(path, &bytes, &size_bytes);
        if (!status) {
            add(files, name, bytes, size_bytes);
            free(bytes);
        }
    }
    free(path);
    return status;
}

/* Those of the names that the folder has; a path that is no folder has none. */
static ct_status *add_all(ct_hf_files *files, const char *folder, const char *const *names, size_t num_names)
{
    bool is_folder = ct_path_is_dir(folder);
    for (size_t i = 0; i < num_names && is_folder; i++) CT_TRY(add_from_folder(files, folder, names[i]));
    return NULL;
}

static ct_status *add_tokenizer(ct_hf_files *files, const char *path)
{
    char *folder = ct_path_is_dir(path) || !ct_path_exists(path) ? ct_strdup(path) : ct_path_parent(path);
    ct_status *status = add_all(files, folder, TOKENIZER_NAMES, CT_COUNT(TOKENIZER_NAMES));
    free(folder);
    return status;
}

/* Where text begins and ends. Without it transformers takes the ids of the family's own vocabulary. */
static void add_generation_config(ct_hf_files *files, const ct_tokenizer *tokenizer)
{
    int32_t bos = ct_tokenizer_bos(tokenizer), eos = ct_tokenizer_eos(tokenizer);
    if (bos < 0 && eos < 0) return;
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    if (bos >= 0) ct_json_put_int(writer, "bos_token_id", bos);
    if (eos >= 0) ct_json_put_int(writer, "eos_token_id", eos);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    add(files, MODEL_NAMES[0], text, strlen(text));
    free(text);
    ct_json_writer_free(writer);
}

static ct_status *add_model(ct_hf_files *files, const ct_model *model, const char *folder,
                            const ct_tokenizer *tokenizer)
{
    if (ct_path_is_dir(folder)) CT_TRY(add_from_folder(files, folder, CONFIG));
    if (files->num_assets) return add_all(files, folder, MODEL_NAMES, CT_COUNT(MODEL_NAMES));
    char *text = ct_model_config_text(model->family, &model->config, CT_DTYPE_F32);
    add(files, CONFIG, text, strlen(text));
    free(text);
    if (tokenizer && strcmp(ct_tokenizer_name(tokenizer), "bytes") != 0) add_generation_config(files, tokenizer);
    return NULL;
}

ct_status *ct_hf_files_open(const ct_model *model, const char *folder, const char *tokenizer_path,
                            const ct_tokenizer *tokenizer, ct_hf_files *out_files)
{
    files_init(out_files, 1 + CT_COUNT(MODEL_NAMES) + CT_COUNT(TOKENIZER_NAMES) + 1);
    ct_status *status = add_model(out_files, model, folder, tokenizer);
    if (!status) status = add_tokenizer(out_files, tokenizer_path ? tokenizer_path : folder);
    if (status) ct_hf_files_close(out_files);
    return status;
}

ct_status *ct_hf_files_of_step(const ct_checkpoint *checkpoint, ct_hf_files *out_files)
{
    size_t count = ct_checkpoint_num_assets(checkpoint);
    files_init(out_files, count + 1);
    for (int pass = 0; pass < 2; pass++) /* config.json first */
        for (size_t i = 0; i < count; i++) {
            ct_checkpoint_asset asset = ct_checkpoint_asset_at(checkpoint, i);
            if (!strchr(asset.name, '/') && (strcmp(asset.name, CONFIG) == 0) == (pass == 0))
                add(out_files, asset.name, asset.bytes, asset.size_bytes);
        }
    if (out_files->num_assets && !strcmp(out_files->assets[0].name, CONFIG)) return NULL;
    ct_hf_files_close(out_files);
    return ct_error(CT_CODE_NOT_FOUND,
                    "the step must hold a config.json, but was saved without one; go on from it for a step with this "
                    "version of ctitan and take that");
}

void ct_hf_files_add(ct_hf_files *files, const char *name, const char *text)
{
    add(files, name, text, strlen(text));
}

void ct_hf_files_close(ct_hf_files *files)
{
    if (files->arena) ct_arena_deinit(files->arena);
    free(files->arena);
    *files = (ct_hf_files){0};
}

/* The text of a config.json with another dtype; NULL when it says so already or is not readable as an object. */
static char *with_dtype(const ct_checkpoint_asset *config, const char *dtype)
{
    ct_json *json;
    ct_status *status = ct_json_parse(config->bytes, config->size_bytes, CONFIG, &json);
    ct_json_value root;
    if (!status) status = ct_json_as_object(ct_json_root(json), &root);
    if (status) { /* it was read when the model was made */
        ct_status_free(status);
        return NULL;
    }
    bool has_key = false, is_same = true;
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_iter iter = ct_json_iterate(root);
    while (ct_json_next(&iter)) {
        bool is_dtype =
            !strcmp(iter.key, "torch_dtype") || !strcmp(iter.key, "dtype"); /* before, since transformers 5 */
        if (!is_dtype) {
            ct_json_put_value(writer, iter.key, iter.value);
            continue;
        }
        const char *text = "";
        ct_status_free(ct_json_get_string(root, iter.key, &text));
        has_key = true;
        is_same = is_same && !strcmp(text, dtype);
        ct_json_put_string(writer, iter.key, dtype);
    }
    if (!has_key) ct_json_put_string(writer, "torch_dtype", dtype);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, true);
    ct_json_writer_free(writer);
    ct_json_free(json);
    if (has_key && is_same) {
        free(text);
        return NULL;
    }
    return text;
}

const ct_checkpoint_asset *ct_hf_files_for(ct_hf_files *files, ct_dtype dtype, size_t *out_num_assets)
{
    *out_num_assets = files->num_assets;
    char *text = with_dtype(&files->assets[0], ct_dtype_torch(dtype));
    if (!text) return files->assets;
    ct_checkpoint_asset *assets = ct_arena_dup(files->arena, files->assets, files->num_assets * sizeof(*files->assets));
    assets[0].size_bytes = strlen(text);
    assets[0].bytes = ct_arena_dup(files->arena, text, assets[0].size_bytes);
    free(text);
    return assets;
}
