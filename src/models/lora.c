/* Adapters of a model: their parameters, and what they add to a weight. */
#include "models/lora.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/family.h"

/* "model.layers.{}.self_attn.q_proj.weight" -> "q_proj" if the weight is a matrix: two dims in a checkpoint. */
static bool find_module(const ct_param_spec *spec, const char **out_name, size_t *out_length)
{
    const char *end = strrchr(spec->name, '.'), *begin = end;
    while (begin > spec->name && begin[-1] != '.') begin--;
    *out_name = begin;
    *out_length = (size_t)(end - begin);
    return strcspn(spec->axes, " ") < strlen(spec->axes);
}

/* Where the axes of the first dim in a checkpoint end: "(heads head_dim) dim" at its second space. */
static size_t first_dim_length(const char *axes)
{
    return axes[0] == '(' ? strcspn(axes, ")") + 1 : strcspn(axes, " ");
}

static int find_target(const ct_model *model, const char *target)
{
    const ct_model_family *family = model->family;
    for (int i = 0; i < family->num_layer_params; i++) {
        const char *name;
        size_t length;
        if (find_module(&family->layer_params[i], &name, &length) && strlen(target) == length &&
            !strncmp(target, name, length))
            return i;
    }
    return -1;
}

/* The family's modules that can have adapters, or those that have some. */
static size_t list_modules(const ct_model *model, bool only_adapted, const char **out_names)
{
    const ct_model_family *family = model->family;
    size_t count = 0;
    for (int i = 0; i < family->num_layer_params; i++) {
        const char *name;
        size_t length;
        if (!find_module(&family->layer_params[i], &name, &length)) continue;
        if (only_adapted && model->lora->places[i] < 0) continue;
        CT_ASSERT(count < CT_LORA_MAX_TARGETS);
        out_names[count++] = ct_arena_printf(model->arena, "%.*s", (int)length, name);
    }
    return count;
}

size_t ct_lora_targets(const ct_model *model, const char **out_names)
{
    return list_modules(model, true, out_names);
}

static ct_status *no_such_target(const ct_model *model, const char *target)
{
    const char *names[CT_LORA_MAX_TARGETS];
    size_t count = list_modules(model, false, names);
    ct_str text;
    ct_str_init(&text);
    for (size_t i = 0; i < count; i++) ct_str_printf(&text, "%s%s", i ? ", " : "", names[i]);
    const char *nearest = ct_nearest_name(target, names, count);
    ct_status *status = ct_error(
        CT_CODE_INVALID_ARGUMENT, "a target must be one of the %s model's %s, found \"%s\"%s%s%s", model->family->name,
        text.data, target, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    ct_str_deinit(&text);
    return status;
}

/* The specs of A and B for a weight's. */
static void make_specs(ct_model *model, const ct_param_spec *weight, int64_t in, ct_param_spec *out_a,
                       ct_param_spec *out_b)
{
    size_t stem = (size_t)(strrchr(weight->name, '.') - weight->name), out_dim = first_dim_length(weight->axes);
    const char *in_axes = weight->axes + out_dim + 1;
    *out_a = (ct_param_spec){
        .name = ct_arena_printf(model->arena, CT_LORA_PREFIX "%.*s.lora_A.weight", (int)stem, weight->name),
        .axes = ct_arena_printf(model->arena, "lora %s", in_axes),
        .init = CT_INIT_UNIFORM,
        .bound = 1 / sqrt((double)in)};
    *out_b = (ct_param_spec){
        .name = ct_arena_printf(model->arena, CT_LORA_PREFIX "%.*s.lora_B.weight", (int)stem, weight->name),
        .axes = ct_arena_printf(model->arena, "%.*s lora", (int)out_dim, weight->axes),
        .init = CT_INIT_ZEROS};
}

static ct_status *check_target(const ct_model *model, const ct_lora *lora, size_t index, int *out_layer_param)
{
    const char *target = lora->targets[index];
    for (size_t i = 0; i < index; i++)
        if (!strcmp(lora->targets[i], target))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "\"%s\" must be named once, found it twice", target);
    *out_layer_param = find_target(model, target);
    if (*out_layer_param < 0) return no_such_target(model, target);
    const ct_model_param *weight = &model->params[1 + *out_layer_param];
    int64_t smaller = CT_MIN(weight->hf_sizes[0], weight->hf_sizes[1]);
    if (lora->rank > smaller)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "the rank must be at most %lld, the smaller side of %s [%lld, %lld], found %lld",
                        (long long)smaller, target, (long long)weight->hf_sizes[0], (long long)weight->hf_sizes[1],
                        (long long)lora->rank);
    return NULL;
}

