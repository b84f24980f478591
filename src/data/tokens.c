/* Files of tokens: safetensors, used where they lie in the map. */
#include <string.h>

#include "data/windows.h"

static bool width_of(const ct_safetensors_tensor *tensor, ct__width *out_width, size_t *out_bytes)
{
    static const struct {
        const char *name;
        ct__width width;
        size_t bytes;
    } widths[] = {{"I32", CT__WIDTH_S32, 4}, {"U32", CT__WIDTH_U32, 4}, {"U16", CT__WIDTH_U16, 2}};
    for (size_t i = 0; i < CT_COUNT(widths); i++)
        if (!strcmp(tensor->dtype_name, widths[i].name)) {
            *out_width = widths[i].width;
            *out_bytes = widths[i].bytes;
            return true;
        }
    return false;
}

/* One long sequence. */
static ct_status *open_sequence(const ct_dataset_opts *opts, const ct_safetensors_tensor *tensor, ct__part *part)
{
    size_t bytes;
    if (!width_of(tensor, &part->width, &bytes))
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor tokens in %s must be of I32, U32 or U16, but is of %s",
                        part->path, tensor->dtype_name);
    if ((uintptr_t)tensor->data % bytes)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor tokens in %s must be aligned to its elements in the file",
                        part->path);
    part->ids = tensor->data;
    part->num_tokens = (int64_t)(tensor->size_bytes / bytes);
    if (part->num_tokens < opts->seq_len + 1)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "tensor tokens in %s must have at least training.seq_len + 1 = %lld tokens, but has %lld",
                        part->path, (long long)opts->seq_len + 1, (long long)part->num_tokens);
    part->stride = opts->seq_len;
    part->num_samples = (part->num_tokens - 1) / opts->seq_len;
    return NULL;
}

/* An i32 tensor whose last dim is last_size, and its rows; borrowed when aligned, else copied. */
static ct_status *open_rows(const ct_dataset_opts *opts, const ct__part *part, const char *name, int64_t last_size,
                            const char *last_name, ct_array *out_array, bool *out_owned)
{
    const ct_safetensors_tensor *tensor;
    CT_TRY(ct_safetensors_find(part->file, name, &tensor));
    if (tensor->dtype != CT_DTYPE_S32)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s in %s must be of I32, but is of %s", name, part->path,
                        tensor->dtype_name);
    bool is_3d = tensor->rank == 3;
    CT_TRY_NOTE(ct_safetensors_check_shape(tensor, is_3d ? (int64_t[]){-1, -1, last_size} : (int64_t[]){-1, last_size},
                                           is_3d ? 3 : 2),
                "it is [rows, %s] or [steps, batch, %s] with training.seq_len = %lld", last_name, last_name,
                (long long)opts->seq_len);
    *out_owned = (uintptr_t)tensor->data % sizeof(int32_t) != 0;
    return *out_owned ? ct_safetensors_load(tensor, out_array) : ct_safetensors_borrow(tensor, out_array);
}

ct_status *ct__tokens_open(const ct_dataset_opts *opts, ct__part *part)
{
    int64_t seq_len = opts->seq_len;
    const ct_safetensors_tensor *tensor;
    CT_TRY(ct_safetensors_open(part->path, &part->file));
    CT_TRY(ct_safetensors_find(part->file, "tokens", &tensor));
    if (tensor->rank == 1) return open_sequence(opts, tensor, part);
    CT_TRY(open_rows(opts, part, "tokens", seq_len + 1, "seq_len + 1", &part->tokens_array, &part->owns_tokens));
    part->ids = part->tokens_array.data;
    part->num_tokens = ct_array_num_elements(&part->tokens_array);
    part->stride = seq_len + 1;
    part->num_samples = part->num_tokens / (seq_len + 1);
    if (part->num_samples == 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor tokens in %s must have at least one row, but has none",
                        part->path);
    if (!ct_safetensors_get(part->file, "labels")) return NULL;
    CT_TRY(open_rows(opts, part, "labels", seq_len, "seq_len", &part->labels_array, &part->owns_labels));
    part->labels = part->labels_array.data;
    int64_t num_rows = ct_array_num_elements(&part->labels_array) / seq_len;
    if (num_rows != part->num_samples)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "tensor labels in %s must have as many rows as tokens, %lld, but has %lld", part->path,
                        (long long)part->num_samples, (long long)num_rows);
    return NULL;
}
