/* "tokens": rows of ids in a safetensors file, used where they lie in the map. */
#include "data/source.h"

/* An i32 tensor whose last dim is last_size, and its rows; borrowed when aligned, else copied. */
static ct_status *open_rows(const ct_dataset *dataset, const char *name, int64_t last_size, const char *last_name,
                            ct_array *out_array, bool *out_owned)
{
    const ct_safetensors_tensor *tensor;
    CT_TRY(ct_safetensors_find(dataset->file, name, &tensor));
    if (tensor->dtype != CT_DTYPE_S32)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s in %s must be of I32, but is of %s", name, dataset->path,
                        tensor->dtype_name);
    bool is_3d = tensor->rank == 3;
    CT_TRY_NOTE(ct_safetensors_check_shape(tensor, is_3d ? (int64_t[]){-1, -1, last_size} : (int64_t[]){-1, last_size},
                                           is_3d ? 3 : 2),
                "it is [rows, %s] or [steps, batch, %s] with training.seq_len = %lld", last_name, last_name,
                (long long)dataset->opts.seq_len);
    *out_owned = (uintptr_t)tensor->data % sizeof(int32_t) != 0;
    return *out_owned ? ct_safetensors_load(tensor, out_array) : ct_safetensors_borrow(tensor, out_array);
}

ct_status *ct__tokens_open(ct_dataset *dataset)
{
    int64_t seq_len = dataset->opts.seq_len;
    CT_TRY(ct_safetensors_open(dataset->path, &dataset->file));
    CT_TRY(open_rows(dataset, "tokens", seq_len + 1, "seq_len + 1", &dataset->tokens, &dataset->owns_tokens));
    const ct_array *tokens = &dataset->tokens;
    dataset->num_tokens = ct_array_num_elements(tokens);
    dataset->num_samples = dataset->num_tokens / (seq_len + 1);
    if (dataset->num_samples == 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor tokens in %s must have at least one row, but has none",
                        dataset->path);
    if (!ct_safetensors_get(dataset->file, "labels")) return NULL;
    CT_TRY(open_rows(dataset, "labels", seq_len, "seq_len", &dataset->labels, &dataset->owns_labels));
    int64_t num_rows = ct_array_num_elements(&dataset->labels) / seq_len;
    if (num_rows != dataset->num_samples)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "tensor labels in %s must have as many rows as tokens, %lld, but has %lld", dataset->path,
                        (long long)dataset->num_samples, (long long)num_rows);
    return NULL;
}
