/* One table of element types, and host arrays read and written through doubles. */
#include "base/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/half.h"

typedef enum { KIND_NONE, KIND_BOOL, KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT } kind;

static const struct {
    const char *name, *mlir, *torch;
    size_t bytes;
    kind kind;
} TABLE[CT_NUM_DTYPES] = {
    [CT_DTYPE_INVALID] = {"invalid", "invalid", "invalid", 0, KIND_NONE},
    [CT_DTYPE_BOOL] = {"bool", "i1", "bool", 1, KIND_BOOL},
    [CT_DTYPE_S8] = {"s8", "i8", "int8", 1, KIND_SIGNED},
    [CT_DTYPE_S32] = {"s32", "i32", "int32", 4, KIND_SIGNED},
    [CT_DTYPE_S64] = {"s64", "i64", "int64", 8, KIND_SIGNED},
    [CT_DTYPE_U8] = {"u8", "ui8", "uint8", 1, KIND_UNSIGNED},
    [CT_DTYPE_U32] = {"u32", "ui32", "uint32", 4, KIND_UNSIGNED},
    [CT_DTYPE_F16] = {"f16", "f16", "float16", 2, KIND_FLOAT},
    [CT_DTYPE_BF16] = {"bf16", "bf16", "bfloat16", 2, KIND_FLOAT},
    [CT_DTYPE_F32] = {"f32", "f32", "float32", 4, KIND_FLOAT},
    [CT_DTYPE_F64] = {"f64", "f64", "float64", 8, KIND_FLOAT},
};

static size_t row(ct_dtype dtype)
{
    CT_ASSERT((unsigned)dtype < CT_NUM_DTYPES);
    return (size_t)dtype;
}

size_t ct_dtype_bytes(ct_dtype dtype)
{
    return TABLE[row(dtype)].bytes;
}

const char *ct_dtype_name(ct_dtype dtype)
{
    return TABLE[row(dtype)].name;
}

const char *ct_dtype_mlir(ct_dtype dtype)
{
    return TABLE[row(dtype)].mlir;
}

const char *ct_dtype_torch(ct_dtype dtype)
{
    return TABLE[row(dtype)].torch;
}

ct_dtype ct_dtype_from_name(const char *name)
{
    for (int i = 1; i < CT_NUM_DTYPES; i++)
        if (!strcmp(name, TABLE[i].name) || !strcmp(name, TABLE[i].mlir) || !strcmp(name, TABLE[i].torch))
            return (ct_dtype)i;
    return CT_DTYPE_INVALID;
}

int ct_dtype_is_float(ct_dtype dtype)
{
    return TABLE[row(dtype)].kind == KIND_FLOAT;
}

int ct_dtype_is_integer(ct_dtype dtype)
{
    return TABLE[row(dtype)].kind == KIND_SIGNED || TABLE[row(dtype)].kind == KIND_UNSIGNED;
}

int ct_dtype_is_signed(ct_dtype dtype)
{
    return TABLE[row(dtype)].kind == KIND_SIGNED || TABLE[row(dtype)].kind == KIND_FLOAT;
}

int64_t ct_num_elements(const int64_t *sizes, int rank)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        if (!ct_checked_mul(count, sizes[i], &count)) CT_BUG("shape of more than 2^63 elements");
    return count;
}

ct_array ct_array_new(ct_dtype dtype, const int64_t *sizes, int rank)
{
    CT_ASSERT(rank >= 0 && rank <= CT_MAX_RANK);
    ct_array array = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++) array.sizes[i] = sizes[i];
    array.data = ct_alloc_zeroed((size_t)ct_num_elements(sizes, rank), ct_dtype_bytes(dtype));
    return array;
}

void ct_array_free(ct_array *array)
{
    free(array->data);
    *array = (ct_array){0};
}

int64_t ct_array_num_elements(const ct_array *array)
{
    return ct_num_elements(array->sizes, array->rank);
}

size_t ct_array_bytes(const ct_array *array)
{
    return (size_t)ct_array_num_elements(array) * ct_dtype_bytes(array->dtype);
}

double ct_array_get(const ct_array *array, int64_t index)
{
    const void *data = array->data;
    switch (array->dtype) {
    case CT_DTYPE_BOOL:
    case CT_DTYPE_U8: return ((const uint8_t *)data)[index];
    case CT_DTYPE_S8: return ((const int8_t *)data)[index];
    case CT_DTYPE_S32: return ((const int32_t *)data)[index];
    case CT_DTYPE_S64: return (double)((const int64_t *)data)[index];
    case CT_DTYPE_U32: return ((const uint32_t *)data)[index];
    case CT_DTYPE_F16: return (double)ct_f16_to_f32(((const uint16_t *)data)[index]);
    case CT_DTYPE_BF16: return (double)ct_bf16_to_f32(((const uint16_t *)data)[index]);
    case CT_DTYPE_F32: return (double)((const float *)data)[index];
    case CT_DTYPE_F64: return ((const double *)data)[index];
    default: CT_BUG("array of dtype %d", (int)array->dtype);
    }
}

void ct_array_set(ct_array *array, int64_t index, double value)
{
    void *data = array->data;
    switch (array->dtype) {
    case CT_DTYPE_BOOL: ((uint8_t *)data)[index] = value != 0; return;
    case CT_DTYPE_U8: ((uint8_t *)data)[index] = (uint8_t)value; return;
    case CT_DTYPE_S8: ((int8_t *)data)[index] = (int8_t)value; return;
    case CT_DTYPE_S32: ((int32_t *)data)[index] = (int32_t)value; return;
    case CT_DTYPE_S64: ((int64_t *)data)[index] = (int64_t)value; return;
    case CT_DTYPE_U32: ((uint32_t *)data)[index] = (uint32_t)value; return;
    case CT_DTYPE_F16: ((uint16_t *)data)[index] = ct_f32_to_f16((float)value); return;
    case CT_DTYPE_BF16: ((uint16_t *)data)[index] = ct_f32_to_bf16((float)value); return;
    case CT_DTYPE_F32: ((float *)data)[index] = (float)value; return;
    case CT_DTYPE_F64: ((double *)data)[index] = value; return;
    default: CT_BUG("array of dtype %d", (int)array->dtype);
    }
}
