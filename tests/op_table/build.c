/* From a case of the table to a graph and its inputs. */
#include "graph/node.h"
#include "op_table.h"

int op_num_inputs(const op_case *c)
{
    int count = 0;
    while (count < OP_MAX_INPUTS && c->inputs[count].axes) count++;
    return count;
}

ct_graph *op_build(const op_case *c, ct_dtype dtype, ct_tensor **in, ct_tensor **out)
{
    ct_graph *graph = ct_graph_new("test");
    if (c->mesh) ct_graph_set_mesh(graph, c->mesh);
    op_build_into(c, graph, dtype, in, out);
    return graph;
}

void op_build_into(const op_case *c, ct_graph *graph, ct_dtype dtype, ct_tensor **in, ct_tensor **out)
{
    for (int i = 0; i < op_num_inputs(c); i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%d", i);
        in[i] = ct_input(graph, name, c->inputs[i].dtype ? c->inputs[i].dtype : dtype, c->inputs[i].axes);
        if (c->mesh) ct_graph_set_input_sharding(graph, in[i], "");
    }
    c->build(graph, in, out, c->variant);
}

void op_output_all(const op_case *c, ct_graph *graph, const char *prefix, int count, ct_tensor **tensors)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s%d", prefix, i);
        ct_output(graph, name, tensors[i], NULL);
        if (c->mesh) ct_graph_set_output_sharding(graph, ct_graph_num_outputs(graph) - 1, "");
    }
}

ct_array op_fill(const ct_tensor *type, const op_input *input, uint32_t stream)
{
    int64_t sizes[CT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) sizes[i] = type->axes[i].size;
    ct_array array = ct_array_new(type->dtype, sizes, type->rank);
    double low = input->low, high = input->high;
    if (low == 0 && high == 0) {
        low = ct_dtype_is_signed(type->dtype) ? -1 : 0;
        high = 1;
    }
    for (int64_t i = 0; i < ct_array_num_elements(&array); i++) {
        double u = op_uniform(stream, (uint32_t)i);
        ct_array_set(&array, i,
                     ct_dtype_is_float(type->dtype) ? low + u * (high - low) : floor(low + u * (high - low + 1)));
    }
    return array;
}

double op_tolerance(ct_dtype dtype)
{
    switch (dtype) {
    case CT_DTYPE_F64: return 1e-11;
    case CT_DTYPE_F32: return 3e-6;
    case CT_DTYPE_F16: return 3e-3;
    case CT_DTYPE_BF16: return 2e-2;
    default: return 0;
    }
}

ct_tensor *op_loss(const op_case *c, ct_graph *graph, ct_tensor *const *out)
{
    ct_tensor *loss = ct_scalar(graph, CT_DTYPE_F64, 0);
    for (int i = 0; i < c->num_outputs && !ct_tensor_is_poison(out[i]); i++) {
        if (out[i]->dtype != CT_DTYPE_F64) continue;
        ct_array weights = op_fill(out[i], &(op_input){.low = -1, .high = 1}, (uint32_t)(100 + i));
        const char *axes = ct__axes_text(graph, out[i]->axes, out[i]->rank);
        ct_tensor *weighted = ct_mul(out[i], ct_constant(graph, &weights, axes));
        loss = ct_add(loss, ct_sum(weighted, axes));
        ct_array_free(&weights);
    }
    return loss;
}

ct_status *op_gradients(const op_case *c, ct_graph *graph, ct_tensor *loss, ct_tensor *const *in,
                        ct_tensor **out_gradients, int *out_count)
{
    ct_tensor *floats[OP_MAX_INPUTS];
    *out_count = 0;
    for (int i = 0; i < op_num_inputs(c); i++)
        if (ct_dtype_is_float(in[i]->dtype)) floats[(*out_count)++] = in[i];
    return ct_grad(graph, loss, floats, *out_count, out_gradients);
}
