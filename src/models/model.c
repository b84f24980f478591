/* Parameters of a model: the family's tables times the configuration's sizes. */
#include "models/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "models/family.h"

/* The axis of a name, its own spelling without an end. lora_rank: 0 where there are no adapters. */
static ct_axis find_axis(const ct_model_config *config, int64_t lora_rank, const char *name, size_t length)
{
    const struct {
        const char *name;
        int64_t size;
    } axes[] = {{"dim", config->dim},
                {"heads", config->num_heads},
                {"kv_heads", config->num_kv_heads},
                {"head_dim", config->head_dim},
                {"ffn", config->ffn_dim},
                {"vocab", config->vocab_size},
                {"lora", lora_rank}};
    for (size_t i = 0; i < CT_COUNT(axes); i++)
        if (strlen(axes[i].name) == length && !strncmp(axes[i].name, name, length))
            return (ct_axis){axes[i].name, axes[i].size};
    CT_BUG("no model axis called %.*s", (int)length, name);
}

/* Reads a spec's axes, "(heads head_dim) dim": text with sizes, the checkpoint's dims, the number of elements. */
static void expand_axes(const ct_model_config *config, int64_t lora_rank, const ct_param_spec *spec, ct_str *out_text,
                        ct_model_param *param)
{
    bool inside = false;
    param->num_elements = 1;
    for (const char *p = spec->axes; *p;) {
        if (*p == ' ') {
            p++;
        } else if (*p == '(') {
            inside = true;
            param->hf_sizes[param->hf_rank++] = 1;
            p++;
        } else if (*p == ')') {
            inside = false;
            p++;
        } else {
            size_t length = strcspn(p, " )");
            ct_axis axis = find_axis(config, lora_rank, p, length);
            int64_t size = axis.size;
            param->dims[param->rank++] = axis;
            ct_str_printf(out_text, "%s%s=%lld", out_text->length ? " " : "", axis.name, (long long)size);
            if (inside)
                param->hf_sizes[param->hf_rank - 1] *= size;
            else
                param->hf_sizes[param->hf_rank++] = size;
            param->num_elements *= size;
            p += length;
        }
    }
}

const char *ct_model_hf_name(const ct_model_param *param, int64_t layer, char buffer[256])
{
    const char *hole = strstr(param->spec->name, "{}");
    if (!hole) return param->spec->name;
    snprintf(buffer, 256, "%.*s%lld%s", (int)(hole - param->spec->name), param->spec->name,
             (long long)(param->stacked ? layer : param->layer), hole + 2);
    return buffer;
}

void ct_model_hf_box(const ct_model_param *param, const int64_t *offsets, const int64_t *sizes,
                     int64_t out_offsets[CT_MAX_RANK], int64_t out_sizes[CT_MAX_RANK])
{
    const ct_axis *dims = param->dims + (param->stacked ? 1 : 0);
    bool inside = false;
    int dim = 0, hf_dim = -1;
    for (const char *p = param->spec->axes; *p;) {
        size_t length = strcspn(p, " )");
        if (*p == '(' || *p == ')') {
            inside = *p == '(';
            if (inside) {
                out_offsets[++hf_dim] = 0;
                out_sizes[hf_dim] = 1;
            }
            length = 1;
        } else if (length && inside) {
            CT_ASSERT(out_sizes[hf_dim] == 1 || sizes[dim] == dims[dim].size);
            out_offsets[hf_dim] = out_offsets[hf_dim] * dims[dim].size + offsets[dim];
            out_sizes[hf_dim] *= sizes[dim++];
        } else if (length) {
            out_offsets[++hf_dim] = offsets[dim];
            out_sizes[hf_dim] = sizes[dim++];
        } else {
            length = 1;
        }
        p += length;
    }
    CT_ASSERT(hf_dim + 1 == param->hf_rank);
}

