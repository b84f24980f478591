/* Element types, shared by files, devices and graphs. Names are StableHLO's ("f32", "s8" prints there as "i8"). */
#ifndef CT_BASE_DTYPE_H
#define CT_BASE_DTYPE_H

#include "base/macros.h"

typedef enum ct_dtype {
    CT_DTYPE_INVALID = 0,
    CT_DTYPE_BOOL, /* one byte, 0 or 1 */
    CT_DTYPE_S8,
    CT_DTYPE_S32,
    CT_DTYPE_S64,
    CT_DTYPE_U8,
    CT_DTYPE_U32,
    CT_DTYPE_F16,
    CT_DTYPE_BF16,
    CT_DTYPE_F32,
    CT_DTYPE_F64,
    CT_NUM_DTYPES
} ct_dtype;

size_t ct_dtype_bytes(ct_dtype dtype);         /* bytes of one element */
const char *ct_dtype_name(ct_dtype dtype);     /* "f32", "bf16", "s32", "bool" */
const char *ct_dtype_mlir(ct_dtype dtype);     /* MLIR's spelling: "i32", "ui32", "i1" */
const char *ct_dtype_torch(ct_dtype dtype);    /* PyTorch's and the recipes' spelling: "float32", "bfloat16" */
ct_dtype ct_dtype_from_name(const char *name); /* accepts all three spellings; CT_DTYPE_INVALID if unknown */
int ct_dtype_is_float(ct_dtype dtype);
int ct_dtype_is_integer(ct_dtype dtype); /* bool is not an integer */
int ct_dtype_is_signed(ct_dtype dtype);  /* signed integers and floats */

enum { CT_MAX_RANK = 8 };

/* Dense row-major host memory with a shape. Owned when made by ct_array_new, else borrowed. */
typedef struct ct_array {
    ct_dtype dtype;
    int rank;
    int64_t sizes[CT_MAX_RANK];
    void *data;
} ct_array;

int64_t ct_num_elements(const int64_t *sizes, int rank);
ct_array ct_array_new(ct_dtype dtype, const int64_t *sizes, int rank); /* zeroed heap memory; free with ct_array_free */
void ct_array_free(ct_array *array);
int64_t ct_array_num_elements(const ct_array *array);
size_t ct_array_bytes(const ct_array *array);
double ct_array_get(const ct_array *array, int64_t index);       /* any dtype, as a double */
void ct_array_set(ct_array *array, int64_t index, double value); /* rounded to nearest even */

#endif
