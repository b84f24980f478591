/* The program of initial weights. */
#include "train/init.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/node.h"
#include "graph/ops.h"
#include "spmd/localize.h"

/* The standard deviations of a parameter's layers: a scalar, or [layers] for a stacked one. */
static ct_tensor *deviations(ct_graph *graph, const ct_model *model, const ct_model_param *param)
{
    const ct_param_spec *spec = param->spec;
    double std = spec->std > 0 ? spec->std : 1 / sqrt((double)model->config.dim);
    int64_t count = ct_model_param_layers(model, param);
    if (!spec->depth_scaled) return ct_scalar(graph, CT_DTYPE_F32, std);
    ct_array values = ct_array_new(CT_DTYPE_F32, &count, 1);
    for (int64_t i = 0; i < count; i++)
        ct_array_set(&values, i, std / sqrt(2.0 * (double)((param->stacked ? i : param->layer) + 1)));
    ct_tensor *result = param->stacked ? ct_constant(graph, &values, "layers")
                                       : ct_scalar(graph, CT_DTYPE_F32, ct_array_get(&values, 0));
    ct_array_free(&values);
    return result;
}

static ct_tensor *initial_value(ct_graph *graph, const ct_model *model, const ct_model_param *param, uint64_t seed)
{
    const ct_param_spec *spec = param->spec;
    if (spec->init == CT_INIT_ONES || spec->init == CT_INIT_ZEROS)
        return ct_full(graph, CT_DTYPE_F32, param->axes, spec->init == CT_INIT_ONES);
    int64_t count = ct_model_param_layers(model, param);
    uint32_t(*words)[2] = ct_alloc((size_t)count * sizeof(*words));
    for (int64_t i = 0; i < count; i++) {
        char buffer[256];
        ct_rng_key(seed, ct_model_hf_name(param, i, buffer), words[i]);
    }
    ct_random_keys keys = {.count = (int)count, .words = (const uint32_t(*)[2])words};
    ct_tensor *value;
    if (spec->init == CT_INIT_UNIFORM) {
        /* 2 u - 1 is exact, so it is the product alone that rounds */
        ct_tensor *uniform = ct_random_uniform(graph, param->axes, &keys);
        value = ct_mul_scalar(ct_add_scalar(ct_mul_scalar(uniform, 2), -1), spec->bound);
    } else {
        ct_tensor *normal = spec->init == CT_INIT_TRUNC_NORMAL
                                ? ct_random_truncated_normal(graph, param->axes, &keys, -spec->cut, spec->cut)
                                : ct_random_normal(graph, param->axes, &keys);
        value = ct_mul(normal, deviations(graph, model, param));
    }
    free(words);
    return value;
}

ct_status *ct_init_build(const ct_model *model, int first, const ct_parallel *parallel, ct_dtype dtype, uint64_t seed,
                         ct_graph **out_graph)
{
    *out_graph = NULL;
    ct_graph *graph = ct_graph_new("initial_weights");
    ct_parallel_attach(graph, parallel);
    for (int i = first; i < model->num_params; i++) {
        ct_tensor *value = initial_value(graph, model, &model->params[i], seed);
        ct_output(graph, model->params[i].name, ct_convert(value, ct_model_param_dtype(model, i, dtype)), NULL);
        if (!ct_parallel_of(graph)) continue;
        ct_sharding stored = ct_parallel_stored(parallel, value->rank, value->axes);
        ct_parallel_set_output(graph, i - first, &stored);
    }
    ct_status *status = ct_graph_check(graph);
    if (!status && ct_parallel_of(graph) && parallel->partition == CT_PARTITION_MANUAL)
        status = ct_localize(graph, NULL);
    if (status)
        ct_graph_free(graph);
    else
        *out_graph = graph;
    return status;
}
