/* Batches on devices. */
#include "train/inputs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "spmd/balance.h"

ct_status *ct_inputs_init(ct_inputs *inputs, const ct_parallel *parallel, const ct_step_opts *step)
{
    *inputs = (ct_inputs){.parallel = parallel,
                          .num_microbatches = step->num_microbatches,
                          .batch = step->batch,
                          .seq_len = step->seq_len};
    int64_t cp = parallel->mesh.degrees[CT_MESH_CP];
    if (cp == 1) return NULL;
    inputs->column_order = ct_alloc((size_t)step->seq_len * sizeof(*inputs->column_order));
    return ct_head_tail_order(step->seq_len, cp, inputs->column_order);
}

void ct_inputs_deinit(ct_inputs *inputs)
{
    ct_array_free(&inputs->columns);
    free(inputs->column_order);
    *inputs = (ct_inputs){0};
}

/* The columns of a batch input as context parallel wants them; the array itself where it does not care. */
static ct_array ordered(ct_inputs *inputs, const ct_array *array)
{
    if (!inputs->column_order) return *array;
    int64_t rows = array->sizes[0], seq_len = array->sizes[1];
    if (!inputs->columns.data) inputs->columns = ct_array_new(CT_DTYPE_S32, array->sizes, 2);
    const int32_t *from = array->data;
    int32_t *to = inputs->columns.data;
    for (int64_t row = 0; row < rows; row++, from += seq_len)
        for (int64_t i = 0; i < seq_len; i++) *to++ = from[inputs->column_order[i]];
    return inputs->columns;
}

static ct_status *put(ct_inputs *inputs, const ct_array *whole, ct_buffer **out_buffers, size_t stride)
{
    ct_array array = ordered(inputs, whole);
    ct_axis axes[3] = {{"accum", inputs->num_microbatches}, {"batch", inputs->batch}, {"seq", inputs->seq_len}};
    int first = inputs->num_microbatches > 1 ? 0 : 1;
    ct_layout layout = {.mesh = &inputs->parallel->mesh, .dtype = array.dtype, .rank = 3 - first};
    layout.sharding = ct_parallel_activation(inputs->parallel, layout.rank, axes + first);
    array.rank = layout.rank;
    for (int i = 0; i < layout.rank; i++) array.sizes[i] = layout.sizes[i] = axes[first + i].size;
    return ct_session_share(inputs->session, &array, &layout, out_buffers, stride);
}

ct_status *ct_inputs_put(ct_inputs *inputs, const ct_batch *batch, ct_buffer **out_buffers, size_t stride)
{
    const ct_array *arrays[CT_NUM_BATCH_ARRAYS] = {&batch->inputs, &batch->labels, &batch->positions,
                                                   &batch->segment_ids};
    for (int i = 0; i < CT_NUM_BATCH_ARRAYS; i++) CT_TRY(put(inputs, arrays[i], &out_buffers[i], stride));
    return NULL;
}