void ct__model_add_param(ct_model *model, const ct_param_spec *spec, int64_t layer, bool stacked)
{
    ct_model_param *param = &model->params[model->num_params++];
    *param = (ct_model_param){.spec = spec, .layer = layer, .stacked = stacked};
    ct_str text;
    ct_str_init(&text);
    if (stacked) {
        param->dims[param->rank++] = (ct_axis){"layers", model->config.num_layers};
        ct_str_printf(&text, "layers=%lld", (long long)model->config.num_layers);
    }
    expand_axes(&model->config, model->lora ? model->lora->rank : 0, spec, &text, param);
    if (stacked) param->num_elements *= model->config.num_layers;
    param->axes = ct_arena_strdup(model->arena, text.data);
    ct_str_deinit(&text);
    char buffer[256];
    const char *name = ct_model_hf_name(param, 0, buffer);
    if (stacked) {
        const char *hole = strstr(spec->name, "{}");
        snprintf(buffer, sizeof(buffer), "%.*s*%s", (int)(hole - spec->name), spec->name, hole + 2);
        name = buffer;
    }
    param->name = ct_arena_strdup(model->arena, name);
}

ct_status *ct_model_new(const ct_model_family *family, const ct_model_config *config, bool scan_layers,
                        ct_model **out_model)
{
    *out_model = NULL;
    CT_TRY(ct_model_config_check(config, family->name));
    ct_arena *arena = ct_alloc(sizeof(*arena));
    ct_arena_init(arena);
    ct_model *model = CT_ARENA_NEW(arena, ct_model);
    *model = (ct_model){.family = family, .config = *config, .scan_layers = scan_layers, .arena = arena};
    int64_t copies = scan_layers ? 1 : config->num_layers;
    model->params = CT_ARENA_ARRAY(arena, ct_model_param, copies * family->num_layer_params + 3);
    ct__model_add_param(model, family->embedding, -1, false);
    for (int64_t layer = 0; layer < copies; layer++)
        for (int i = 0; i < family->num_layer_params; i++)
            ct__model_add_param(model, &family->layer_params[i], scan_layers ? -1 : layer, scan_layers);
    ct__model_add_param(model, family->norm, -1, false);
    if (!config->tied) ct__model_add_param(model, family->head, -1, false);
    *out_model = model;
    return NULL;
}

void ct_model_free(ct_model *model)
{
    if (!model) return;
    ct_arena *arena = model->arena;
    ct_arena_deinit(arena); /* the model itself lives in it */
    free(arena);
}

int64_t ct_model_param_layers(const ct_model *model, const ct_model_param *param)
{
    return param->stacked ? model->config.num_layers : 1;
}

static int64_t spec_elements(const ct_model_config *config, const ct_param_spec *spec)
{
    ct_model_param param = {.spec = spec};
    ct_str text;
    ct_str_init(&text);
    expand_axes(config, 0, spec, &text, &param);
    ct_str_deinit(&text);
    return param.num_elements;
}

int64_t ct_model_num_params(const ct_model_config *config, const ct_model_family *family)
{
    int64_t count = spec_elements(config, family->embedding) + spec_elements(config, family->norm);
    if (!config->tied) count += spec_elements(config, family->head);
    for (int i = 0; i < family->num_layer_params; i++)
        count += config->num_layers * spec_elements(config, &family->layer_params[i]);
    return count;
}

int64_t ct_model_num_trained(const ct_model *model)
{
    int64_t count = 0;
    for (int i = model->num_frozen; i < model->num_params; i++) count += model->params[i].num_elements;
    return count;
}

ct_dtype ct_model_param_dtype(const ct_model *model, int param, ct_dtype dtype)
{
    return param < model->num_frozen ? model->lora->frozen_dtype : dtype;
}

int64_t ct_model_num_embedding_params(const ct_model_config *config, const ct_model_family *family)
{
    return spec_elements(config, family->embedding);
}

const ct_sharding_table *ct_model_sharding(const ct_model *model)
{
    return model->family->sharding;
}

ct_status *ct_model_check_parallel(const ct_model *model, const ct_parallel *parallel, int64_t batch, int64_t seq_len)
{
    const ct_model_config *config = &model->config;
    static const char *const names[] = {"batch", "seq", "dim", "heads", "kv_heads", "head_dim", "ffn", "vocab"};
    const int64_t sizes[] = {
        batch,           seq_len,           config->dim, config->num_heads, config->num_kv_heads, config->head_dim,
        config->ffn_dim, config->vocab_size};
    return ct_parallel_check(parallel, (int)CT_COUNT(sizes), names, sizes);
}
