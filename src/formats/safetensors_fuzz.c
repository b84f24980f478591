/* Fuzz target: any bytes either are refused or give tensors that lie inside them, cover the data, and can be read. */
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_safetensors *file;
    ct_status *status = ct_safetensors_parse(bytes, size, "fuzz", &file);
    if (status) {
        ct_status_free(status);
        return 0;
    }
    const uint8_t *end = bytes + size;
    for (size_t i = ct_safetensors_num_tensors(file); i-- > 0;) {
        const ct_safetensors_tensor *tensor = ct_safetensors_at(file, i);
        if ((const uint8_t *)tensor->data + tensor->size_bytes != end) abort();
        end = tensor->data;
        if (ct_safetensors_get(file, tensor->name) != tensor) abort();
        ct_array array;
        status = ct_safetensors_load(tensor, &array);
        if (!status && ct_array_bytes(&array) != tensor->size_bytes) abort();
        if (!status) ct_array_free(&array);
        ct_status_free(status);
        int64_t count = ct_num_elements(tensor->sizes, tensor->rank);
        if (tensor->dtype == CT_DTYPE_INVALID || !ct_dtype_is_float(tensor->dtype)) continue;
        float *values = malloc((size_t)count * sizeof(float) + 1);
        if (!values) abort();
        status = ct_safetensors_read_f32(tensor, values, count);
        if (status) abort();
        free(values);
    }
    ct_safetensors_metadata(file, "format");
    ct_safetensors_close(file);
    return 0;
}
