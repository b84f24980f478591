/* Reading Hugging Face weights. */
#include "train/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"

void ct_model_param_sizes(const ct_model *model, int param, int *out_rank, int64_t out_sizes[CT_MAX_RANK])
{
    /* "layers=28 heads=16 ...": the model wrote it */
    int rank = 0;
    for (const char *p = model->params[param].axes; (p = strchr(p, '=')); p++)
        out_sizes[rank++] = strtoll(p + 1, NULL, 10);
    *out_rank = rank;
}

static ct_status *check_finite(const ct_safetensors_tensor *tensor, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "%s: tensor %s must be finite, found %f at index %lld; the checkpoint is damaged",
                            tensor->path, tensor->name, (double)values[i], (long long)i);
    return NULL;
}

ct_status *ct_weights_read(const ct_safetensors *file, const ct_model *model, int index, ct_array *out_array)
{
    const ct_model_param *param = &model->params[index];
    int rank;
    int64_t sizes[CT_MAX_RANK];
    ct_model_param_sizes(model, index, &rank, sizes);
    *out_array = ct_array_new(CT_DTYPE_F32, sizes, rank);
    int64_t layers = ct_model_param_layers(model, param), count = param->num_elements / layers;
    float *values = out_array->data;
    ct_status *status = NULL;
    for (int64_t layer = 0; layer < layers && !status; layer++, values += count) {
        char buffer[256];
        const ct_safetensors_tensor *tensor;
        status = ct_safetensors_find(file, ct_model_hf_name(param, layer, buffer), &tensor);
        if (!status) status = ct_safetensors_check_shape(tensor, param->hf_sizes, param->hf_rank);
        if (!status) status = ct_safetensors_read_f32(tensor, values, count);
        if (!status) status = check_finite(tensor, values, count);
    }
    if (status) ct_array_free(out_array);
    return status;
}

void ct_weights_warn_unused(const ct_safetensors *file, const ct_model *model)
{
    ct_map used;
    ct_map_init(&used);
    for (int i = 0; i < model->num_params; i++)
        for (int64_t layer = 0; layer < ct_model_param_layers(model, &model->params[i]); layer++) {
            char buffer[256];
            ct_map_set(&used, ct_model_hf_name(&model->params[i], layer, buffer), NULL);
        }
    if (model->config.tied) ct_map_set(&used, "lm_head.weight", NULL); /* some writers repeat the embedding there */
    const char *first = NULL;
    size_t num_unused = 0;
    for (size_t i = 0; i < ct_safetensors_num_tensors(file); i++) {
        const char *name = ct_safetensors_at(file, i)->name;
        if (ct_map_has(&used, name)) continue;
        if (!num_unused++) first = name;
    }
    if (num_unused)
        ct_warning("%zu tensors of the folder are not part of the model and are left out, the first is %s", num_unused,
                   first);
    ct_map_deinit(&used);
}