ct_status *ct_model_adapt(ct_model *model, const ct_lora *lora)
{
    CT_ASSERT(!model->lora && lora->rank > 0);
    if (!lora->num_targets) return ct_error(CT_CODE_INVALID_ARGUMENT, "there must be a target at least");
    const ct_model_family *family = model->family;
    int num_targets = (int)lora->num_targets, num_layer_params = family->num_layer_params;
    ct_model_lora *adapters = CT_ARENA_NEW(model->arena, ct_model_lora);
    *adapters = (ct_model_lora){.rank = lora->rank,
                                .alpha = lora->alpha,
                                .frozen_dtype = lora->frozen_dtype,
                                .num_targets = num_targets,
                                .places = CT_ARENA_ARRAY(model->arena, int, num_layer_params)};
    for (int i = 0; i < num_layer_params; i++) adapters->places[i] = -1;
    for (int i = 0; i < num_targets; i++) {
        int layer_param = 0;
        CT_TRY(check_target(model, lora, (size_t)i, &layer_param));
        adapters->places[layer_param] = 0;
    }
    /* in the order of the family's table, whatever the recipe's: so are the parameters of every run */
    ct_param_spec *specs = CT_ARENA_ARRAY(model->arena, ct_param_spec, 2 * num_targets);
    for (int i = 0, place = 0; i < num_layer_params; i++) {
        if (adapters->places[i] < 0) continue;
        adapters->places[i] = place;
        make_specs(model, &family->layer_params[i], model->params[1 + i].hf_sizes[1], &specs[2 * place],
                   &specs[2 * place + 1]);
        place++;
    }
    int64_t copies = model->scan_layers ? 1 : model->config.num_layers;
    ct_model_param *params = CT_ARENA_ARRAY(model->arena, ct_model_param, model->num_params + copies * 2 * num_targets);
    memcpy(params, model->params, (size_t)model->num_params * sizeof(*params));
    model->params = params;
    model->lora = adapters;
    model->num_frozen = model->num_params;
    for (int64_t layer = 0; layer < copies; layer++)
        for (int i = 0; i < 2 * num_targets; i++)
            ct__model_add_param(model, &specs[i], model->scan_layers ? -1 : layer, model->scan_layers);
    return NULL;
}

bool ct_model_adapters_of(const ct_model *model, int param, int *out_a, int *out_b)
{
    *out_a = *out_b = -1;
    const ct_model_lora *lora = model->lora;
    int stride = model->family->num_layer_params;
    int64_t copies = model->scan_layers ? 1 : model->config.num_layers;
    if (!lora || param < 1 || param >= 1 + copies * stride) return false;
    int layer = (param - 1) / stride, place = lora->places[(param - 1) % stride];
    if (place < 0) return false;
    *out_a = model->num_frozen + 2 * (layer * lora->num_targets + place);
    *out_b = *out_a + 1;
    return true;
}

double ct_model_lora_scale(const ct_model *model)
{
    return model->lora->alpha / (double)model->lora->rank;
}

void ct_lora_merge(float *weight, const float *a, const float *b, int64_t out, int64_t in, int64_t rank, double scale)
{
    float *delta = ct_alloc((size_t)in * sizeof(*delta));
    for (int64_t o = 0; o < out; o++, weight += in, b += rank) {
        memset(delta, 0, (size_t)in * sizeof(*delta));
        for (int64_t r = 0; r < rank; r++) {
            const float *row = a + r * in, factor = b[r];
            for (int64_t i = 0; i < in; i++) delta[i] += factor * row[i];
        }
        for (int64_t i = 0; i < in; i++) weight[i] += (float)scale * delta[i];
    }
    free(delta);
}
