/* Reading Hugging Face weights. */
#include "train/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/log.h"
#include "base/map.h"
#include "checkpoint/checkpoint.h"

void ct_model_param_sizes(const ct_model *model, int param, int *out_rank, int64_t out_sizes[CT_MAX_RANK])
{
    const ct_model_param *p = &model->params[param];
    for (int i = 0; i < p->rank; i++) out_sizes[i] = p->dims[i].size;
    *out_rank = p->rank;
}

/* Elements [begin, begin + count) of the tensor, all finite. */
static ct_status *read_run(const ct_safetensors_tensor *tensor, int64_t begin, int64_t count, float *out_values)
{
    ct_safetensors_tensor run = *tensor;
    size_t element_bytes = tensor->dtype == CT_DTYPE_INVALID ? 1 : ct_dtype_bytes(tensor->dtype);
    run.rank = 1;
    run.sizes[0] = count;
    run.data = (const char *)tensor->data + (size_t)begin * element_bytes;
    run.size_bytes = (size_t)count * element_bytes;
    CT_TRY(ct_safetensors_read_f32(&run, out_values, count));
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(out_values[i]))
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "%s: tensor %s must be finite, found %f at index %lld; the checkpoint is damaged",
                            tensor->path, tensor->name, (double)out_values[i], (long long)(begin + i));
    return NULL;
}

/* A box of the tensor, dense. */
static ct_status *read_box(const ct_safetensors_tensor *tensor, const int64_t *offsets, const int64_t *sizes,
                           float *out_values)
{
    int rank = tensor->rank, outer = rank; /* dims [outer, rank) are one run */
    int64_t run = 1;
    while (outer > 0) {
        outer--;
        run *= sizes[outer];
        if (sizes[outer] != tensor->sizes[outer]) break;
    }
    int64_t place[CT_MAX_RANK] = {0};
    for (int dim = 0; dim >= 0; out_values += run) {
        int64_t begin = 0;
        for (int i = 0; i < rank; i++) begin = begin * tensor->sizes[i] + offsets[i] + place[i];
        CT_TRY(read_run(tensor, begin, run, out_values));
        for (dim = outer - 1; dim >= 0 && ++place[dim] == sizes[dim]; dim--) place[dim] = 0;
    }
    return NULL;
}

ct_status *ct_weights_read_box(const ct_safetensors *file, const ct_model_param *param, int64_t layer,
                               const int64_t *offsets, const int64_t *sizes, float *out_values)
{
    char buffer[256];
    const ct_safetensors_tensor *tensor;
    int64_t hf_offsets[CT_MAX_RANK], hf_sizes[CT_MAX_RANK];
    CT_TRY(ct_safetensors_find(file, ct_model_hf_name(param, layer, buffer), &tensor));
    CT_TRY(ct_safetensors_check_shape(tensor, param->hf_sizes, param->hf_rank));
    ct_model_hf_box(param, offsets, sizes, hf_offsets, hf_sizes);
    return read_box(tensor, hf_offsets, hf_sizes, out_values);
}

ct_status *ct_weights_read(const ct_safetensors *file, const ct_model *model, int index, ct_array *out_array)
{
    const ct_model_param *param = &model->params[index];
    int rank;
    int64_t sizes[CT_MAX_RANK];
    const int64_t none[CT_MAX_RANK] = {0};
    ct_model_param_sizes(model, index, &rank, sizes);
    *out_array = ct_array_new(CT_DTYPE_F32, sizes, rank);
    int64_t layers = ct_model_param_layers(model, param), count = param->num_elements / layers;
    float *values = out_array->data;
    ct_status *status = NULL;
    for (int64_t layer = 0; layer < layers && !status; layer++, values += count)
        status = ct_weights_read_box(file, param, layer, none, sizes + (param->stacked ? 1 : 0), values);
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

static ct_status *put_one(const ct_safetensors *file, const ct_model *model, int index, ct_dtype dtype,
                          ct_session *session, ct_buffer **out_buffer)
{
    ct_array array;
    CT_TRY(ct_weights_read(file, model, index, &array));
    if (dtype != array.dtype) {
        ct_array rounded = ct_array_new(dtype, array.sizes, array.rank);
        ct_convert_elements(array.dtype, array.data, dtype, rounded.data, ct_array_num_elements(&array));
        ct_array_free(&array);
        array = rounded;
    }
    ct_status *status = ct_buffer_from_host(ct_session_device(session, 0), &array, NULL, NULL, out_buffer);
    ct_array_free(&array);
    return status;
}

ct_status *ct_weights_open(const char *folder, ct_safetensors **out_file)
{
    ct_status *status = ct_safetensors_dir_open(folder, out_file);
    if (ct_status_code(status) != CT_CODE_NOT_FOUND) return status;
    ct_checkpoint *step;
    ct_status *other = ct_checkpoint_open_path(folder, NULL, &step);
    if (!other)
        status = ct_status_note(
            status, "it is a saved step of a run; ctitan convert %s FOLDER makes a Hugging Face folder of it", folder);
    ct_checkpoint_close(step);
    ct_status_free(other);
    return status;
}

ct_status *ct_weights_put(const char *folder, const ct_model *model, ct_dtype dtype, ct_session *session,
                          ct_buffer **out_buffers)
{
    memset(out_buffers, 0, (size_t)model->num_params * sizeof(*out_buffers));
    ct_safetensors *file;
    CT_TRY(ct_weights_open(folder, &file));
    ct_status *status = NULL;
    for (int i = 0; i < model->num_params && !status; i++)
        status = put_one(file, model, i, dtype, session, &out_buffers[i]);
    if (!status) ct_weights_warn_unused(file, model);
    ct_safetensors_close(file);
    return status;
}
